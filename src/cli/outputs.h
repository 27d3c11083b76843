/* The outputs of a batch: what they are called, and that none is written over what is still needed.
 */
#ifndef GF_CLI_OUTPUTS_H
#define GF_CLI_OUTPUTS_H

#include "gather.h"

/* What has a name. */
typedef struct gf_cli_look {
    bool taken; /* something has it, */
    bool there; /* a regular file; the rest is known */
    bool link;  /* by a symbolic link */
    bool alone; /* it has no other name */
    dev_t device;
    ino_t inode;
    uint64_t size;
    int64_t time;
} gf_cli_look;

typedef struct gf_cli_output {
    char *path;
    size_t below;  /* where in it the path below --out-dir begins */
    size_t folder; /* so many bytes of it are the folder that it is in */
    /* Where it goes, by whatever path: a folder that is there, and where in the path that begins
     * which is below it. */
    dev_t folder_device;
    ino_t folder_inode;
    size_t below_folder;
    gf_cli_look look; /* before any work */
} gf_cli_output;

gf_cli_look gf_cli_look_at(const char *path);

/* Names an output for each input, by --out-dir, --name and --format. GF_USAGE, naming them, for two
 * inputs with one output, also through links to folders, and for an output that is another's input
 * and would be replaced. *outputs is NULL after a failure. */
gf_status gf_cli_outputs_name(const gf_cli_line *line, const gf_cli_inputs *inputs,
                              gf_cli_output **outputs, gf_error *error);
void gf_cli_outputs_free(gf_cli_output *outputs, size_t count);

#endif
