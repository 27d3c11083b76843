/* What a run did and measured, told: for people, as JSON, as CSV. */
#ifndef GF_CLI_REPORT_H
#define GF_CLI_REPORT_H

#include <stdio.h>

#include "cli.h"

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
    uint32_t rank, ranks;        /* who ran it, if ranks is more than 1 */
} gf_cli_run;

/* A cell as what can be drawn. */
static inline double gf_cli_number(const gf_value *value) {
    return value->type == GF_VALUE_UINT ? (double)value->high * 0x1p64 + (double)value->low
                                        : value->real;
}

/* "768x512 RGB u8" */
void gf_cli_format_text(const gf_format *format, char *text, size_t size);

/* A heading, the tables, charts of bars as far as the line is wide, and the result's own lines. */
void gf_cli_report_text(FILE *file, const gf_cli_run *run);
/* Print one line: a record whose last member, "result", is the same for every backend. Nothing if
 * there is no memory for it. */
gf_status gf_cli_report_json(FILE *file, const gf_cli_run *run, gf_error *error);
/* A line of its own: the shares of the time in which the stages were busy, and which one the others
 * waited for. */
void gf_cli_report_busy(FILE *file, const gf_report *report);
/* The same in seconds, as two members of a record. */
void gf_cli_report_busy_json(FILE *file, const gf_report *report);
/* The first table. input: the name of the image, for a first column; NULL: there is none. shown: on
 * a terminal, which gets no control characters; files have the name as it is. */
void gf_cli_report_csv(FILE *file, const gf_result *result, const char *input, bool shown);
/* Its header line. */
void gf_cli_report_csv_header(FILE *file, const gf_result *result, const char *input);
/* On standard error, once in a process: that a device failed, and who did its work. */
void gf_cli_report_failure(const gf_cli_run *run);
/* On standard error: a line about the run; verbose: more of them. */
void gf_cli_report_run(const gf_cli_run *run, bool verbose);
/* On standard error: a line about metadata (bits of gf_dropped) that the outputs of some files
 * lack; of one file its name. Nothing for no bits. */
void gf_cli_report_dropped(const char *name, uint64_t files, uint32_t dropped);
/* On standard error, as the end of such a line: ", 1.2 MB in, 999 kB out", the latter if any. */
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
/* A JSON object of all parameters, as they are. */
void gf_cli_report_settings(FILE *file, const gf_filter_info *info, const gf_settings *settings);

#endif
