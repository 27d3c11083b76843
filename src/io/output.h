/* What the files of an output share. They stand on one another, the lowest first:
 *
 *     output.c             the output itself, and what is said where something fails
 *     output_sync.c        when it is on the disk
 *     output_access.c      who may do what with it
 *     output_temporary.c   its temporary name, where it needs one
 *     output_create.c      its file, without a name or with that one
 *     output_copy.c        its bytes in another file
 *     output_link.c        a name for a file without one
 *     output_write.c       its bytes, to the last one
 *     output_place.c       its name, and those of others, together
 *     output_open.c        where it goes, and whether it may
 *     output_shared.c      the same for several ranks */
#ifndef GF_OUTPUT_H
#define GF_OUTPUT_H

#include <sys/stat.h>

#include "io/claims.h"
#include "io/files.h"

#define GF_OUTPUT_BUFFER ((size_t)1 << 16)

/* How far an output has come to its name. */
typedef enum gf_placed {
    GF_NOT_PLACED,
    GF_NEW,       /* nothing had its name */
    GF_EXCHANGED, /* what had its name has the temporary one until all are in place */
    GF_OVER       /* what had its name is no more */
} gf_placed;

struct gf_output {
    char *name;        /* for messages: the path as given, or "standard output" */
    char *target;      /* where the file goes, symbolic links resolved; NULL if written directly */
    char *temporary;   /* what it is called until it is complete; NULL if it has no name, or is
                        * written directly */
    char nameless[32]; /* how this process reaches a file without a name; "" if it has one */
    gf_claim claim;    /* on what is written */
    int fd;
    int folder; /* that the file goes to, open to be synced; -1 if it is not to be */
    int slot;   /* of the temporary name, for gf_remove_temporaries */
    gf_sync sync;
    gf_placed placed;
    struct stat made; /* the file, when it gets its name */
    bool force;
    bool replaces; /* something was there when it was opened */
    bool synced;
    bool owned;  /* close fd in the end (not for standard output) */
    bool joined; /* the temporary is another rank's, to be put in place or removed */
    size_t used;
    uint64_t streamed; /* bytes written in order, of what is written directly */
    unsigned char buffer[GF_OUTPUT_BUFFER];
};

/* Without a file yet; force and name as gf_output_open has them. NULL if out of memory. */
gf_output *gf_output_new(const char *name, bool force, gf_error *error);

/* Set the error of an operation on an output that failed with an errno, such as making a file, and
 * of one that would replace a file without --force. */
gf_status gf_output_fail(const char *path, const char *what, int cause, gf_error *error);
gf_status gf_output_fail_create(const char *path, int cause, gf_error *error);
gf_status gf_output_fail_exists(const char *name, gf_error *error);

#endif
