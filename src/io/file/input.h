/* Buffered input files. The first GF_PEEK bytes can be examined before they are read. */
#ifndef GF_INPUT_H
#define GF_INPUT_H

#include <stdio.h>

#include "gpufilter.h"

#define GF_PEEK 16

typedef struct gf_input {
    FILE *file;
    char *buffer; /* stdio buffer of file; NULL: its default */
    char *name;   /* the path, or "standard input" */
    unsigned char head[GF_PEEK];
    size_t head_size; /* bytes in head */
    size_t head_used; /* bytes of head returned so far */
    uint64_t offset;  /* bytes returned so far */
    int last;         /* return value of the last gf_input_byte */
    bool regular;     /* regular file: gf_input_read_at is available */
    uint64_t size;    /* bytes of a regular file */
} gf_input;

/* Open a path, or standard input for "-", and fill head. */
gf_status gf_input_open(gf_input *input, const char *path, gf_error *error);
/* Open bytes in memory, which are borrowed until the input is closed. name: for messages. */
gf_status gf_input_open_memory(gf_input *input, const void *data, size_t size, const char *name,
                               gf_error *error);
/* Read up to size bytes and store their number in *got: fewer only at the end of the file. */
gf_status gf_input_read(gf_input *input, void *data, size_t size, size_t *got, gf_error *error);
/* Read exactly size bytes. A shorter file is an error. */
gf_status gf_input_read_exactly(gf_input *input, void *data, size_t size, gf_error *error);
/* Return at most GF_PEEK bytes to the input, from which at least as many have been read. */
void gf_input_unread(gf_input *input, const void *data, size_t size);
/* Return the next byte, or EOF at the end of the file or on an error (check ferror). */
int gf_input_byte(gf_input *input);
/* Read exactly size bytes at an offset of a regular file. The stream position does not change. A
 * shorter file is an error. */
gf_status gf_input_read_at(gf_input *input, void *data, size_t size, uint64_t offset,
                           gf_error *error);
/* Continue at an offset of a regular file, also in other processes that share standard input. */
void gf_input_seek(gf_input *input, uint64_t offset);
void gf_input_close(gf_input *input);
/* If cause is EINTR or EAGAIN (a signal, or a non-blocking pipe that is empty or full), wait for
 * the poll events if necessary and return true. Return false for other errors. */
bool gf_can_retry(int fd, short events, int cause);
/* Parse digits and advance *text past them. Numbers above UINT64_MAX become that. Return false if
 * there is no digit. */
bool gf_parse_digits(const char **text, uint64_t *number);
/* Fail with the text of cause, an errno. */
gf_status gf_input_fail_read(const gf_input *input, int cause, gf_error *error);
/* Fail for a page that a file of `pages` pages lacks. */
gf_status gf_fail_page(const char *name, uint64_t page, uint64_t pages, gf_error *error);
/* Fail for a truncated file. */
gf_status gf_fail_short(const char *name, gf_error *error);

#endif
