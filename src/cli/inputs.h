/* The inputs of a command: operands, names from --files-from, and files in directories; and the
 * outputs of a batch: names and directories, and checks that no output replaces an input. */
#ifndef GF_CLI_INPUTS_H
#define GF_CLI_INPUTS_H

#include <sys/stat.h>
#include <time.h>

#include "cli.h"

/* State of a path. */
typedef struct gf_cli_state {
    bool exists;          /* a regular file exists; the other members are valid */
    bool empty;           /* as a power failure may leave it */
    struct timespec time; /* last modification */
} gf_cli_state;

typedef struct gf_cli_input {
    char *path;
    size_t relative; /* offset in path of the part that is appended to --out-dir: the base name,
                      * or the path relative to the directory given as input */
    uint64_t bytes;  /* file size; 0: unknown */
    struct timespec time; /* last modification; 0: unknown */
    /* Of gf_cli_outputs_name. NULL: no output. */
    char *out;             /* path of the output */
    char *real;            /* its canonical path, without symbolic links */
    gf_cli_state existing; /* its state before the batch */
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

/* Name an output for each input by --out-dir, --name and --format. GF_USAGE if two inputs have the
 * same output, also through symbolic links; if an output would replace the input of another; with
 * --resume, if an output is its own input. */
gf_status gf_cli_outputs_name(const gf_cli_line *line, gf_cli_inputs *inputs, gf_error *error);

/* Return the state of a path. */
gf_cli_state gf_cli_file_state(const char *path);
/* Return whether an output is newer than its input and not empty. */
bool gf_cli_is_finished(const gf_cli_state *output, const gf_cli_input *input);

/* ---- directories ----------------------------------------------------------------------------- */

/* Directories created for outputs. All zero: none. */
typedef struct gf_cli_directories {
    struct gf_cli_directory *last; /* list of created directories, the last one first */
    bool sync;                     /* fsync the parent of each created directory */
    bool dry_run;                  /* only check permissions to create directories and files */
    const char *ready; /* path whose first `length` bytes are an existing directory; caches the */
    size_t length;     /* last call */
} gf_cli_directories;

/* Create a directory, the first `length` bytes of path, and its parents. path outlives *made. */
gf_status gf_cli_directories_make(gf_cli_directories *made, const char *path, size_t length,
                                  gf_error *error);
/* Free the list. remove: also remove the created directories that are empty. */
void gf_cli_directories_close(gf_cli_directories *made, bool remove);

#endif
