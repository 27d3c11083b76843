/* The command line: options, parsing, text output, inputs and outputs, and running filters on one
 * or many files. This module uses only the public interface of the library. */
#ifndef GF_CLI_H
#define GF_CLI_H

#include <stdio.h>
#include <time.h>

#include "gpufilter_tools.h"

/* ---- options (options.c) --------------------------------------------------------------------- */

/* Decoded values of the options shared by filters and commands. An option that the filter or
 * command does not accept is NULL, false or 0. Texts live as long as the gf_cli_line. */
typedef struct gf_cli_options {
    gf_engine_options engine; /* threads: --threads, or this rank's share of the cores */
    gf_file_options files;    /* raw and crop point to the members below, or are NULL */
    gf_raw raw;
    gf_crop crop;
    const char *raw_text, *crop_text, *page; /* arguments of --raw, --crop and --page, or NULL */
    uint32_t threads, rows_per_strip;        /* 0: one thread per core; automatic */
    const char *out_dir, *name, *files_from, *shard, *plot, *plot_format;
    const char *progress, *sync, *color, *alpha, *nodata, *premultiply, *as;
    bool null, recursive, resume, keep_going, fail_fast, log, json, csv, quiet, verbose;
    bool no_progress, help, version;
} gf_cli_options;

/* Parsed command line of one filter or command. Do not copy it: options point into it. */
typedef struct gf_cli_line {
    gf_settings *filter;    /* values of the filter's or command's own parameters */
    gf_settings *common;    /* values of the shared parameters */
    const gf_param *params; /* own parameters, followed by shared parameters */
    size_t param_count;
    const char **operands;
    size_t operand_count;
    char **steps;  /* words after the first "!" of `run`, NULL-terminated; NULL: there is none */
    bool help_all; /* --help was given, not only -h */
    gf_cli_options options;
} gf_cli_line;

#define GF_CLI_MAX_COMMON 64
#define GF_CLI_MAX_PARAMS (GF_CLI_MAX_COMMON + 64) /* plus parameters of one filter or command */

/* Fill in the shared options of a filter (info NULL: all of them). Return their number. */
size_t gf_cli_common(const gf_filter_info *info, gf_param params[GF_CLI_MAX_COMMON]);
/* Return whether -h lists this shared option, as one of the most used. */
bool gf_cli_in_brief_help(const gf_param *param);
/* Decode the shared options of a line into line->options. Set the process-wide --color. */
gf_status gf_cli_decode(gf_cli_line *line, gf_error *error);
/* Reject shared options that contradict each other or lack an option that they require. */
gf_status gf_cli_check_common(const gf_filter_info *info, const gf_cli_line *line, gf_error *error);

/* ---- parsing (command_line.c) ---------------------------------------------------------------- */

/* Parse and decode the NULL-terminated arguments after the command name. params: count parameters
 * that begin with those of info. Options may follow operands; "--" ends the options. The caller
 * frees the line, also after a failure. */
gf_status gf_cli_parse(char **argv, const gf_filter_info *info, const gf_param *params,
                       size_t count, gf_cli_line *line, gf_error *error);
void gf_cli_line_free(gf_cli_line *line);

/* ---- text output (text.c) -------------------------------------------------------------------- */

#define GF_CLI_ERASE "\r\033[K"

/* Draw the bar of the progress: a line that begins with GF_CLI_ERASE. */
void gf_cli_bar_draw(const char *line);
/* Erase the bar before other output. Async-signal-safe. */
void gf_cli_bar_hide(void);
/* Flush standard output, then print an error on standard error. */
void gf_cli_print_error(const gf_error *error);
/* Print text. Replace unprintable bytes by '?': file names may contain escape sequences. */
void gf_cli_print_text(FILE *file, const char *text);
/* Print a file name in the same way; "-" as `standard`, such as "standard input". */
void gf_cli_print_name(FILE *file, const char *name, const char *standard);
/* Print the name of an output as a line: printable on a terminal, the exact bytes elsewhere. */
void gf_cli_list_output(const char *name);

/* Escape sequences. Every terminal supports the eight basic colours, and users configure them. */
#define GF_PAINT_OFF "\033[0m"
#define GF_PAINT_STRONG "\033[1m"
#define GF_PAINT_ERROR "\033[1;31m"
#define GF_PAINT_RED "\033[31m"
#define GF_PAINT_GREEN "\033[32m"
#define GF_PAINT_BLUE "\033[34m"

/* Set --color for the process: auto, always or never. */
enum { GF_COLOUR_AUTO, GF_COLOUR_ALWAYS, GF_COLOUR_NEVER };
void gf_cli_colour_use(size_t choice);
/* Return whether a file is a terminal that moves its cursor. */
bool gf_cli_is_terminal(FILE *file);
/* Return whether --color enables colours for this file. */
bool gf_cli_colour_on(FILE *file);

/* ---- progress of one image or a batch, on standard error (progress.c) ------------------------ */

typedef struct gf_cli_progress {
    /* EVENTS: JSON, one object per line. */
    enum { GF_CLI_SHOW_NOTHING, GF_CLI_SHOW_BAR, GF_CLI_SHOW_LINES, GF_CLI_SHOW_EVENTS } show;
    double began, drawn;           /* times of the start and of the last drawing, in seconds */
    uint64_t total, ended, failed; /* files; total 0: one image */
    double work, done, running;    /* bytes or rows: all; of finished files; completed of others */
    double pixels, pixels_running; /* in finished files; completed in running files */
    const char *remedy; /* appended to the message of an interrupted batch; NULL: no message */
} gf_cli_progress;

/* Start the clock of progress, whose other members are set, and choose its form by --progress and
 * --quiet. lines: print lines where the cursor cannot be moved. */
void gf_cli_progress_begin(gf_cli_progress *progress, const char *command, const char *mode,
                           bool quiet, bool lines);
/* Draw or print, if the interval since the last time has passed. */
void gf_cli_progress_draw(gf_cli_progress *progress);
/* End a batch: erase the bar and clear the message of gf_cli_progress_interrupted. */
void gf_cli_progress_end(void);
/* Print that the running batch was interrupted, if there is one. Async-signal-safe. */
void gf_cli_progress_interrupted(void);

/* Print an event; only for GF_CLI_SHOW_EVENTS. */
void gf_cli_event_failed(const gf_cli_progress *progress, const char *file, const char *error);
void gf_cli_event_end(const gf_cli_progress *progress, uint64_t done, uint64_t failed,
                      uint64_t skipped);

/* ---- jobs ------------------------------------------------------------------------------------ */

enum { GF_CLI_MAX_STEPS = GF_PIPELINE_STEPS };

/* Work of a command: its steps with their paths. In a batch, the paths of writers are templates of
 * names. */
typedef struct gf_cli_work {
    const gf_filter_info *info; /* of the command */
    const gf_filter *filter;    /* of the command; NULL: `run` */
    const gf_cli_line *line;
    gf_step steps[GF_CLI_MAX_STEPS];
    uint32_t step_count, writers; /* of them, writers */
} gf_cli_work;

/* Return the job of this work. The paths of its writers are those of the steps. */
static inline gf_job gf_cli_job_of_work(const gf_cli_work *work) {
    return (gf_job){.steps = work->steps, .step_count = work->step_count};
}

/* Return the job of a filter: its step, and a writer if it produces an image. steps outlive it. */
static inline gf_job gf_cli_job_of(const gf_filter *filter, const gf_settings *settings,
                                   gf_step steps[GF_CLI_MAX_STEPS]) {
    steps[0] = (gf_step){.filter = filter, .settings = settings};
    steps[1] = (gf_step){.filter = NULL};
    return (gf_job){.steps = steps, .step_count = gf_filter_describe(filter)->makes_image ? 2 : 1};
}

/* Describe the step of a filter for a format. The caller frees info->effective. (json.c) */
gf_status gf_cli_inspect(const gf_filter *filter, const gf_settings *settings,
                         const gf_format *format, gf_step_info *info, gf_error *error);

/* ---- inputs of a command (inputs.c) -----------------------------------------------------------
 */

typedef struct gf_cli_input {
    char *path;
    size_t relative; /* offset in path of the part that is appended to --out-dir: the base name,
                      * or the path relative to the directory given as input */
    uint64_t bytes;  /* file size; 0: unknown */
    struct timespec time; /* last modification; 0: unknown */
    /* Set by gf_cli_outputs_name. NULL: no output. */
    char **out;    /* paths of the outputs, one per writer */
    char **real;   /* their canonical paths, without symbolic links; in the memory of `out` */
    bool existing; /* a regular file with one of these names existed before the batch */
} gf_cli_input;

typedef struct gf_cli_inputs {
    const gf_cli_options *options;
    gf_cli_input *list;
    size_t count;
    uint64_t failed;  /* directories and names that could not be read; their errors are printed */
    uint64_t skipped; /* in directories: files without the extension of an image, and links */
    uint64_t links;   /* those of `skipped` that are symbolic links to directories */
    char extensions[64]; /* some extensions of skipped files: ".tif, .webp" */
    size_t writers;      /* outputs per input; 0: none */
} gf_cli_inputs;

/* Return the extension of a base name, with its dot, or "". ".hidden" has none. */
const char *gf_cli_extension(const char *base);
/* Set the format of the extension of a name. Return false if there is none. */
bool gf_cli_named_format(const char *name, gf_codec_info *format);

/* Collect the inputs of a command in the order of the command line, those of a directory by name.
 * Skip --out-dir. Print the error of an unreadable directory; with --fail-fast, return it.
 * GF_FAILED if there are no inputs. The caller frees *inputs, also after a failure. */
gf_status gf_cli_gather(const char *command, const gf_cli_line *line, gf_cli_inputs *inputs,
                        gf_error *error);
/* Write "2 files skipped: unsupported format (.tif, .webp)", or "" if no file was skipped. */
void gf_cli_skipped_text(const gf_cli_inputs *inputs, char *text, size_t size);
void gf_cli_inputs_free(gf_cli_inputs *inputs);

/* ---- outputs of a batch (outputs.c) ---------------------------------------------------------- */

/* Make the output name for an input with this base name and index (from 1). format: --format, or
 * NULL. GF_USAGE if the template is invalid. The caller frees *name. */
gf_status gf_cli_template_fill(const char *template, const char *base, const char *format,
                               uint64_t index, char **name, gf_error *error);

/* Name the outputs of each input in --out-dir, by the templates and formats of the writers.
 * GF_USAGE if two outputs are the same, also through symbolic links; if an output would replace the
 * input of another; with --resume, if an output is its own input. */
gf_status gf_cli_outputs_name(gf_cli_inputs *inputs, const gf_cli_work *work, gf_error *error);

/* Return whether the outputs of an input are newer than it, and not empty, as a power failure may
 * leave them. */
bool gf_cli_is_finished(const gf_cli_inputs *inputs, const gf_cli_input *input);

/* ---- directories ----------------------------------------------------------------------------- */

/* Directories created for outputs. All zero except `files`: none. */
typedef struct gf_cli_directories {
    struct gf_cli_directory *last; /* list of created directories, the last one first */
    const gf_file_options *files;  /* sync GF_SYNC_ALWAYS: fsync the parent of each directory.
                                    * dry_run: check permissions to create directories and files */
    const char *ready; /* path whose first `length` bytes are an existing directory; caches the */
    size_t length;     /* last call */
} gf_cli_directories;

/* Create a directory, the first `length` bytes of path, and its parents. path outlives *made. */
gf_status gf_cli_directories_make(gf_cli_directories *made, const char *path, size_t length,
                                  gf_error *error);
/* Free the list. remove: also remove the created directories that are empty. */
void gf_cli_directories_close(gf_cli_directories *made, bool remove);

/* ---- running steps (filter.c), of `run` (run.c), and on many files (batch.c) ----------------- */

/* Run a filter command and print its report. Return GF_FAILED without a message if a test such as
 * compare finds a difference; such a filter returns GF_USAGE for all failures, so that its exit
 * code 1 always means a difference. */
gf_status gf_cli_filter(const gf_filter *filter, const gf_cli_line *line, gf_error *error);

/* Run the steps of a command on its first operand, and print the report. */
gf_status gf_cli_run_one(gf_cli_work *work, gf_error *error);

/* Run the steps on all inputs and print reports and a summary. Return GF_FAILED without a message
 * if some files failed; their errors have been printed. */
gf_status gf_cli_batch(const gf_cli_work *work, gf_error *error);

/* Return whether a table describes `run`, whose operands are steps. */
bool gf_cli_has_steps(const gf_filter_info *info);

#endif
