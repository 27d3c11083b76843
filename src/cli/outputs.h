/* The outputs of a batch: names and directories, and checks that no output replaces an input of the
 * batch. */
#ifndef GF_CLI_OUTPUTS_H
#define GF_CLI_OUTPUTS_H

#include "inputs.h"

/* State of a path. */
typedef struct gf_cli_state {
    bool exists; /* a regular file exists; the other members are valid */
    bool empty;
    struct timespec time; /* last modification */
} gf_cli_state;

typedef struct gf_cli_output {
    char *path;
    char *real;         /* canonical path, without symbolic links */
    gf_cli_state state; /* state before the batch */
} gf_cli_output;

/* ---- names ----------------------------------------------------------------------------------- */

/* Make the output name for an input with this base name and index (from 1). format: --format, or
 * NULL. GF_USAGE if the template is invalid. The caller frees *name. */
gf_status gf_cli_template_fill(const char *template, const char *base, const char *format,
                               uint64_t index, char **name, gf_error *error);

/* Name an output for each input by --out-dir, --name and --format. GF_USAGE if two inputs have the
 * same output, also through symbolic links; if an output would replace the input of another; with
 * --resume, if an output is its own input. The caller frees *outputs, also after a failure. */
gf_status gf_cli_outputs_name(const gf_cli_line *line, const gf_cli_inputs *inputs,
                              gf_cli_output **outputs, gf_error *error);
void gf_cli_outputs_free(gf_cli_output *outputs, size_t count);

/* Return the state of a path. */
gf_cli_state gf_cli_file_state(const char *path);
/* Return whether an output is newer than its input and not empty. A power failure may leave an
 * empty file. */
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

/* Create a directory and its parents. Its name is the first `length` bytes of path, which must
 * outlive *made. */
gf_status gf_cli_directories_make(gf_cli_directories *made, const char *path, size_t length,
                                  gf_error *error);
/* Free the list. remove: also remove the created directories that are empty. */
void gf_cli_directories_close(gf_cli_directories *made, bool remove);

#endif
