/* The command line: parsed and decoded options, help, and text for people. Uses only the public
 * interface of the library. */
#ifndef GF_CLI_H
#define GF_CLI_H

#include <stdio.h>

#include "gpufilter_tools.h"

/* ---- options (options.c) --------------------------------------------------------------------- */

/* Parameters of each type: name, letter or 0, how help calls the value, help, the default (NULL:
 * none), and what the value may be. */
#define GF_CLI_FLAG(name, letter, help)                                                            \
    { name, letter, GF_PARAM_FLAG, NULL, help, NULL, 0, 0, NULL, NULL }
#define GF_CLI_TEXT(name, letter, metavar, help, fallback)                                         \
    { name, letter, GF_PARAM_TEXT, metavar, help, fallback, 0, 0, NULL, NULL }
#define GF_CLI_CHOICE(name, letter, metavar, help, fallback, choices)                              \
    { name, letter, GF_PARAM_CHOICE, metavar, help, fallback, 0, 0, choices, NULL }
#define GF_CLI_INT(name, letter, metavar, help, fallback, min, max)                                \
    { name, letter, GF_PARAM_INT, metavar, help, fallback, min, max, NULL, NULL }
#define GF_CLI_FLOAT(name, letter, metavar, help, fallback, min, max)                              \
    { name, letter, GF_PARAM_FLOAT, metavar, help, fallback, min, max, NULL, NULL }
#define GF_CLI_SIZE(name, letter, metavar, help, fallback, min, max)                               \
    { name, letter, GF_PARAM_SIZE, metavar, help, fallback, min, max, NULL, NULL }

/* The options that filters and commands share, decoded. One that a filter or command does not take
 * is NULL, false or 0. Texts live as long as the line. */
typedef struct gf_cli_options {
    gf_engine_options engine; /* threads: this rank's share of the cores, unless given */
    gf_file_options files;    /* raw: points to the raw below, or is NULL */
    gf_raw raw;
    const char *raw_text;             /* --raw as given */
    uint32_t threads, rows_per_strip; /* as given; threads 0: one per core */
    const char *out_dir, *name, *files_from, *shard, *plot, *plot_format;
    const char *progress, *sync, *color; /* choices */
    bool null, recursive, resume, keep_going, fail_fast, log, json, csv, quiet, verbose;
    bool no_progress, help, version;
} gf_cli_options;

/* The command line of one filter or command, parsed. Not to be copied: options point into it. */
typedef struct gf_cli_line {
    gf_settings *filter;    /* values of its own parameters */
    gf_settings *common;    /* values of the parameters that it shares with others */
    const gf_param *params; /* its own parameters, and then those that it shares */
    size_t param_count;
    const char **operands;
    size_t operand_count;
    gf_cli_options options;
} gf_cli_line;

#define GF_CLI_MAX_COMMON 46
#define GF_CLI_MAX_PARAMS (GF_CLI_MAX_COMMON + 64) /* with those of one filter or command */

/* Fill in the shared options that suit a filter (NULL: all of them); returns how many. */
size_t gf_cli_common(const gf_filter_info *info, gf_param params[GF_CLI_MAX_COMMON]);
/* Decode the shared options of a line into line->options. */
gf_status gf_cli_decode(gf_cli_line *line, gf_error *error);
/* Refuse shared options that contradict each other, or that need another one. */
gf_status gf_cli_check_common(const gf_filter_info *info, const gf_cli_line *line, gf_error *error);

/* ---- parsing (command_line.c) ---------------------------------------------------------------- */

/* Parse and decode what follows the command's name, up to a NULL, by a table that begins with the
 * parameters of info. Options may follow operands; "--" ends them. To be freed, also after a
 * failure. */
gf_status gf_cli_parse(char **argv, const gf_filter_info *info, const gf_param *params,
                       size_t count, gf_cli_line *line, gf_error *error);
void gf_cli_line_free(gf_cli_line *line);

/* ---- text for people (text.c) ---------------------------------------------------------------- */

/* Print the line of an error on standard error, after what was printed before it. */
void gf_cli_complain(const gf_error *error);
/* Print text with '?' for each byte that is not printable: names of files may hold newlines and
 * escape sequences. */
void gf_cli_print_text(FILE *file, const char *text);
/* Print a file's name likewise; "-" as what it stands for, "standard input" or "standard output".
 */
void gf_cli_print_name(FILE *file, const char *name, const char *standard);
/* Print the name of an output on a line of standard output: its exact bytes but on a terminal. */
void gf_cli_list_output(const char *name);

typedef enum gf_cli_paint {
    GF_PAINT_OFF,
    GF_PAINT_STRONG,
    GF_PAINT_BAD,
    GF_PAINT_GOOD,
    GF_PAINT_RED,
    GF_PAINT_GREEN,
    GF_PAINT_BLUE
} gf_cli_paint;

/* The choices of --color, NULL-terminated. */
extern const char *const gf_cli_colours[];

/* Set --color for the process: the index of its choice. */
void gf_cli_colour_use(size_t choice);
/* Is what goes to this file coloured? */
bool gf_cli_colour_on(FILE *file);
/* The escape sequence that begins a colour, or ends it (GF_PAINT_OFF); "" unless on. */
const char *gf_cli_paint_text(bool on, gf_cli_paint paint);

/* ---- running a filter (filter.c) ------------------------------------------------------------- */

/* Run a filter command and print its report. GF_FAILED without a message: a test whose answer is
 * no. Failures of such a filter are GF_USAGE, so that the exit code tells them from that answer. */
gf_status gf_cli_filter(const gf_filter *filter, const gf_cli_line *line, gf_error *error);

/* ---- running it on many files (batch.c) ------------------------------------------------------ */

/* Are there, or may there be, many inputs? */
bool gf_cli_is_batch(const gf_filter_info *info, const gf_cli_line *line);
/* GF_FAILED without a message: some files failed, and that has been printed. */
gf_status gf_cli_batch(const gf_filter *filter, const gf_cli_line *line, gf_error *error);

#endif
