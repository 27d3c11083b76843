#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "hash.h"

#define TITLE "gpufilter-done "
#define HEADER TITLE "1\n"

struct gf_cli_journal {
    char *path;
    int fd; /* -1: it cannot be written */
    bool quiet;
    char *waiting; /* whole lines, to be written together */
    size_t waiting_size, waiting_room;
    struct gf_noted {
        gf_cli_made made;
        char *name; /* made.name */
    } * list;       /* with room for one more than count: what is looked for */
    size_t count, room;
    gf_cli_index index; /* by name */
};

/* ---- lines ----------------------------------------------------------------------------------- */

/* Newlines in names would end a line. Returns what was written to text, which has room for twice
 * the name. */
static size_t escape(const char *name, char *text) {
    char *to = text;
    for (; *name; name++) {
        if (*name == '\n' || *name == '\\')
            *to++ = '\\';
        *to++ = *name == '\n' ? 'n' : *name;
    }
    *to = 0;
    return (size_t)(to - text);
}

static void unescape(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from == '\\' && from[1])
            from++;
        else {
            *to++ = *from;
            continue;
        }
        *to++ = *from == 'n' ? '\n' : *from;
    }
    *to = 0;
}

static uint32_t check_of(const char *text, size_t length) {
    const uint64_t hash = gf_cli_hash(GF_CLI_HASH_START, text, length);
    return (uint32_t)(hash ^ hash >> 32);
}

#define CHECK_LENGTH 9 /* eight digits and a blank */

/* The number that *at points to, and *at behind it and the blank that must follow. */
static bool read_number(char **at, int base, uint64_t *number) {
    char *end;
    *number = strtoull(*at, &end, base);
    if (end == *at || *end != ' ')
        return false;
    *at = end + 1;
    return true;
}

/* A line without its newline; false if it is none. made->name is within it. */
static bool parse(char *line, size_t length, gf_cli_made *made) {
    uint64_t check, time;
    char *at = line;
    if (length < CHECK_LENGTH || strlen(line) != length || !read_number(&at, 16, &check) ||
        at != line + CHECK_LENGTH || check != check_of(at, length - CHECK_LENGTH))
        return false;
    const char kind = *at;
    if ((kind != GF_CLI_BEGUN && kind != GF_CLI_DONE && kind != GF_CLI_FAILED) || at[1] != ' ')
        return false;
    at += 2;
    made->kind = (gf_cli_made_kind)kind;
    if (!read_number(&at, 16, &made->settings) || !read_number(&at, 16, &made->input) ||
        !read_number(&at, 10, &made->size) || !read_number(&at, 10, &time))
        return false;
    made->time = (int64_t)time;
    unescape(at);
    made->name = at;
    return true;
}

/* ---- what was noted -------------------------------------------------------------------------- */

static uint64_t hash_name(const void *things, size_t i) {
    return gf_cli_hash_text(GF_CLI_HASH_START, ((const struct gf_noted *)things)[i].made.name);
}

static bool same_name(const void *things, size_t i, size_t j) {
    const struct gf_noted *list = things;
    return strcmp(list[i].made.name, list[j].made.name) == 0;
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

/* The last one of a name takes the place of those before. */
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

const gf_cli_made *gf_cli_journal_find(gf_cli_journal *journal, const char *name) {
    if (!journal->count)
        return NULL;
    journal->list[journal->count].made.name = name;
    const size_t found = gf_cli_index_find(&journal->index, journal->list, journal->count);
    return found == GF_CLI_NONE ? NULL : &journal->list[found].made;
}

/* ---- the file -------------------------------------------------------------------------------- */

static gf_status refuse(const gf_cli_journal *journal, gf_error *error) {
    return gf_cli_fail(error, GF_FAILED,
                       "%s: is no record of finished outputs that this version knows; move it "
                       "away, or name another --out-dir",
                       journal->path);
}

/* Reads the first line, and the others if they are wanted. *torn: the last one has no end. */
static gf_status read_lines(gf_cli_journal *journal, FILE *file, bool all, bool *torn,
                            gf_error *error) {
    char *line = NULL;
    size_t room = 0;
    gf_status status = GF_OK;
    bool first = true;
    for (ssize_t length; !status && (length = getline(&line, &room, file)) != -1; first = false) {
        *torn = line[length - 1] != '\n';
        /* The first may be torn, too, but is then the only one. */
        if (first && strcmp(line, HEADER) != 0 && strncmp(HEADER, line, (size_t)length) != 0)
            status = refuse(journal, error);
        else if (first && !all)
            break;
        gf_cli_made made;
        if (status || first || *torn)
            continue;
        line[length - 1] = 0;
        if (parse(line, (size_t)length - 1, &made) && !keep(journal, &made))
            status = gf_cli_fail(error, GF_FAILED, "%s: out of memory", journal->path);
    }
    free(line);
    return status;
}

/* Puts the end to a torn last line, and the first line where there is none. */
static void begin_lines(gf_cli_journal *journal, bool empty) {
    struct stat info;
    char last = '\n';
    if (!empty && fstat(journal->fd, &info) == 0 && info.st_size > 0)
        (void)!pread(journal->fd, &last, 1, info.st_size - 1);
    if (last != '\n')
        (void)!write(journal->fd, "\n", 1);
    if (empty)
        (void)!write(journal->fd, HEADER, strlen(HEADER));
}

static void say_unwritable(gf_cli_journal *journal, int cause) {
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = -1;
    if (!journal->quiet)
        fprintf(stderr, "gpufilter: %s: cannot write: %s; --resume will do these files again\n",
                journal->path, strerror(cause));
    journal->quiet = true;
}

gf_status gf_cli_journal_open(const char *folder, bool read, bool quiet, gf_cli_journal **out,
                              gf_error *error) {
    const size_t size = strlen(folder) + sizeof GF_CLI_JOURNAL + 1;
    gf_cli_journal *journal = calloc(1, sizeof *journal);
    *out = NULL;
    if (!journal || !(journal->path = malloc(size))) {
        free(journal);
        return gf_cli_fail(error, GF_FAILED, "%s: out of memory", folder);
    }
    snprintf(journal->path, size, "%s/%s", folder, GF_CLI_JOURNAL);
    journal->fd = -1;
    journal->quiet = quiet;
    journal->index = (gf_cli_index){.hash = hash_name, .same = same_name};
    FILE *file = fopen(journal->path, "re");
    bool torn = false;
    gf_status status = GF_OK;
    struct stat info = {0};
    if (file) {
        status = read_lines(journal, file, read, &torn, error);
        (void)fstat(fileno(file), &info);
        fclose(file);
    } else if (errno != ENOENT && read) {
        status =
            gf_cli_fail(error, GF_FAILED, "%s: cannot read: %s", journal->path, strerror(errno));
    }
    if (status) {
        gf_cli_journal_close(journal);
        return status;
    }
    journal->fd = open(journal->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (journal->fd < 0)
        say_unwritable(journal, errno);
    else
        /* A first line that is torn is all there is: it is put anew, below what is left of it. */
        begin_lines(journal, info.st_size < (off_t)strlen(HEADER));
    *out = journal;
    return GF_OK;
}

void gf_cli_journal_flush(gf_cli_journal *journal) {
    ssize_t put = 0;
    if (journal->fd < 0 || !journal->waiting_size)
        return;
    do
        put = write(journal->fd, journal->waiting, journal->waiting_size);
    while (put < 0 && errno == EINTR);
    if (put != (ssize_t)journal->waiting_size)
        say_unwritable(journal, put < 0 ? errno : ENOSPC);
    journal->waiting_size = 0;
}

#define TOGETHER ((size_t)32 << 10)

void gf_cli_journal_add(gf_cli_journal *journal, const gf_cli_made *made) {
    const size_t most = 2 * strlen(made->name) + 128;
    if (journal->fd < 0)
        return;
    if (journal->waiting_size + most > journal->waiting_room) {
        const size_t room = journal->waiting_size + most + TOGETHER;
        char *waiting = realloc(journal->waiting, room);
        if (!waiting) {
            say_unwritable(journal, ENOMEM);
            return;
        }
        journal->waiting = waiting;
        journal->waiting_room = room;
    }
    char *line = journal->waiting + journal->waiting_size, check[CHECK_LENGTH + 1];
    size_t used = CHECK_LENGTH;
    used += (size_t)snprintf(line + used, most - used,
                             "%c %016" PRIx64 " %016" PRIx64 " %" PRIu64 " %" PRIu64 " ",
                             (char)made->kind, made->settings, made->input, made->size, made->time);
    used += escape(made->name, line + used);
    snprintf(check, sizeof check, "%08" PRIx32 " ",
             check_of(line + CHECK_LENGTH, used - CHECK_LENGTH));
    memcpy(line, check, CHECK_LENGTH);
    line[used++] = '\n';
    journal->waiting_size += used;
    if (made->kind != GF_CLI_BEGUN || journal->waiting_size >= TOGETHER)
        gf_cli_journal_flush(journal);
}

void gf_cli_journal_close(gf_cli_journal *journal) {
    if (!journal)
        return;
    if (journal->fd >= 0)
        close(journal->fd);
    for (size_t i = 0; i < journal->count; i++)
        free(journal->list[i].name);
    free(journal->list);
    gf_cli_index_free(&journal->index);
    free(journal->waiting);
    free(journal->path);
    free(journal);
}
