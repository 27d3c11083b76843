/* The outputs of a batch: their names and folders, and checks that none replaces a file that is
 * still needed. */
#ifndef GF_CLI_OUTPUTS_H
#define GF_CLI_OUTPUTS_H

#include "inputs.h"

/* What is at a path. */
typedef struct gf_cli_look {
    bool there; /* a regular file; the rest is known */
    bool empty;
    struct timespec time; /* of the last change */
} gf_cli_look;

typedef struct gf_cli_output {
    char *path;
    char *real;       /* the same for all paths of a file, through links or not */
    gf_cli_look look; /* before any work */
} gf_cli_output;

/* ---- names ----------------------------------------------------------------------------------- */

/* Make the name for an input of this base name, the index-th from 1; to be freed. format: of
 * --format, or NULL. GF_USAGE for what is no template. */
gf_status gf_cli_template_fill(const char *template, const char *base, const char *format,
                               uint64_t index, char **name, gf_error *error);

/* Name an output for each input, by --out-dir, --name and --format. GF_USAGE, naming them, for two
 * inputs with one output, also through links to folders; for an output that is another's input and
 * would be replaced; with --resume for one that is its own input. *outputs is to be freed, also
 * after a failure. */
gf_status gf_cli_outputs_name(const gf_cli_line *line, const gf_cli_inputs *inputs,
                              gf_cli_output **outputs, gf_error *error);
void gf_cli_outputs_free(gf_cli_output *outputs, size_t count);

gf_cli_look gf_cli_look_at(const char *path);
/* Is an output newer than its input? An empty one is not: a power failure may leave it. */
bool gf_cli_is_finished(const gf_cli_look *output, const gf_cli_input *input);

/* ---- folders --------------------------------------------------------------------------------- */

/* Folders that were made for outputs. All zero: none. */
typedef struct gf_cli_folders {
    struct gf_cli_folder *last; /* the inner ones come after the outer ones */
    bool sync;                  /* wait until each is on the disk */
    bool dry_run;               /* only see whether they could be made, and files in them */
    const char *ready;          /* the last one that was made or is there: */
    size_t length;              /* so many bytes of it */
} gf_cli_folders;

/* Make a folder, and those it is in: the first bytes of a path, which lives as long as the list. */
gf_status gf_cli_folders_make(gf_cli_folders *made, const char *path, size_t length,
                              gf_error *error);
/* Free the list. remove: remove those that are empty, too. */
void gf_cli_folders_close(gf_cli_folders *made, bool remove);

#endif
