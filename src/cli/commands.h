/* Filters and other commands: a gf_filter_info describes both to parser, help and manual pages. */
#ifndef GF_CLI_COMMANDS_H
#define GF_CLI_COMMANDS_H

#include "cli.h"

typedef struct gf_command {
    gf_filter_info info;
    const gf_filter *filter; /* NULL: not a filter; the members below are set */
    /* Names of the shared options that it accepts, separated by spaces. NULL, also for filters:
     * those of a command that runs steps on images. */
    const char *shared;
    /* Run the command. GF_FAILED without a message: the errors have been printed. */
    gf_status (*run)(const gf_cli_line *line, gf_error *error);
} gf_command;

extern const gf_command gf_run_command, gf_info_command, gf_devices_command, gf_verify_command,
    gf_bench_command;

/* Return a filter or, after the filters, another command. info.name is NULL past the end. */
gf_command gf_command_at(size_t index);
/* Return the filter or command of this name. info.name is NULL if there is none. */
gf_command gf_command_find(const char *name);
/* Fill in the options: its own, then the shared ones. Return their number. */
size_t gf_command_params(const gf_command *command, gf_param params[GF_CLI_MAX_PARAMS]);

/* Return whether a filter or command has an option whose name is the first `length` bytes. */
bool gf_command_has(const gf_command *command, const char *name, size_t length);

/* Reject a word that is neither filter nor command. or_word: also suggest gf_help_words. */
gf_status gf_cli_unknown_command(const char *name, bool or_word, gf_error *error);

/* Words accepted instead of a filter or command, such as "help". Ends with a row of NULL. */
typedef struct gf_help_word {
    const char *name, *summary;
} gf_help_word;

extern const gf_help_word gf_help_words[];

/* ---- help (help.c), on standard output ------------------------------------------------------- */

extern const char gf_help_summary[]; /* one line about the program */

/* An exit code, for help and manual pages. */
typedef struct gf_help_code {
    const char *code;    /* "0", "128 + n" */
    const char *meaning; /* a phrase */
    const char *test; /* its meaning for a filter that is a test, such as compare; NULL: the same */
} gf_help_code;

extern const gf_help_code gf_help_codes[]; /* ends with a row of NULL */

/* Print a phrase as a sentence. A first word that ends with a colon keeps its case. */
void gf_help_sentence(FILE *file, const char *phrase);
void gf_cli_version(void);
/* Print filters, commands and formats; all: also the shared options and the exit codes. Without
 * `all`, both functions print at most 24 lines of 80 columns. */
void gf_cli_help(bool all);
/* Print the help of one command; all: every option, not only the most used ones. */
void gf_cli_help_command(const gf_command *command, bool all);

/* ---- devices (info.c) ------------------------------------------------------------------------ */

/* Processor and CUDA devices of this machine. */
typedef struct gf_machine {
    char processor[64];
    gf_device devices[64];
    size_t count;
    gf_error none; /* why CUDA is not available; status 0 if it is */
} gf_machine;

/* Query processor and devices. A machine without CUDA is not a failure. */
gf_status gf_machine_query(gf_machine *machine, gf_error *error);
/* Print one line for the processor and one per device, or why CUDA is not available. */
void gf_machine_text(const gf_machine *machine);
/* Print the JSON members "cpu", "cuda" and "cuda_error". */
void gf_machine_json(const gf_machine *machine);

/* ---- test images and comparison, for verify and bench (verify_images.c) ---------------------- */

/* State of xorshift64*: the same sequence on every platform. */
typedef uint64_t gf_random;

/* Start an independent sequence for each combination of seed, stream and number. */
gf_random gf_random_start(uint64_t seed, uint64_t stream, uint64_t number);
/* Return a uniform number in [0, n). */
uint64_t gf_random_below(gf_random *random, uint64_t n);

/* Rounds after which a case has run with every sample type and channel count: 3 x 4. */
#define GF_VERIFY_ROUNDS 12

/* Return a format of a round. Its size is near a power of two; small: at most 2^13 samples. */
gf_format gf_verify_format(gf_random *random, uint64_t round, bool small);
/* Fill packed rows with noise, extreme values, waves, one value, or a synthetic photograph. */
void gf_verify_fill(const gf_format *format, void *pixels, gf_random *random);
/* Draw the synthetic photograph: flat areas with edges, slow shading and fine grain. */
void gf_verify_photo(const gf_format *format, void *pixels, gf_random *random);
/* Fill the second input of a comparison: usually the first one with a few samples changed. */
void gf_verify_second(const gf_format *format, const void *first, void *second, gf_random *random);

/* Number of differences, and a description of the first one. All zero: no difference. */
typedef struct gf_differences {
    uint64_t count;
    char first[256];
} gf_differences;

/* Input of a run of one filter in memory. */
typedef struct gf_run_input {
    const gf_filter *filter;
    gf_settings *settings;
    gf_format in, drawn; /* of the input images and the output image; drawn.width 0: none */
    gf_pixels images[2];
} gf_run_input;

/* Output of a run: the packed rows of an image, and a result; either may be NULL. */
typedef struct gf_run_output {
    void *image;
    gf_result *result;
} gf_run_output;

/* Run a filter on images in memory. made->image: NULL, or room for `drawn`. The previous
 * made->result is freed. */
gf_status gf_run_output_make(gf_engine *engine, const gf_run_input *input, gf_run_output *made,
                             gf_report *report, gf_error *error);
/* Count the samples of the images, cells of the tables and texts that differ in any bit. */
gf_differences gf_run_output_compare(const gf_format *format, const gf_run_output *want,
                                     const gf_run_output *got);
/* Free both, and set them to NULL. */
void gf_run_output_free(gf_run_output *made);

#endif
