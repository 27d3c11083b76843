#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "hash.h"
#include "journal_line.h"

#define TITLE "gpufilter-done "
#define HEADER TITLE "2\n"
#define HEADER_LENGTH (sizeof HEADER - 1)

struct gf_cli_journal {
    char *path;
    FILE *file; /* to read; NULL: it was not there when it was looked for */
    bool begun; /* its first line has been read */
    struct gf_noted {
        gf_cli_made made;
        char *name; /* made.name */
    } * list;       /* with room for one more than count: what is looked for */
    size_t count, room;
    gf_cli_index index; /* by what an output looks like */

    pthread_mutex_t lock; /* of what is below */
    int fd;               /* to write; -1: it is not open */
    int cause;            /* why it cannot be written, an errno */
    bool told;
};

/* ---- what was noted -------------------------------------------------------------------------- */

static uint64_t hash_look(const void *things, size_t i) {
    const gf_cli_made *made = &((const struct gf_noted *)things)[i].made;
    uint64_t hash = gf_cli_hash_text(GF_CLI_HASH_START, made->name);
    hash = gf_cli_hash(hash, &made->size, sizeof made->size);
    return gf_cli_hash(hash, &made->time, sizeof made->time);
}

static bool same_look(const void *things, size_t i, size_t j) {
    const struct gf_noted *list = things;
    const gf_cli_made *a = &list[i].made, *b = &list[j].made;
    return a->size == b->size && a->time == b->time && strcmp(a->name, b->name) == 0;
}

static bool grow(gf_cli_journal *journal) {
    if (journal->count + 1 < journal->room)
        return true;
    const size_t room = journal->room ? 2 * journal->room : 64;
    struct gf_noted *list = realloc(journal->list, room * sizeof *list);
    if (!list)
        return false;
    journal->list = list;
    journal->room = room;
    return true;
}

/* The last one of a look takes the place of those before. */
static bool keep(gf_cli_journal *journal, const gf_cli_made *made) {
    size_t other;
    if (!grow(journal))
        return false;
    struct gf_noted *last = &journal->list[journal->count];
    last->made = *made;
    if (!gf_cli_index_add(&journal->index, journal->list, journal->count, &other))
        return false;
    if (other != GF_CLI_NONE) {
        struct gf_noted *same = &journal->list[other];
        same->made = *made;
        same->made.name = same->name;
        return true;
    }
    last->made.name = last->name = strdup(made->name);
    /* Without its name the table could not be searched any more: the caller gives up. */
    journal->count += last->name != NULL;
    return last->name != NULL;
}

const gf_cli_made *gf_cli_journal_find(gf_cli_journal *journal, const char *name, uint64_t size,
                                       int64_t time) {
    if (!journal->count)
        return NULL;
    journal->list[journal->count].made = (gf_cli_made){.size = size, .time = time, .name = name};
    const size_t found = gf_cli_index_find(&journal->index, journal->list, journal->count);
    return found == GF_CLI_NONE ? NULL : &journal->list[found].made;
}

/* ---- reading --------------------------------------------------------------------------------- */

static gf_status fail_read(const gf_cli_journal *journal, int cause, gf_error *error) {
    return gf_cli_fail(error, GF_FAILED, "%s: cannot read: %s", journal->path, strerror(cause));
}

/* Opens the file. *cause: an errno if it could not be. A pipe of that name is not waited for. */
static gf_status open_to_read(gf_cli_journal *journal, int *cause, gf_error *error) {
    const int fd = open(journal->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat info;
    *cause = fd < 0 ? errno : 0;
    if (fd < 0)
        return GF_OK;
    const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    if (regular)
        journal->file = fdopen(fd, "r");
    if (journal->file)
        return GF_OK;
    close(fd);
    if (regular)
        return gf_cli_fail(error, GF_FAILED, "%s: out of memory", journal->path);
    return gf_cli_fail(error, GF_FAILED,
                       "%s: is no regular file; move it away, or name another --out-dir",
                       journal->path);
}

/* The first line. It may be torn, but is then the only one. */
static gf_status check_title(const gf_cli_journal *journal, const char *line, size_t length,
                             gf_error *error) {
    if (strncmp(HEADER, line, length) == 0)
        return GF_OK;
    if (strncmp(TITLE, line, strlen(TITLE)) == 0)
        return gf_cli_fail(error, GF_FAILED,
                           "%s: is the record of another version of gpufilter; use that one, name "
                           "another --out-dir, or move the record away, and --force makes the "
                           "outputs again",
                           journal->path);
    return gf_cli_fail(error, GF_FAILED,
                       "%s: is no record of finished outputs; move it away, or name another "
                       "--out-dir",
                       journal->path);
}

/* Reads on: the first line, and the others if they are wanted. */
static gf_status read_lines(gf_cli_journal *journal, bool all, gf_error *error) {
    char *line = NULL;
    size_t room = 0;
    gf_status status = GF_OK;
    clearerr(journal->file);
    while (!status && (all || !journal->begun)) {
        gf_cli_made made;
        const off_t start = ftello(journal->file);
        const ssize_t length = getline(&line, &room, journal->file);
        if (length <= 0)
            break;
        if (!journal->begun)
            status = check_title(journal, line, (size_t)length, error);
        /* What has no end is no line yet, and is looked at again the next time. */
        if (line[length - 1] != '\n') {
            (void)fseeko(journal->file, start, SEEK_SET);
            break;
        }
        line[length - 1] = 0;
        if (journal->begun && gf_cli_line_read(line, (size_t)length - 1, &made) &&
            !keep(journal, &made))
            status = gf_cli_fail(error, GF_FAILED, "%s: out of memory", journal->path);
        journal->begun = true;
    }
    if (!status && ferror(journal->file))
        status = fail_read(journal, errno, error);
    free(line);
    return status;
}

gf_status gf_cli_journal_open(const char *folder, gf_cli_journal **out, gf_error *error) {
    const size_t size = strlen(folder) + sizeof GF_CLI_JOURNAL + 1;
    gf_cli_journal *journal = calloc(1, sizeof *journal);
    int cause;
    *out = NULL;
    if (!journal || !(journal->path = malloc(size))) {
        free(journal);
        return gf_cli_fail(error, GF_FAILED, "%s: out of memory", folder);
    }
    snprintf(journal->path, size, "%s/%s", folder, GF_CLI_JOURNAL);
    pthread_mutex_init(&journal->lock, NULL);
    journal->fd = -1;
    journal->index = (gf_cli_index){.hash = hash_look, .same = same_look};
    /* What cannot be opened now cannot be written either, and that is told when it is tried. */
    gf_status status = open_to_read(journal, &cause, error);
    if (!status && journal->file)
        status = read_lines(journal, false, error);
    if (status)
        gf_cli_journal_close(journal);
    else
        *out = journal;
    return status;
}

gf_status gf_cli_journal_read(gf_cli_journal *journal, gf_error *error) {
    int cause = 0;
    gf_status status = journal->file ? GF_OK : open_to_read(journal, &cause, error);
    if (!status && cause && cause != ENOENT)
        status = fail_read(journal, cause, error);
    return status || !journal->file ? status : read_lines(journal, true, error);
}

/* ---- writing --------------------------------------------------------------------------------- */

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
    /* Something else has taken its place since it was looked at. */
    if (memcmp(title, HEADER, (size_t)length) != 0)
        return EEXIST;
    if (length < (ssize_t)HEADER_LENGTH)
        return put(fd, &HEADER[length], HEADER_LENGTH - (size_t)length);
    if (pread(fd, &last, 1, info.st_size - 1) < 0)
        return errno;
    return last == '\n' ? 0 : put(fd, "\n", 1);
}

static int open_to_write(gf_cli_journal *journal) {
    const int flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    journal->fd = open(journal->path, flags, 0666);
    return journal->fd < 0 ? errno : begin_lines(journal->fd);
}

void gf_cli_journal_add(gf_cli_journal *journal, const gf_cli_made *made) {
    char *line = malloc(2 * strlen(made->name) + GF_CLI_LINE_ROOM);
    const size_t size = line ? gf_cli_line_write(made, line) : 0;
    pthread_mutex_lock(&journal->lock);
    if (!journal->cause && journal->fd < 0)
        journal->cause = open_to_write(journal);
    if (!journal->cause)
        journal->cause = line ? put(journal->fd, line, size) : ENOMEM;
    pthread_mutex_unlock(&journal->lock);
    free(line);
}

bool gf_cli_journal_trouble(gf_cli_journal *journal, gf_error *error) {
    pthread_mutex_lock(&journal->lock);
    const int cause = journal->told ? 0 : journal->cause;
    journal->told = journal->cause != 0;
    pthread_mutex_unlock(&journal->lock);
    if (cause)
        gf_cli_fail(error, GF_FAILED,
                    "%s: cannot write: %s; --resume will not know what this run makes, and will "
                    "need --force to replace it",
                    journal->path, strerror(cause));
    return cause != 0;
}

void gf_cli_journal_close(gf_cli_journal *journal) {
    if (!journal)
        return;
    if (journal->fd >= 0)
        close(journal->fd);
    if (journal->file)
        fclose(journal->file);
    pthread_mutex_destroy(&journal->lock);
    for (size_t i = 0; i < journal->count; i++)
        free(journal->list[i].name);
    free(journal->list);
    gf_cli_index_free(&journal->index);
    free(journal->path);
    free(journal);
}
