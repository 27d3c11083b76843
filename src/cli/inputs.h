/* The inputs of a command: operands, names from --files-from, and files in directories. */
#ifndef GF_CLI_INPUTS_H
#define GF_CLI_INPUTS_H

#include <sys/stat.h>
#include <time.h>

#include "cli.h"

typedef struct gf_cli_input {
    char *path;
    size_t relative; /* offset in path of the part that is appended to --out-dir: the base name,
                      * or the path relative to the directory given as input */
    uint64_t bytes;  /* file size; 0: unknown */
    struct timespec time; /* last modification; 0: unknown */
} gf_cli_input;

typedef struct gf_cli_inputs {
    const gf_cli_options *options;
    gf_cli_input *list;
    size_t count;
    uint64_t failed;  /* directories and names that could not be read; their errors are printed */
    uint64_t skipped; /* in directories: files without the extension of an image, and links */
    uint64_t links;   /* those of `skipped` that are symbolic links to directories */
    char extensions[64]; /* some extensions of skipped files: ".tif, .webp" */
} gf_cli_inputs;

/* A file format. */
typedef struct gf_help_format {
    const char *name;
    const char *extensions; /* separated by spaces; the one for outputs comes first */
    bool read;              /* recognised as an input, without --raw */
    bool written;
    const char *notes; /* sample types and limitations, as sentences */
} gf_help_format;

extern const gf_help_format gf_help_formats[]; /* ends with a row of NULL */

/* Return the extension of a base name, with its dot, or "". The first character of a name does not
 * begin an extension (".hidden"). */
const char *gf_cli_extension(const char *base);
/* Return the format of the extension of a name, or NULL. */
const gf_help_format *gf_cli_named_format(const char *name);

/* Collect the inputs of a command in the order of the command line, and the files of a directory in
 * alphabetical order. Skip --out-dir if an input directory contains it. Print the error of an
 * unreadable directory; with --fail-fast, return it. GF_FAILED if there are no inputs. The caller
 * frees *inputs, also after a failure. */
gf_status gf_cli_gather(const char *command, const gf_cli_line *line, gf_cli_inputs *inputs,
                        gf_error *error);
/* Write "2 files skipped: unsupported format (.tif, .webp)", or "" if no file was skipped. */
void gf_cli_skipped_text(const gf_cli_inputs *inputs, char *text, size_t size);
void gf_cli_inputs_free(gf_cli_inputs *inputs);

#endif
