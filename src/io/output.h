/* What the files of an output share: output_open.c, output_create.c, output_access.c, output.c,
 * output_place.c, output_copy.c and output_shared.c, in the order of its life. */
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
/* gf_output_open of a file that others can open, by its temporary name. */
gf_status gf_output_open_named(const char *path, bool force, gf_output **output, gf_error *error);

/* Creates a file for output->target, in its folder: without a name if the system can do that. */
gf_status gf_output_create(gf_output *output, mode_t mode, gf_error *error);
/* The same under a temporary name. */
gf_status gf_output_create_temporary(gf_output *output, mode_t mode, gf_error *error);
/* A file without a name, open to read and write, in the folder of a path; -1 where there is no such
 * thing. flags: more of open's. */
int gf_output_open_nameless(const char *beside, int flags, mode_t mode);
/* Gives a file without a name a temporary one. Returns 0 or an errno, ENAMETOOLONG also for a full
 * table of temporaries. */
int gf_output_give_temporary(gf_output *output);
/* Does the system refuse what it was asked for, rather than fail at it? It may do so with a name
 * for a file that has none, though it made that file: AppArmor, some file systems. */
bool gf_output_is_refused(int cause);
/* Then its bytes go to another one, that has a temporary name. Returns 0 or an errno, `cause` if
 * there is none. */
int gf_output_copy_to_temporary(gf_output *output, int cause);
/* Owner, group, mode and access control list of another file, as far as that is allowed. Returns 0,
 * or -1 with errno. */
int gf_output_keep_access(gf_output *output, const char *from, const struct stat *info);
/* The part of a path behind the last slash. */
const char *gf_output_last_part(const char *path);
/* The folder that a path is in, for the caller to free; NULL if out of memory. */
char *gf_output_folder(const char *path);

/* Waits until what was written is on the disk. Returns 0 or an errno. */
int gf_output_sync_file(gf_output *output);

gf_status gf_output_fail_create(const char *path, int cause, gf_error *error);
gf_status gf_output_fail_exists(const char *name, gf_error *error);

#endif
