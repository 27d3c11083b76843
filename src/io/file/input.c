#define _GNU_SOURCE /* fopen's "e" and 64-bit pread */

#include "io/file/input.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "core/error.h"

enum { BUFFER_BYTES = 1 << 15 };

gf_status gf_input_fail_read(const gf_input *input, int cause, gf_error *error) {
    return gf_fail(error, GF_FAILED, "%s: cannot read: %s", input->name, strerror(cause));
}

gf_status gf_fail_page(const char *name, uint64_t page, uint64_t pages, gf_error *error) {
    return gf_fail(error, GF_FAILED,
                   "%s: has no page %" PRIu64 "; choose one from 1 to %" PRIu64 " with --page",
                   name, page, pages);
}

gf_status gf_fail_short(const char *name, gf_error *error) {
    return gf_fail(error, GF_FAILED, "%s: the file ends too early; get a complete copy", name);
}

/* strtoull() would accept signs, spaces and locale-specific forms. */
bool gf_parse_digits(const char **text, uint64_t *number) {
    const char *at = *text;
    uint64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            value = UINT64_MAX;
    *number = value;
    const bool found = at != *text;
    *text = at;
    return found;
}

bool gf_can_retry(int fd, short events, int cause) {
    struct pollfd wait = {.fd = fd, .events = events};
    if (cause == EAGAIN && poll(&wait, 1, -1) < 0 && errno != EINTR)
        return false;
    return cause == EAGAIN || cause == EINTR;
}

/* Read with fread, and wait if the descriptor is non-blocking. Fewer than size bytes are returned
 * at the end of the file or with *cause set. */
static size_t input_read_stream(FILE *file, unsigned char *data, size_t size, int *cause) {
    size_t got = 0;
    *cause = 0;
    while (got < size) {
        errno = 0;
        got += fread(data + got, 1, size - got, file);
        if (got == size || feof(file))
            break;
        if (!gf_can_retry(fileno(file), POLLIN, errno)) {
            *cause = errno != 0 ? errno : EIO;
            break;
        }
        clearerr(file);
    }
    return got;
}

gf_status gf_input_open(gf_input *input, const char *path, gf_error *error) {
    const bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    struct stat info;
    int cause = 0;
    *input = (gf_input){.name = strdup(name)};
    if (!input->name)
        return gf_fail_memory(error, name, strlen(name) + 1, "its name");
    input->file = standard ? stdin : fopen(path, "rbe");
    if (!input->file || fstat(fileno(input->file), &info) != 0) {
        cause = errno;
        gf_fail(error, GF_FAILED, "%s: cannot open: %s", name, strerror(cause));
        (void)gf_fail_cause(error, cause);
        goto failed;
    }
    if (S_ISDIR(info.st_mode)) {
        gf_fail(error, GF_FAILED, "%s: is a directory; name an image file", name);
        goto failed;
    }
    /* Failure is harmless. The buffer is allocated here because glibc ignores the size if the
     * pointer is NULL and reads 4 KiB at a time: 1 to 3 % of a run. */
    if (!standard && (input->buffer = malloc(BUFFER_BYTES)))
        (void)setvbuf(input->file, input->buffer, _IOFBF, BUFFER_BYTES);
    /* Offsets are relative to the start of the input. Standard input that another process has
     * already read from is treated as a pipe. */
    input->regular = S_ISREG(info.st_mode) && ftello(input->file) == 0;
    input->size = input->regular ? (uint64_t)info.st_size : 0;
    input->head_size = input_read_stream(input->file, input->head, GF_PEEK, &cause);
    if (cause == 0)
        return GF_OK;
    gf_input_fail_read(input, cause, error);

failed:
    gf_input_close(input);
    return GF_FAILED;
}

gf_status gf_input_open_memory(gf_input *input, const void *data, size_t size, const char *name,
                               gf_error *error) {
    int cause;
    *input = (gf_input){.name = strdup(name)};
    if (!input->name)
        return gf_fail_memory(error, name, strlen(name) + 1, "its name");
    input->file = fmemopen((void *)data, size, "rb"); /* never written */
    if (!input->file) {
        gf_fail(error, GF_FAILED, "%s: cannot open: %s", name, strerror(errno));
        gf_input_close(input);
        return GF_FAILED;
    }
    input->head_size = input_read_stream(input->file, input->head, GF_PEEK, &cause);
    return GF_OK;
}

gf_status gf_input_read(gf_input *input, void *data, size_t size, size_t *got, gf_error *error) {
    unsigned char *bytes = data;
    const size_t held = input->head_size - input->head_used, peeked = held < size ? held : size;
    int cause;
    memcpy(bytes, input->head + input->head_used, peeked);
    input->head_used += peeked;
    *got = peeked + input_read_stream(input->file, bytes + peeked, size - peeked, &cause);
    input->offset += *got;
    return cause != 0 ? gf_input_fail_read(input, cause, error) : GF_OK;
}

gf_status gf_input_read_exactly(gf_input *input, void *data, size_t size, gf_error *error) {
    size_t got;
    gf_status status = gf_input_read(input, data, size, &got, error);
    return !status && got < size ? gf_fail_short(input->name, error) : status;
}

void gf_input_unread(gf_input *input, const void *data, size_t size) {
    memcpy(input->head, data, size);
    input->head_size = size;
    input->head_used = 0;
    input->offset -= size;
}

int gf_input_byte(gf_input *input) {
    unsigned char byte;
    int cause;
    int c;
    if (input->head_used < input->head_size) {
        c = input->head[input->head_used++];
    } else {
        c = getc_unlocked(input->file);
        if (c == EOF && !feof(input->file)) {
            clearerr(input->file);
            c = input_read_stream(input->file, &byte, 1, &cause) == 1 ? byte : EOF;
        }
    }
    input->offset += c != EOF;
    input->last = c;
    return c;
}

gf_status gf_input_read_at(gf_input *input, void *data, size_t size, uint64_t offset,
                           gf_error *error) {
    unsigned char *bytes = data;
    for (size_t done = 0; done < size;) {
        const ssize_t got =
            pread(fileno(input->file), bytes + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno != EINTR)
            return gf_input_fail_read(input, errno, error);
        if (got == 0)
            return gf_fail_short(input->name, error);
        done += got > 0 ? (size_t)got : 0;
    }
    return GF_OK;
}

void gf_input_seek(gf_input *input, uint64_t offset) {
    (void)fseeko(input->file, (off_t)offset, SEEK_SET);
    input->head_used = input->head_size;
    input->offset = offset;
}

void gf_input_close(gf_input *input) {
    /* The file was only read: an error of fclose loses no data. */
    if (input->file && input->file != stdin)
        (void)fclose(input->file);
    free(input->buffer);
    free(input->name);
    *input = (gf_input){0};
}
