/* Files as bytes: inputs that can be peeked at, outputs that appear whole or not at all. */
#ifndef GF_FILES_H
#define GF_FILES_H

#include <stdio.h>

#include "gpufilter.h"

/* ---- input ----------------------------------------------------------------------------------- */

#define GF_PEEK 16

typedef struct gf_input {
    FILE *file;
    char *buffer; /* of the file; NULL: its own */
    char *name;   /* the path, or "standard input" */
    unsigned char head[GF_PEEK];
    size_t head_size; /* bytes in head; fewer than GF_PEEK only if the file is that short */
    size_t head_used; /* bytes of head already given out */
    uint64_t offset;  /* bytes given out so far */
    int last;         /* what gf_input_byte returned last */
    bool regular;     /* a regular file: gf_input_read_at works */
    uint64_t size;    /* of a regular file */
} gf_input;

/* Opens a path, or standard input for "-", and fills head. */
gf_status gf_input_open(gf_input *input, const char *path, gf_error *error);
/* Reads up to size bytes; fewer only at the end of the file. *got is how many. */
gf_status gf_input_read(gf_input *input, void *data, size_t size, size_t *got, gf_error *error);
/* The next byte, or EOF at the end or on an error (ferror then says which). */
int gf_input_byte(gf_input *input);
/* Reads exactly size bytes at an offset of a regular file; the stream position stays. A file that
 * ends before is an error. */
gf_status gf_input_read_at(gf_input *input, void *data, size_t size, uint64_t offset,
                           gf_error *error);
/* What was read at offsets of a regular file counts as read: who shares standard input goes on from
 * this one. */
void gf_input_skip_to(gf_input *input, uint64_t offset);
void gf_input_close(gf_input *input);

/* ---- output ---------------------------------------------------------------------------------- */

/* A file written in the folder of its target without a name, or under a temporary one, which gets
 * its name when complete. Devices and pipes that exist already, and standard output, are written
 * directly. */
typedef struct gf_output gf_output;

/* GF_USAGE for what another output of this process is writing. */
gf_status gf_output_open(const char *path, bool force, gf_output **output, gf_error *error);
/* The same by ranks that all write to it, each its own bytes: to be called by all. Rank 0's is the
 * file, and is the one to be put in place after all have prepared theirs; ranks may be NULL. */
gf_status gf_output_open_shared(const char *path, bool force, const gf_ranks *ranks,
                                gf_output **output, gf_error *error);
/* Says when it is to be on the disk; GF_SYNC_REPLACING if that is not said. Before it is prepared.
 */
gf_status gf_output_set_sync(gf_output *output, gf_sync sync, gf_error *error);
/* Can ranks share it? Not standard output, nor what exists and is no regular file. */
bool gf_output_sharable(const char *path);
/* The path, or "standard output". */
const char *gf_output_name(const gf_output *output);
/* Once prepared: the size of the file, or how many bytes went to what is written directly. */
uint64_t gf_output_bytes(const gf_output *output);
/* A path by which this process reaches the file that has not got its name yet; NULL for what is
 * written directly, and for NULL. */
const char *gf_output_reach(const gf_output *output);
/* Can gf_output_write_at be used? */
bool gf_output_seekable(const gf_output *output);
gf_status gf_output_write(gf_output *output, const void *data, size_t size, gf_error *error);
/* Writes rows that lie a stride apart, one behind the other. */
gf_status gf_output_write_rows(gf_output *output, const void *rows, size_t stride, size_t row_bytes,
                               uint64_t count, gf_error *error);
/* What is written next goes there. */
gf_status gf_output_seek(gf_output *output, uint64_t offset, gf_error *error);
gf_status gf_output_write_at(gf_output *output, const void *data, size_t size, uint64_t offset,
                             gf_error *error);
/* Fails with what writing to it met, an errno. */
gf_status gf_output_fail_write(const gf_output *output, int cause, gf_error *error);
/* Flushes, syncs and closes: all that can fail before the file has its name. */
gf_status gf_output_prepare(gf_output *output, gf_error *error);
/* After prepare: gives the file its name. */
gf_status gf_output_place(gf_output *output, gf_error *error);
/* The same of several: if one cannot get its name, those before it are taken back, and what they
 * replaced is there again. (Not on file systems that cannot exchange two names: the message then
 * says so.) */
gf_status gf_outputs_place(gf_output *const *outputs, size_t count, gf_error *error);
/* Of a file of one's own. */
gf_output *gf_output_file_output(const gf_output_file *file);
/* Frees; what was not put in place is gone. */
void gf_output_close(gf_output *output);

#endif
