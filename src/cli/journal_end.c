#include "journal_end.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "folders.h"
#include "journal_file.h"
#include "journal_line.h"

#define HEADER GF_CLI_JOURNAL_HEADER
#define HEADER_LENGTH (sizeof HEADER - 1)

/* Returns 0 or an errno. */
static int put(int fd, const char *text, size_t size) {
    ssize_t done;
    do
        done = write(fd, text, size);
    while (done < 0 && errno == EINTR);
    return done == (ssize_t)size ? 0 : done < 0 ? errno : ENOSPC;
}

/* Puts what is missing of the first line, and the end to a torn last one. If two runs do that at
 * once, it leaves a line that is none. */
static int begin_lines(int fd) {
    struct stat info;
    char title[HEADER_LENGTH], last = '\n';
    const ssize_t length = pread(fd, title, sizeof title, 0);
    if (length < 0 || fstat(fd, &info) != 0)
        return errno;
    if (length > 0 && title[0] == 0) { /* what a power failure left: the title comes behind it */
        if (pread(fd, &last, 1, info.st_size - 1) < 0)
            return errno;
        return last == '\n' ? 0 : put(fd, "\n" HEADER, 1 + HEADER_LENGTH);
    }
    /* Something else has taken its place since it was looked at. */
    if (memcmp(title, HEADER, (size_t)length) != 0)
        return EEXIST;
    if (length < (ssize_t)HEADER_LENGTH)
        return put(fd, &HEADER[length], HEADER_LENGTH - (size_t)length);
    if (pread(fd, &last, 1, info.st_size - 1) < 0)
        return errno;
    return last == '\n' ? 0 : put(fd, "\n", 1);
}

static int open_to_write(gf_cli_journal_end *end) {
    const int flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    end->fd = open(end->path, flags, 0666);
    const int cause = end->fd < 0 ? errno : begin_lines(end->fd);
    return cause || !end->sync ? cause : gf_cli_folder_sync(end->path);
}

/* Returns 0 or an errno. */
static int sync_lines(int fd) {
    int failed;
    do
        failed = fdatasync(fd);
    while (failed != 0 && errno == EINTR);
    return failed ? errno : 0;
}

/* The first one is told. */
static void note_cause(gf_cli_journal_end *end, int cause) {
    end->cause = end->cause ? end->cause : cause;
}

void gf_cli_journal_end_init(gf_cli_journal_end *end, char *path, bool sync) {
    *end = (gf_cli_journal_end){.path = path, .fd = -1, .sync = sync};
    pthread_mutex_init(&end->lock, NULL);
}

void gf_cli_journal_end_add(gf_cli_journal_end *end, const gf_cli_made *made) {
    char *line = malloc(2 * strlen(made->name) + GF_CLI_LINE_ROOM);
    const size_t size = line ? gf_cli_line_write(made, line) : 0;
    pthread_mutex_lock(&end->lock);
    int cause = line ? 0 : ENOMEM;
    if (!cause && end->fd < 0)
        cause = open_to_write(end);
    else if (!cause && end->torn)
        cause = begin_lines(end->fd);
    if (!cause)
        cause = put(end->fd, line, size);
    /* What could not be written once may be the next time, behind what was written of this line. */
    end->torn = cause != 0;
    note_cause(end, cause);
    pthread_mutex_unlock(&end->lock);
    /* Others may add theirs meanwhile: the disk then takes them together. */
    cause = !cause && end->sync ? sync_lines(end->fd) : 0;
    pthread_mutex_lock(&end->lock);
    note_cause(end, cause);
    pthread_mutex_unlock(&end->lock);
    free(line);
}

bool gf_cli_journal_end_trouble(gf_cli_journal_end *end, gf_error *error) {
    pthread_mutex_lock(&end->lock);
    const int cause = end->told ? 0 : end->cause;
    end->told = end->cause != 0;
    pthread_mutex_unlock(&end->lock);
    if (cause)
        gf_set_error(error, GF_FAILED,
                     "%s: cannot write: %s; --resume will not know all that this run makes, and "
                     "will need --force to replace that",
                     end->path, strerror(cause));
    return cause != 0;
}

void gf_cli_journal_end_close(gf_cli_journal_end *end) {
    if (end->fd >= 0)
        close(end->fd);
    pthread_mutex_destroy(&end->lock);
    free(end->path);
}
