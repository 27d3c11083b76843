/* The inputs of a batch: operands, a list of names, what folders hold. */
#ifndef GF_CLI_GATHER_H
#define GF_CLI_GATHER_H

#include <sys/stat.h>

#include "cli.h"

typedef struct gf_cli_input {
    char *path;
    size_t below; /* where in it that begins which is kept below --out-dir: the base name, or all
                   * below the folder that was named */
    bool there;   /* the rest is known */
    dev_t device;
    ino_t inode;
    uint64_t bytes;
    int64_t time; /* of the last change, in nanoseconds */
} gf_cli_input;

typedef struct gf_cli_inputs {
    gf_cli_input *list;
    size_t count, room;
    uint64_t failed;  /* folders and names that gave none; that has been told */
    uint64_t skipped; /* files in folders that are not called as pictures are */
    char endings[64]; /* of some of them: ".tif, .webp" */
    bool raw;         /* pictures without a header are looked for */
} gf_cli_inputs;

int64_t gf_cli_time(const struct stat *info);

/* Gathers them for a command, in the order in which they are named; what a folder holds in the
 * order of its names. Folders that are out_dir (NULL for none) are left out. A folder that cannot
 * be read stops no other, unless under --fail-fast: it is then the error. GF_FAILED where there are
 * none. */
gf_status gf_cli_gather(const char *command, const gf_cli_line *line, const char *out_dir,
                        gf_cli_inputs *inputs, gf_error *error);
/* Writes "2 files skipped: unsupported format (.tif, .webp)"; "" if there were none. */
void gf_cli_skipped_text(const gf_cli_inputs *inputs, char *text, size_t size);
void gf_cli_inputs_free(gf_cli_inputs *inputs);

#endif
