/* The inputs of a command: operands, lists of names, and what folders hold. */
#ifndef GF_CLI_INPUTS_H
#define GF_CLI_INPUTS_H

#include <sys/stat.h>
#include <time.h>

#include "cli.h"

typedef struct gf_cli_input {
    char *path;
    size_t below; /* where in it the part begins that is kept below --out-dir: the base name, or all
                   * below the folder that was named */
    uint64_t bytes;       /* 0: not known */
    struct timespec time; /* of the last change; 0: not known */
} gf_cli_input;

typedef struct gf_cli_inputs {
    gf_cli_input *list;
    size_t count;
    uint64_t failed;     /* folders and names that gave none; that has been printed */
    uint64_t skipped;    /* files in folders whose extension is not that of an image */
    char extensions[64]; /* extensions of some of them: ".tif, .webp" */
    bool raw;            /* only images without a header are taken from folders */
} gf_cli_inputs;

/* A kind of files. */
typedef struct gf_about_format {
    const char *name;
    const char
        *extensions; /* of their names, the one that is written first; a space between them */
    bool read;       /* without being told that it is one */
    bool written;
    const char *holds; /* what it can hold, and what is special about it: a sentence */
} gf_about_format;

extern const gf_about_format gf_about_formats[]; /* ends with a row of NULL */

/* Return a base name's extension, from its last dot on, or "". The dot of a hidden file begins
 * none. */
const char *gf_cli_extension(const char *base);
/* Return the format of files with this name's extension, or NULL. */
const gf_about_format *gf_cli_named_format(const char *name);

/* Gather the inputs of a command, in the order in which they are named; those of a folder in the
 * order of their names. Folders that are --out-dir are left out. A folder that cannot be read is
 * printed, and stops no other; under --fail-fast it is the error. GF_FAILED if there are no inputs.
 */
gf_status gf_cli_gather(const char *command, const gf_cli_line *line, gf_cli_inputs *inputs,
                        gf_error *error);
/* Write "2 files skipped: unsupported format (.tif, .webp)"; "" if there were none. */
void gf_cli_skipped_text(const gf_cli_inputs *inputs, char *text, size_t size);
void gf_cli_inputs_free(gf_cli_inputs *inputs);

#endif
