/* Output files that appear complete or not at all. */
#ifndef GF_OUTPUT_H
#define GF_OUTPUT_H

#include "gpufilter_tools.h"

/* An output file. It is written in the directory of its target as an unnamed file (O_TMPFILE) or
 * under a temporary name, and gets its final name when it is complete. Standard output, and devices
 * and pipes that already exist, are written directly. */
typedef struct gf_output gf_output; /* public name: gf_output_file */

/* Open an output; "-" is standard output. options may be NULL; only force and sync are used. named:
 * use a temporary name, so that other processes can open the file and write their parts. Fail with
 * GF_USAGE if another output of this process has the same target. */
gf_status gf_output_open(const char *path, const gf_file_options *options, bool named,
                         gf_output **output, gf_error *error);
/* Open the temporary file that another process created with `named`, to write a part of it. Only
 * the creator commits or removes it. path is used in messages. */
gf_status gf_output_join(const char *path, const char *temporary, gf_output **output,
                         gf_error *error);
/* Return the path as given, or "standard output". */
const char *gf_output_name(const gf_output *output);
/* Return the size of a prepared file, or the number of bytes written directly. */
uint64_t gf_output_bytes(const gf_output *output);
/* Return the path at which this process can open the file before it is committed. NULL if it is
 * written directly, or if output is NULL. */
const char *gf_output_pending_path(const gf_output *output);
/* Return whether gf_output_seek is supported. */
bool gf_output_seekable(const gf_output *output);
gf_status gf_output_write(gf_output *output, const void *data, size_t size, gf_error *error);
/* Write rows that are `stride` bytes apart in memory, without gaps. */
gf_status gf_output_write_rows(gf_output *output, const void *rows, size_t stride, size_t row_bytes,
                               uint64_t count, gf_error *error);
/* Set the offset of the next write, in bytes. */
gf_status gf_output_seek(gf_output *output, uint64_t offset, gf_error *error);
/* Flush, sync and close the file. Afterwards only the commit can fail. */
gf_status gf_output_prepare(gf_output *output, gf_error *error);
/* Give a prepared file its final name. */
gf_status gf_output_commit(gf_output *output, gf_error *error);
/* Commit several prepared outputs: all of them or none. If one fails, those before it are rolled
 * back and the files that they replaced are restored. Where the file system cannot exchange two
 * names, a replaced file cannot be restored, and the message names the output. */
gf_status gf_outputs_commit(gf_output *const *outputs, size_t count, gf_error *error);
/* Free the output. Remove the file if it is not committed. */
void gf_output_close(gf_output *output);

/* Return the part after the last dot of the file name, or "" if there is none. */
const char *gf_path_extension(const char *path);

/* ---- temporary files: the table that a signal handler removes -------------------------------- */

/* Register a path before its file is created. Return its slot, or -1 if the table is full or the
 * path is too long. Create the file and call gf_temporary_made at once: until then, a signal
 * handler in another thread waits for the caller. */
int gf_temporary_add(const char *path);
/* Mark the file as created. Call it also if the creation failed, or if another temporary file is
 * about to be renamed to this path. */
void gf_temporary_made(int slot);
/* Unregister a path after its file was removed or got its final name. slot may be -1. */
void gf_temporary_drop(int slot);

/* Block while the signal handler of another thread terminates the process. The handler may have
 * removed the caller's file; the resulting error must not be reported. */
void gf_temporary_abandon(void);

#endif
