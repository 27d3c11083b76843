/* Input files as bytes, of which the first can be peeked at. */
#ifndef GF_INPUT_H
#define GF_INPUT_H

#include <stdio.h>

#include "gpufilter.h"

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
/* Is the failure of a call one that goes away by waiting: a signal came, or a pipe without blocking
 * is empty, or full? Waits, if so. Events are those of poll. */
bool gf_can_retry(int fd, short events, int cause);
/* Fails with what reading it met, an errno. */
gf_status gf_input_fail_read(const gf_input *input, int cause, gf_error *error);
/* Fails for a file that ends too early. */
gf_status gf_fail_short(const char *name, gf_error *error);

#endif
