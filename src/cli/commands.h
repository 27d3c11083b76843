/* The filters, and the commands that are none. Their names and options are described as for
 * filters, so that the same parser and help serve them. */
#ifndef GF_CLI_COMMANDS_H
#define GF_CLI_COMMANDS_H

#include "cli.h"

typedef struct gf_command {
    gf_filter_info info;
    const gf_filter *filter;   /* NULL: it is none, and has what follows */
    const char *const *shared; /* names of filters' options that it takes, too; NULL-terminated */
    /* GF_FAILED without a message: what failed is printed already. */
    gf_status (*run)(const gf_cli_line *line, gf_error *error);
} gf_command;

extern const gf_command gf_info_command, gf_devices_command, gf_verify_command, gf_bench_command;

/* The filters, and then the others. Without a name past the end. */
gf_command gf_command_at(size_t index);
/* Without a name if there is none of this name. */
gf_command gf_command_find(const char *name);
/* Fill in the options that a filter or command takes: its own, and those that it shares with
 * others. Returns how many. */
size_t gf_command_params(const gf_command *command, gf_param params[GF_CLI_MAX_PARAMS]);

/* Refuse a word that is neither a filter nor a command: GF_USAGE, with similar names. or_word: it
 * may also stand for "help" or "version". */
gf_status gf_cli_unknown_command(const char *name, bool or_word, gf_error *error);

/* Words that may stand in place of a filter or command: "help". Ends with a row of NULL. */
typedef struct gf_about_word {
    const char *name, *what;
} gf_about_word;

extern const gf_about_word gf_about_words[];

/* ---- help (help.c), on standard output ------------------------------------------------------- */

extern const char gf_about_summary[]; /* what the program is, in a line */

void gf_cli_version(void);
void gf_cli_help(void);
void gf_cli_help_command(const gf_command *command);

/* ---- devices (info.c) ------------------------------------------------------------------------ */

/* What this machine has to compute with. */
typedef struct gf_machine {
    char processor[64];
    gf_device devices[64];
    size_t count;
    gf_error none; /* why there is no CUDA; its status is 0 if there is */
} gf_machine;

/* Look for devices. Having no CUDA is not a failure. */
gf_status gf_machine_look(gf_machine *machine, gf_error *error);
/* Print a line for the processor and each device, or why there is none. */
void gf_machine_text(const gf_machine *machine);
/* Print members of an object: "cpu", "cuda", "why_no_cuda". */
void gf_machine_json(const gf_machine *machine);

/* ---- images and their comparison, for verify and bench (verify_images.c) ----------------------
 */

/* xorshift64*: the same numbers everywhere. */
typedef struct gf_random {
    uint64_t state;
} gf_random;

/* A stream of its own for each seed, stream and number. */
gf_random gf_random_start(uint64_t seed, uint64_t stream, uint64_t number);
/* Uniform in [0, n). */
uint64_t gf_random_below(gf_random *random, uint64_t n);

/* So many rounds take a case through every type and number of channels. */
#define GF_VERIFY_ROUNDS 12

/* A size at or near an edge, of the round's type and channels. */
gf_format gf_verify_format(gf_random *random, uint64_t round, bool small);
/* Fill rows without gaps: noise, extremes, waves, one value, or something like a photograph. */
void gf_verify_fill(const gf_format *format, void *pixels, gf_random *random);
/* That last one: flat areas with edges between them, slow shading, a little grain. */
void gf_verify_photo(const gf_format *format, void *pixels, gf_random *random);
/* An image to be measured against the first: mostly that one with a few samples changed. */
void gf_verify_second(const gf_format *format, const void *first, void *second, gf_random *random);

/* What differs: how much of it, and a description of the first. All zero: nothing so far. */
typedef struct gf_found {
    uint64_t count;
    char where[256];
} gf_found;

/* What a run made: the rows of an image without gaps, and a result; either may be NULL. */
typedef struct gf_made {
    void *image;
    gf_result *result;
} gf_made;

/* Count the samples of the images, which have this format, and the cells of the tables (and lines
 * of text) that differ in any bit. */
gf_found gf_made_compare(const gf_format *format, const gf_made *want, const gf_made *got);
/* Free both, and set them to NULL. */
void gf_made_free(gf_made *made);

#endif
