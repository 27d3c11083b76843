#include "journal.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "folders.h"
#include "hash.h"
#include "journal_end.h"
#include "journal_file.h"

struct gf_cli_journal {
    char *folder;
    gf_cli_journal_file *files; /* with room for one more than count: what is looked for */
    size_t file_count, file_room;
    gf_cli_index by_path;
    struct gf_noted {
        gf_cli_made made;
        char *name;    /* made.name */
        size_t file;   /* which one said so */
        bool disputed; /* another one said otherwise, and nobody knows which was last */
    } * list;          /* with room for one more than count: what is looked for */
    size_t count, room;
    gf_cli_index by_look;
    size_t reading; /* file */
    gf_cli_journal_end end;
};

/* ---- what was noted -------------------------------------------------------------------------- */

static uint64_t hash_look(const void *things, size_t i) {
    const gf_cli_made *made = &((const struct gf_noted *)things)[i].made;
    uint64_t hash = gf_cli_hash_text(GF_CLI_HASH_START, made->name);
    return gf_cli_hash(hash, &made->time, sizeof made->time);
}

static bool same_look(const void *things, size_t i, size_t j) {
    const struct gf_noted *list = things;
    const gf_cli_made *a = &list[i].made, *b = &list[j].made;
    return a->time == b->time && strcmp(a->name, b->name) == 0;
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

/* The last one of a look takes the place of those before it in the same file. */
static void keep_again(gf_cli_journal *journal, struct gf_noted *same, const gf_cli_made *made) {
    if (same->file != journal->reading &&
        (same->made.settings != made->settings || same->made.input != made->input ||
         same->made.size != made->size))
        same->disputed = true;
    same->made = *made;
    same->made.name = same->name;
    same->file = journal->reading;
}

/* gf_cli_journal_keep */
static bool keep(void *context, const gf_cli_made *made) {
    gf_cli_journal *journal = context;
    size_t other;
    if (!grow(journal))
        return false;
    struct gf_noted *last = &journal->list[journal->count];
    *last = (struct gf_noted){.made = *made, .file = journal->reading};
    if (!gf_cli_index_add(&journal->by_look, journal->list, journal->count, &other))
        return false;
    if (other != GF_CLI_NONE) {
        keep_again(journal, &journal->list[other], made);
        return true;
    }
    last->made.name = last->name = strdup(made->name);
    /* Without its name the table could not be searched any more: the caller gives up. */
    journal->count += last->name != NULL;
    return last->name != NULL;
}

const gf_cli_made *gf_cli_journal_find(gf_cli_journal *journal, const char *name, int64_t time,
                                       bool *sure) {
    *sure = false;
    if (!journal->count)
        return NULL;
    journal->list[journal->count].made = (gf_cli_made){.time = time, .name = name};
    const size_t found = gf_cli_index_find(&journal->by_look, journal->list, journal->count);
    if (found == GF_CLI_NONE)
        return NULL;
    *sure = !journal->list[found].disputed;
    return &journal->list[found].made;
}

/* ---- its files ------------------------------------------------------------------------------- */

static uint64_t hash_path(const void *things, size_t i) {
    return gf_cli_hash_text(GF_CLI_HASH_START, ((const gf_cli_journal_file *)things)[i].path);
}

static bool same_path(const void *things, size_t i, size_t j) {
    const gf_cli_journal_file *files = things;
    return strcmp(files[i].path, files[j].path) == 0;
}

/* Takes the path. False: out of memory. */
static bool add_file(gf_cli_journal *journal, char *path) {
    if (path && journal->file_count == journal->file_room) {
        const size_t room = journal->file_room ? 2 * journal->file_room : 8;
        gf_cli_journal_file *files = realloc(journal->files, room * sizeof *files);
        if (files) {
            journal->files = files;
            journal->file_room = room;
        }
    }
    size_t other;
    if (path && journal->file_count < journal->file_room) {
        journal->files[journal->file_count] = (gf_cli_journal_file){.path = path};
        if (gf_cli_index_add(&journal->by_path, journal->files, journal->file_count, &other)) {
            if (other == GF_CLI_NONE)
                journal->file_count++;
            else
                free(path);
            return true;
        }
    }
    free(path);
    return false;
}

static gf_status list_files(gf_cli_journal *journal, gf_error *error) {
    DIR *folder = opendir(journal->folder);
    bool good = true;
    errno = folder ? 0 : errno;
    for (struct dirent *entry; folder && good && (entry = readdir(folder)) != NULL; errno = 0)
        if (gf_cli_journal_is_name(entry->d_name))
            good = add_file(journal, gf_cli_join(journal->folder, entry->d_name));
    const int cause = errno;
    if (folder)
        closedir(folder);
    if (!good)
        return gf_set_error(error, GF_FAILED, "%s: out of memory", journal->folder);
    if (cause)
        return gf_set_error(error, GF_FAILED,
                            "%s: cannot read the folder, to see what is finished: %s",
                            journal->folder, strerror(cause));
    return GF_OK;
}

/* ---- all ------------------------------------------------------------------------------------- */

gf_status gf_cli_journal_open(const char *folder, uint32_t shard, uint32_t shards, bool sync,
                              gf_cli_journal **out, gf_error *error) {
    char *path = gf_cli_journal_path(folder, shard, shards), *copy = strdup(folder);
    gf_cli_journal *journal = calloc(1, sizeof *journal);
    *out = NULL;
    if (!journal || !path || !copy) {
        free(journal);
        free(path);
        free(copy);
        return gf_set_error(error, GF_FAILED, "%s: out of memory", folder);
    }
    journal->folder = copy;
    journal->by_path = (gf_cli_index){.hash = hash_path, .same = same_path};
    journal->by_look = (gf_cli_index){.hash = hash_look, .same = same_look};
    gf_cli_journal_end_init(&journal->end, path, sync);
    const gf_status status = gf_cli_journal_file_check(path, error);
    if (status)
        gf_cli_journal_close(journal);
    else
        *out = journal;
    return status;
}

gf_status gf_cli_journal_read_on(gf_cli_journal *journal, gf_error *error) {
    gf_status status = GF_OK;
    for (size_t i = 0; i < journal->file_count && !status; i++) {
        journal->reading = i;
        status = gf_cli_journal_file_read(&journal->files[i], keep, journal, error);
    }
    return status;
}

gf_status gf_cli_journal_read(gf_cli_journal *journal, gf_error *error) {
    const gf_status status = list_files(journal, error);
    return status ? status : gf_cli_journal_read_on(journal, error);
}

void gf_cli_journal_add(gf_cli_journal *journal, const gf_cli_made *made) {
    gf_cli_journal_end_add(&journal->end, made);
}

bool gf_cli_journal_trouble(gf_cli_journal *journal, gf_error *error) {
    return gf_cli_journal_end_trouble(&journal->end, error);
}

void gf_cli_journal_close(gf_cli_journal *journal) {
    if (!journal)
        return;
    gf_cli_journal_end_close(&journal->end);
    for (size_t i = 0; i < journal->file_count; i++)
        free(journal->files[i].path);
    free(journal->files);
    gf_cli_index_free(&journal->by_path);
    for (size_t i = 0; i < journal->count; i++)
        free(journal->list[i].name);
    free(journal->list);
    gf_cli_index_free(&journal->by_look);
    free(journal->folder);
    free(journal);
}
