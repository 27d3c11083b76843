/* Reports of runs as text, CSV, JSON and plots. */
#ifndef GF_CLI_REPORT_H
#define GF_CLI_REPORT_H

#include "cli.h"

/* ---- text and CSV (report.c) ----------------------------------------------------------------- */

/* Properties of the file that receives a text report. */
typedef struct gf_cli_screen {
    int width; /* columns */
    bool utf8, terminal, colour;
} gf_cli_screen;

/* Return the properties of a file. A file that is not a terminal is 80 columns wide. */
gf_cli_screen gf_cli_screen_of(FILE *file);

/* A finished run of a filter. */
typedef struct gf_cli_run {
    const gf_cli_work *work;
    const char *const *inputs;   /* names, info->inputs of the command */
    const char *const *outputs;  /* names of the images written, one per writer */
    const char *page;            /* measured page of --page all: a number or "all"; else NULL */
    bool batch;                  /* one of several files, which are a column of CSV */
    bool later;                  /* a report precedes: CSV needs no header, text a blank line */
    const gf_outcome *outcome;   /* of all steps */
    const gf_cli_screen *screen; /* NULL: properties of the file that receives the report */
    uint32_t rank, ranks;        /* rank that ran it, and number of ranks */
} gf_cli_run;

/* Return the name of the last image written; NULL: none. */
static inline const char *gf_cli_run_output(const gf_cli_run *run) {
    return run->work->writers ? run->outputs[run->work->writers - 1] : NULL;
}
/* Describe the steps of a run. The caller passes them to gf_cli_free_steps, also after a failure.
 */
gf_status gf_cli_inspect_steps(const gf_cli_run *run, gf_step_info info[GF_CLI_MAX_STEPS],
                               gf_error *error);
void gf_cli_free_steps(gf_step_info info[GF_CLI_MAX_STEPS]);
/* Return the outputs of all steps together; the brightness is the largest. */
gf_step_report gf_cli_outputs_of(const gf_cli_run *run);
/* Return a cell as a number for bars and plots. */
double gf_cli_number(gf_value value);
/* Return the index of the colour channel of a curve in "rgba"; 4: another curve. */
size_t gf_cli_channel(const char *curve);
/* Return a cell as text: in `number`, or owned by the result. */
const char *gf_cli_cell_text(gf_value value, char number[40]);
/* Print ", 999 bytes in", ", 1.2 kB in" or ", 123 MB in"; what: " in". */
void gf_cli_print_bytes(FILE *file, uint64_t bytes, const char *what);

/* Print the report of a run as --json, --csv and --quiet say. */
gf_status gf_cli_report(FILE *file, const gf_cli_run *run, const gf_cli_options *options,
                        gf_error *error);

/* The functions below print on standard error. */

/* Report a failed device and the backend that replaced it, once per process. */
void gf_cli_report_failure(const char *name, const gf_report *report);
/* Print " gain=1.1 axis=x": parameters that have a value, but no flags that are not set. */
void gf_cli_print_settings(FILE *file, const gf_filter_info *info, const gf_settings *settings);
/* Print the steps of a run that was checked with --dry-run, on standard output. */
gf_status gf_cli_report_plan(const gf_cli_run *run, gf_error *error);
/* Print one line about the run; verbose: also parameters, strips and busy times. */
void gf_cli_report_run(const gf_cli_run *run, bool verbose);
/* Print a warning about damage that was read. Print nothing if there is none. */
void gf_cli_report_damage(const char *name, const gf_remarks *remarks);
/* Print ", 1.2 MB in, 999 kB out"; the second part only if out is not 0. */
void gf_cli_report_bytes(uint64_t in, uint64_t out);

/* Notes about images: dropped data, unread pages, and those of the library. */
typedef enum gf_cli_note { GF_NOTE_DROPPED, GF_NOTE_PAGES, GF_NOTE_OTHER, GF_NOTES } gf_cli_note;

/* Contents of a summary of one or more images. All zero: empty. */
typedef struct gf_cli_summary {
    struct {
        uint64_t count;                            /* images with this note */
        const char *last;                          /* the last of them */
        char text[sizeof((gf_remarks *)0)->notes]; /* about it; dropped data: of all images */
    } notes[GF_NOTES];
    uint32_t dropped;          /* bits of gf_dropped of all images */
    double factor;             /* maximum brightness factor; 0: none */
    uint64_t clipped, samples; /* over the images with counts, without alpha */
    bool uncounted;            /* an integer image has no count */
    char advice[sizeof((gf_step_report *)0)->advice];
} gf_cli_summary;

/* Name and text of a bit of gf_dropped, from the lowest: for JSON, and for people. */
enum { GF_CLI_DROPPED = 10 };
extern const struct gf_cli_dropped {
    const char *name, *text;
} gf_cli_dropped_kinds[GF_CLI_DROPPED];

/* Add an image. first_page: without --page. */
void gf_cli_summary_add(gf_cli_summary *summary, const char *name, const gf_cli_run *run,
                        bool first_page);
/* Print the notes, one per line. */
void gf_cli_report_notes(const gf_cli_summary *summary);
/* Print a line such as " brightness x1.452, 48.9 % of samples clipped; --keep-brightness avoids
 * it", unless the factor is 0 or 1. name: begin it with a file name, and print it only if samples
 * may have clipped. */
void gf_cli_report_brightness(const gf_cli_summary *summary, const char *name);

/* ---- JSON (json.c) --------------------------------------------------------------------------- */

/* Print text, quoted and escaped. Bytes that are not valid UTF-8 become U+FFFD. */
void gf_json_text(FILE *file, const char *text);

/* The functions below append a member to an object that is not empty: , "KEY": VALUE. */

/* Append a text. NULL: null. */
void gf_json_string(FILE *file, const char *key, const char *text);
void gf_json_count(FILE *file, const char *key, uint64_t count);
/* Append an array of the parts of a text between separators, each at most 511 bytes long. */
void gf_json_parts(FILE *file, const char *key, const char *text, const char *separator);
/* Append a file name, and "KEY_encoded", the percent-encoded bytes, if it is not valid UTF-8. */
void gf_json_name(FILE *file, const char *key, const char *name);
/* Append an array of file names, and "KEY_encoded" of all if one of them is not valid UTF-8. */
void gf_json_names(FILE *file, const char *key, const char *const *names, size_t count);
/* Append "image": {"width": 768, "height": 512, "channels": 3, "type": "u8"}. */
void gf_json_format(FILE *file, const gf_format *format);
/* Append an object of all parameters of a filter. */
void gf_json_settings(FILE *file, const char *key, const gf_filter_info *info,
                      const gf_settings *settings);

/* Print the record of a run as one line. Its last member, "result" or "steps", is the same for
 * every backend. Print nothing on failure. */
gf_status gf_cli_report_json(FILE *file, const gf_cli_run *run, gf_error *error);

/* Print the record of an input of a batch that failed, with "status" (exit code) and "error". */
void gf_cli_report_json_failure(FILE *file, const gf_filter_info *info, const char *input,
                                const char *output, const gf_error *error);

/* ---- plots (plot.c) -------------------------------------------------------------------------- */

/* An open plot file. */
typedef struct gf_cli_plot gf_cli_plot;

/* These functions are NULL in a program built without cairo. */

/* Open the file of --plot, and load cairo. The caller closes *plot, also after a failure. */
extern gf_status gf_cli_plot_open(const gf_cli_options *options, gf_cli_plot **plot,
                                  gf_error *error) __attribute__((weak));
/* Draw the first chart of the result. The plot is committed together with the other outputs. */
extern gf_status gf_cli_plot_draw(gf_cli_plot *plot, const gf_ready *ready, gf_error *error)
    __attribute__((weak));
extern void gf_cli_plot_close(gf_cli_plot *plot) __attribute__((weak));

#endif
