/* Outputs: files that appear whole or not at all, written in output.c and put in place in
 * output_commit.c. */
#ifndef GF_OUTPUT_H
#define GF_OUTPUT_H

#include <sys/stat.h>

#include "gpufilter_tools.h"

/* A file written in the folder of its target without a name, or under a temporary one, which gets
 * its name when complete. Devices and pipes that exist already, and standard output, are written
 * directly. */
typedef struct gf_output gf_output; /* and gf_output_file */

/* Of the options, which may be NULL, force and sync count. named: other processes can open the
 * file, by its temporary name, to write their parts. GF_USAGE for what another output of this
 * process is writing. */
gf_status gf_output_open(const char *path, const gf_file_options *options, bool named,
                         gf_output **output, gf_error *error);
/* Opens the file that another process has created so, to write a part of it. It is not put in
 * place. The path is for messages. */
gf_status gf_output_join(const char *path, const char *temporary, gf_output **output,
                         gf_error *error);
/* Can processes write parts of it? Not standard output, nor what exists and is no regular file. */
bool gf_output_sharable(const char *path);
/* The path, or "standard output". */
const char *gf_output_name(const gf_output *output);
/* Once prepared: the size of the file, or how many bytes went to what is written directly. */
uint64_t gf_output_bytes(const gf_output *output);
/* A path by which this process reaches the file that has not got its name yet; NULL for what is
 * written directly, and for NULL. */
const char *gf_output_reach(const gf_output *output);
/* Can gf_output_seek be used? */
bool gf_output_seekable(const gf_output *output);
gf_status gf_output_write(gf_output *output, const void *data, size_t size, gf_error *error);
/* Writes rows that lie a stride apart, one behind the other. */
gf_status gf_output_write_rows(gf_output *output, const void *rows, size_t stride, size_t row_bytes,
                               uint64_t count, gf_error *error);
/* What is written next goes there. */
gf_status gf_output_seek(gf_output *output, uint64_t offset, gf_error *error);
/* Fails with what writing to it met, an errno. */
gf_status gf_output_fail_write(const gf_output *output, int cause, gf_error *error);
/* Flushes, syncs and closes: all that can fail before the file has its name. */
gf_status gf_output_prepare(gf_output *output, gf_error *error);
/* After prepare: gives the file its name. */
gf_status gf_output_commit(gf_output *output, gf_error *error);
/* The same of several: if one cannot get its name, those before it are taken back, and what they
 * replaced is there again. (Not on file systems that cannot exchange two names: the message then
 * says so.) */
gf_status gf_outputs_commit(gf_output *const *outputs, size_t count, gf_error *error);
/* Frees; what was not put in place is gone. */
void gf_output_close(gf_output *output);

/* ---- pieces in memory ------------------------------------------------------------------------ */

/* Pieces of an output in memory, so that several threads can fill it: write() lets only one at a
 * time into a file. */
typedef struct gf_output_map {
    unsigned char *data; /* of the piece asked for */
    void *pages;
    size_t page_bytes;
} gf_output_map;

/* Makes the output, empty until now, a file of so many bytes whose pieces can be mapped. False,
 * with the output as it was, where they cannot be: no file in memory (another kind may drop pages
 * that were made, and then find its disk full when they are written again), no such system. */
bool gf_output_map_start(gf_output *output, uint64_t size);
/* Maps a piece, whose pages are there: writing to it cannot fail. Returns 0 or an errno, ENOSPC for
 * a full disk. */
int gf_output_map_open(const gf_output *output, uint64_t offset, size_t size, gf_output_map *map);
void gf_output_map_close(gf_output_map *map);

/* ---- temporary files: those that exist right now, so that a signal handler can remove them --- */

/* Notes a path that is about to be created. Returns its slot, or -1 if the table is full or the
 * path too long. Between this and gf_temporary_made another thread's handler waits for the caller:
 * nothing but the creation may happen there. */
int gf_temporary_add(const char *path);
/* The file has been created, or could not be, or will be by renaming another temporary. */
void gf_temporary_made(int slot);
/* The file is gone or has its final name. slot may be -1. */
void gf_temporary_drop(int slot);

/* Does not return while another thread's handler ends the process: what failed because that removed
 * its file is not to be told. */
void gf_temporary_abandon(void);

/* ---- paths ----------------------------------------------------------------------------------- */

/* What follows the last dot of the last part; "" if there is none. */
const char *gf_path_extension(const char *path);

/* ---- what output.c and output_commit.c share ---------------------------------------- */

#define GF_OUTPUT_BUFFER ((size_t)1 << 16)

/* How far an output has come to its name. */
typedef enum gf_commit_state {
    GF_UNCOMMITTED,
    GF_NEW,       /* nothing had its name */
    GF_EXCHANGED, /* what had its name has the temporary one until all are in place */
    GF_OVER       /* what had its name is no more */
} gf_commit_state;

struct gf_output {
    char *name;        /* for messages: the path as given, or "standard output" */
    char *target;      /* where the file goes, symbolic links resolved; NULL if written directly */
    char *folder_path; /* of target; "." for a name alone */
    char *temporary;   /* what it is called until it is complete; NULL if it has no name, or is
                        * written directly */
    char nameless[32]; /* how this process reaches a file without a name; "" if it has one */
    /* The claim on what is written: a file by its folder and its name there, so that it need not
     * exist; or, with the name "", by itself. NULL: none. */
    const char *claimed;
    dev_t device;
    ino_t inode;
    gf_output *next_claim;
    int fd;
    int folder; /* that the file goes to, open to be synced; -1 if it is not to be */
    int slot;   /* of the temporary name, for gf_remove_temporaries */
    gf_sync sync;
    gf_commit_state placed;
    struct stat made; /* the file, when it gets its name */
    bool force;
    bool replaces;     /* something was there when it was opened, */
    bool access_later; /* and other processes open the file until it gets that one's access */
    bool synced;
    bool owned;  /* close fd in the end (not for standard output) */
    bool joined; /* the temporary is another process's, to be put in place or removed */
    size_t used;
    uint64_t streamed; /* bytes written in order, of what is written directly */
    unsigned char buffer[GF_OUTPUT_BUFFER];
};

/* Fail with an errno for an operation on an output, and for one that would replace a file without
 * --force. */
gf_status gf_output_fail(const char *path, const char *what, int cause, gf_error *error);
gf_status gf_output_fail_exists(const char *name, gf_error *error);

/* Waits until what was written is on the disk. Returns 0 or an errno. */
int gf_output_sync_file(gf_output *output);
/* After it has: waits until that is on the disk, if it is to be. */
gf_status gf_output_sync_folder(const gf_output *output, gf_error *error);

/* Owner, group, mode and access control list of another file, as far as that is allowed. Returns 0,
 * or -1 with errno. */
int gf_output_keep_access(gf_output *output, const char *from, const struct stat *info);

/* It may be written by others from now on. Nothing where there is no claim. */
void gf_output_drop_claim(gf_output *output);

/* How often another name is tried where a file has the first one already. */
enum { GF_TEMPORARY_ATTEMPTS = 16 };

/* Notes a name before a file has it, so that no signal falls between the two; gf_temporary_made
 * comes after. Returns 0 or an errno: ENAMETOOLONG for its path, EPERM where the folder is
 * append-only, ENOMEM, or EMFILE for a full table of temporaries. */
int gf_output_begin_temporary(gf_output *output);
/* No file has the name, or not any more. */
void gf_output_end_temporary(gf_output *output);
/* Creates a file of such a name for output->target. */
gf_status gf_output_create_temporary(gf_output *output, mode_t mode, gf_error *error);

#endif
