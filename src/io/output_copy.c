/* A file without a name that gets none: its bytes go to one that has a temporary name. */
#define _GNU_SOURCE /* futimens */

#include "io/output_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/output_access.h"
#include "io/output_sync.h"
#include "io/output_temporary.h"

/* From here on these return 0 or an errno. */

static int write_piece(int to, const unsigned char *data, size_t size) {
    while (size != 0) {
        const ssize_t put = write(to, data, size);
        if (put < 0 && errno != EINTR)
            return errno;
        data += put < 0 ? 0 : put;
        size -= put < 0 ? 0 : (size_t)put;
    }
    return 0;
}

static int copy_bytes(gf_output *output, int from) {
    off_t at = 0;
    int cause = 0;

    for (ssize_t got = 1; got != 0 && cause == 0; at += got > 0 ? got : 0) {
        got = pread(from, output->buffer, sizeof output->buffer, at);
        if (got < 0)
            cause = errno == EINTR ? 0 : errno;
        else
            cause = write_piece(output->fd, output->buffer, (size_t)got);
    }
    return cause;
}

/* Time and all: a record of what was made may hold it. */
static int copy_rest(gf_output *output, const struct stat *info, const char *from) {
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, info->st_mtim};

    if ((output->replaces && gf_output_keep_access(output, from, info) != 0) ||
        futimens(output->fd, times) != 0)
        return errno;
    const int cause = output->synced ? gf_output_sync_file(output) : 0;
    return cause == 0 && fstat(output->fd, &output->made) != 0 ? errno : cause;
}

int gf_output_copy_to_temporary(gf_output *output, int cause) {
    const int from = output->fd;
    const mode_t allowed = output->replaces ? S_IRWXU : 0777;
    struct stat info;
    gf_error unread;

    if (fstat(from, &info) != 0)
        return errno;
    if (gf_output_create_temporary(output, info.st_mode & allowed, &unread) != GF_OK) {
        output->fd = from;
        return cause;
    }
    cause = copy_bytes(output, from);
    if (cause == 0)
        cause = copy_rest(output, &info, output->nameless);
    (void)close(from);
    output->nameless[0] = '\0';
    output->owned = false;
    if (close(output->fd) != 0 && errno != EINTR && cause == 0)
        cause = errno;
    output->fd = -1;
    return cause;
}
