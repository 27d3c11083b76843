/* The outputs of a batch: what they are called, and that none is written over what is still needed.
 */
#ifndef GF_CLI_OUTPUTS_H
#define GF_CLI_OUTPUTS_H

#include "gather.h"

typedef struct gf_cli_output {
    char *path;
    size_t below; /* where in it the path below --out-dir begins */
    bool there;   /* it exists, as a regular file; the rest is known */
    bool link;    /* by a symbolic link */
    dev_t device;
    ino_t inode;
    uint64_t size;
    int64_t time;
} gf_cli_output;

/* Names an output for each input, by --out-dir, --name and --format. GF_USAGE, naming them, for two
 * inputs with one output, and for an output that is another's input and would be replaced. *outputs
 * is NULL after a failure. */
gf_status gf_cli_outputs_name(const gf_cli_line *line, const gf_cli_inputs *inputs,
                              gf_cli_output **outputs, gf_error *error);
void gf_cli_outputs_free(gf_cli_output *outputs, size_t count);

/* Makes a folder, and those it is in. */
gf_status gf_cli_make_folder(const char *path, gf_error *error);

#endif
