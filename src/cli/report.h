/* What a run did and measured: as text for people, JSON, CSV and plots. */
#ifndef GF_CLI_REPORT_H
#define GF_CLI_REPORT_H

#include "cli.h"

/* ---- for people (report.c) ------------------------------------------------------------------- */

/* What text for people is shown on. */
typedef struct gf_cli_screen {
    int width; /* columns */
    bool utf8, terminal, colour;
} gf_cli_screen;

/* Of a file that is no terminal: what suits any. */
gf_cli_screen gf_cli_screen_of(FILE *file);

/* A finished run of a filter. */
typedef struct gf_cli_run {
    const gf_filter_info *info;
    const gf_settings *settings; /* the filter's */
    const char *const *inputs;   /* info->inputs names */
    const char *output;          /* of its image; NULL for a filter that measures */
    const gf_report *report;
    const gf_result *result;     /* NULL for an image filter */
    const gf_cli_screen *screen; /* NULL: that of the file it is written to */
    uint32_t rank, ranks;        /* which one ran it, if ranks is more than 1 */
} gf_cli_run;

/* A cell as a number that can be drawn. */
double gf_cli_number(const gf_value *value);
/* A cell as text, in `number` or where the result keeps it. */
const char *gf_cli_cell_text(const gf_value *value, char number[40]);
/* "768x512 RGB u8" */
void gf_cli_format_text(const gf_format *format, char *text, size_t size);
/* Bytes of a row of samples without gaps. */
size_t gf_cli_row_bytes(const gf_format *format);
/* Print "999 bytes", "1.2 kB" or "123 MB". */
void gf_cli_print_bytes(FILE *file, uint64_t bytes);

/* Print a heading, the tables, charts of bars as far as the line is wide, and the result's own
 * lines. */
void gf_cli_report_text(FILE *file, const gf_cli_run *run);
/* Print a header line and the first table as RFC 4180 has it, with the line ends of this system.
 * input: the name of the image, for a first column; NULL: there is none. shown: on a terminal,
 * which gets no control characters; files have the name as it is. */
void gf_cli_report_csv(FILE *file, const gf_result *result, const char *input, bool shown);

/* These print on standard error. Once per process: that a device failed, and what did its work. */
void gf_cli_report_failure(const gf_cli_run *run);
/* A line about the run; verbose: more of them. */
void gf_cli_report_run(const gf_cli_run *run, bool verbose);
/* A line about metadata (bits of gf_dropped) that the outputs of some files lack; of one file its
 * name. Nothing for no bits. */
void gf_cli_report_dropped(const char *name, uint64_t files, uint32_t dropped);
/* The end of such a line: ", 1.2 MB in, 999 kB out", the latter if any. */
void gf_cli_report_bytes(uint64_t in, uint64_t out);

/* The factors of one or several images, and how much of them is clipped. */
typedef struct gf_cli_brightness {
    double factor;             /* the largest of them; 0: none has one */
    uint64_t clipped, samples; /* of those that were counted, alpha aside */
    bool uncounted;            /* one of integers was not */
    char advice[sizeof((gf_report *)0)->advice];
} gf_cli_brightness;

void gf_cli_brightness_add(gf_cli_brightness *brightness, const gf_report *report);
/* On standard error, unless flat areas keep their brightness: a line such as "  brightness x1.452,
 * 48.9 % of samples clipped; --keep-brightness avoids it". */
void gf_cli_report_brightness(const gf_cli_brightness *brightness);

/* ---- JSON (json.c) --------------------------------------------------------------------------- */

/* Print text, quoted and escaped; bytes that are no UTF-8 become U+FFFD. */
void gf_json_text(FILE *file, const char *text);
/* Print {"width": 768, "height": 512, "channels": 3, "type": "u8"}. */
void gf_json_format(FILE *file, const gf_format *format);
/* Append a member to an object that has one already: a comma, "KEY": and its value; text NULL:
 * null.
 */
void gf_json_string(FILE *file, const char *key, const char *text);
void gf_json_count(FILE *file, const char *key, uint64_t count);
/* Print "KEY": and a file's name. One that is no UTF-8 follows once more, exactly, as
 * "KEY_encoded": its bytes percent-encoded. */
void gf_json_name(FILE *file, const char *key, const char *name);
/* Print names likewise as an array; where one is no UTF-8, a second array has all of them encoded.
 */
void gf_json_names(FILE *file, const char *key, const char *const *names, size_t count);

/* Print one line: a record whose last member, "result", is the same for every backend. Nothing if
 * there is no memory for it. */
gf_status gf_cli_report_json(FILE *file, const gf_cli_run *run, gf_error *error);

/* ---- plots (plot.c) -------------------------------------------------------------------------- */

/* A plot that is going to be drawn. */
typedef struct gf_cli_plot gf_cli_plot;

/* A program that was built without cairo lacks these functions. */

/* Open by the options plot, plot-format, log, force and sync. Fails at once for what could not be
 * drawn or written. */
extern gf_status gf_cli_plot_open(const gf_cli_options *options, gf_cli_plot **plot,
                                  gf_error *error) __attribute__((weak));
/* Draw the first chart of the result that is ready; the plot appears together with its outputs. */
extern gf_status gf_cli_plot_draw(gf_cli_plot *plot, const gf_ready *ready, gf_error *error)
    __attribute__((weak));
extern void gf_cli_plot_close(gf_cli_plot *plot) __attribute__((weak));

#endif
