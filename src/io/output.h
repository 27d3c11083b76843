/* What output_open.c and output.c share. */
#ifndef GF_OUTPUT_H
#define GF_OUTPUT_H

#include "io/claims.h"
#include "io/files.h"

#define GF_OUTPUT_BUFFER ((size_t)1 << 16)

struct gf_output {
    char *name;      /* for messages: the path as given, or "standard output" */
    char *target;    /* where the file goes, symbolic links resolved; NULL if written directly */
    char *temporary; /* where it is until it is complete; NULL if written directly */
    gf_claim claim;  /* on what is written */
    int fd;
    int slot; /* of the temporary, for gf_remove_temporaries */
    bool force;
    bool owned;  /* close fd in the end (not for standard output) */
    bool joined; /* the temporary is another rank's, to be put in place or removed */
    size_t used;
    unsigned char buffer[GF_OUTPUT_BUFFER];
};

/* Without a file yet; force and name as gf_output_open has them. NULL if out of memory. */
gf_output *gf_output_new(const char *name, bool force, gf_error *error);
/* Creates a file under a temporary name in the folder of output->target. */
gf_status gf_output_create_temporary(gf_output *output, mode_t mode, gf_error *error);
gf_status gf_output_fail_exists(const char *name, gf_error *error);

#endif
