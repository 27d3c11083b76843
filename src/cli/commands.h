/* The commands that are not filters. Their names and options are described as for filters, so that
 * the same parser and help serve them. */
#ifndef GF_CLI_COMMANDS_H
#define GF_CLI_COMMANDS_H

#include "cli.h"

typedef struct gf_command {
    gf_filter_info info;
    const char *const *shared; /* names of filters' options that it takes, too; NULL-terminated */
    size_t least, most;        /* operands */
    /* GF_FAILED without a message: what failed is printed already. */
    gf_status (*run)(const gf_cli_line *line, gf_error *error);
} gf_command;

extern const gf_command gf_info_command, gf_devices_command, gf_verify_command, gf_bench_command;

const gf_command *gf_command_at(size_t index);       /* NULL past the end */
const gf_command *gf_command_find(const char *name); /* NULL if there is none */
/* Fill in the shared options that a command takes; returns how many. */
size_t gf_command_shared(const gf_command *command, gf_param params[GF_CLI_MAX_COMMON]);

/* Refuse a word that is neither a filter nor a command: GF_USAGE, with similar names. or_word: it
 * may also stand for "help" or "version". */
gf_status gf_cli_unknown_command(const char *name, bool or_word, gf_error *error);

/* Words that may stand in place of a filter or command: "help". Ends with a row of NULL. */
typedef struct gf_about_word {
    const char *name, *what;
} gf_about_word;

extern const gf_about_word gf_about_words[];

/* ---- help (help.c), on standard output ------------------------------------------------------- */

/* An exit code. */
typedef struct gf_about_exit {
    const char *code;
    const char *brief; /* for all filters and commands, in a few words */
    const char *most;  /* a sentence, of those that are no tests */
    const char *test;  /* a sentence, of a filter that is one */
} gf_about_exit;

extern const char gf_about_summary[]; /* what the program is, in a line */
/* Ends with a row of NULL. */
extern const gf_about_exit gf_about_exits[];

void gf_cli_version(void);
void gf_cli_help(void);
void gf_cli_help_filter(const gf_filter_info *info);
void gf_cli_help_command(const gf_command *command);

/* ---- devices (info.c) ------------------------------------------------------------------------ */

/* What this machine has to compute with. */
typedef struct gf_machine {
    char processor[64];
    gf_device *devices;
    size_t count;
    gf_error none; /* why there is no CUDA; its status is 0 if there is */
} gf_machine;

/* Look for devices. Having no CUDA is not a failure. */
gf_status gf_machine_look(gf_machine *machine, gf_error *error);
void gf_machine_free(gf_machine *machine);
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

#define GF_VERIFY_WHERE 256

/* Count the samples that differ in any bit; `where` describes the first. */
uint64_t gf_verify_images(const gf_format *format, const void *want, const void *got,
                          char where[GF_VERIFY_WHERE]);
/* Count the cells of the tables (and lines of text) that differ. */
uint64_t gf_verify_results(const gf_result *want, const gf_result *got,
                           char where[GF_VERIFY_WHERE]);

#endif
