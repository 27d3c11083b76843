#define _GNU_SOURCE /* strcasestr */
#include "gather.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "folders.h"
#include "name.h"

typedef struct gf_gather {
    gf_cli_inputs *inputs;
    bool recursive, fail_fast;
    const char *out_dir;
    bool out_there; /* it exists, and this is it: */
    struct stat out;
} gf_gather;

int64_t gf_cli_time(const struct stat *info) {
    const int64_t seconds = info->st_mtim.tv_sec;
    int64_t time;
    if (__builtin_mul_overflow(seconds, INT64_C(1000000000), &time) ||
        __builtin_add_overflow(time, (int64_t)info->st_mtim.tv_nsec, &time))
        return seconds < 0 ? INT64_MIN : INT64_MAX;
    return time;
}

static gf_status out_of_memory(gf_error *error) {
    return gf_set_error(error, GF_FAILED, "inputs: out of memory for their names");
}

/* Tells, and goes on unless that is not wanted. */
static gf_status complain(const gf_gather *gather, gf_error *error) {
    if (gather->fail_fast)
        return error->status;
    gf_cli_complain(error);
    gather->inputs->failed++;
    error->status = GF_OK;
    error->message[0] = 0;
    return GF_OK;
}

/* Takes the path. info: NULL if nothing is known of it. */
static gf_status add(gf_gather *gather, char *path, size_t below, const struct stat *info,
                     gf_error *error) {
    gf_cli_inputs *inputs = gather->inputs;
    if (path && inputs->count == inputs->room) {
        const size_t room = inputs->room ? 2 * inputs->room : 64;
        gf_cli_input *list = realloc(inputs->list, room * sizeof *list);
        if (list) {
            inputs->list = list;
            inputs->room = room;
        }
    }
    if (!path || inputs->count == inputs->room) {
        free(path);
        return out_of_memory(error);
    }
    gf_cli_input *input = &inputs->list[inputs->count++];
    *input = (gf_cli_input){.path = path, .below = below, .there = info != NULL};
    if (info) {
        input->device = info->st_dev;
        input->inode = info->st_ino;
        input->bytes = S_ISREG(info->st_mode) ? (uint64_t)info->st_size : 0;
        input->time = gf_cli_time(info);
    }
    return GF_OK;
}

/* ---- folders --------------------------------------------------------------------------------- */

typedef struct gf_names {
    char **list;
    size_t count, room;
} gf_names;

static bool keep_name(gf_names *names, const char *name) {
    if (names->count == names->room) {
        const size_t room = names->room ? 2 * names->room : 64;
        char **list = realloc(names->list, room * sizeof *list);
        if (!list)
            return false;
        names->list = list;
        names->room = room;
    }
    names->list[names->count] = strdup(name);
    return names->list[names->count++] != NULL;
}

static void free_names(gf_names *names) {
    for (size_t i = 0; i < names->count; i++)
        free(names->list[i]);
    free(names->list);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All at once, so that no folder is open while another is read. Hidden ones are not named. */
static gf_status read_folder(const char *path, gf_names *names, gf_error *error) {
    DIR *folder = opendir(path);
    if (!folder)
        return gf_set_error(error, GF_FAILED, "%s: cannot read the folder: %s", path,
                            strerror(errno));
    bool good = true;
    errno = 0;
    for (struct dirent *entry; good && (entry = readdir(folder)) != NULL; errno = 0)
        if (entry->d_name[0] != '.')
            good = keep_name(names, entry->d_name);
    const int cause = errno;
    closedir(folder);
    if (!good)
        return out_of_memory(error);
    if (cause)
        return gf_set_error(error, GF_FAILED, "%s: cannot read the folder: %s", path,
                            strerror(cause));
    if (names->count)
        qsort(names->list, names->count, sizeof *names->list, by_name);
    return GF_OK;
}

static bool is_out(gf_gather *gather, const struct stat *info) {
    /* Another shard may have made it since. */
    if (!gather->out_there && gather->out_dir)
        gather->out_there = stat(gather->out_dir, &gather->out) == 0;
    return gather->out_there && info->st_dev == gather->out.st_dev &&
           info->st_ino == gather->out.st_ino;
}

/* Count a file that is not called as a picture is. Remember its ending if there is room, and if a
 * terminal shows it as it is. */
static void skip(gf_cli_inputs *inputs, const char *name) {
    const char *ending = gf_cli_ending(name), *kept = inputs->endings;
    const size_t length = strlen(ending), used = strlen(kept);
    inputs->skipped++;
    for (size_t i = 1; i < length; i++)
        if (!isalnum((unsigned char)ending[i]))
            return;
    if (length < 2)
        return;
    for (const char *at = kept; (at = strcasestr(at, ending)); at += length)
        if (at[length] == 0 || at[length] == ',')
            return;
    if (used + strlen(", ") + length < sizeof inputs->endings)
        snprintf(inputs->endings + used, sizeof inputs->endings - used, "%s%s", used ? ", " : "",
                 ending);
}

static gf_status walk(gf_gather *gather, const char *folder, size_t below, gf_error *error);

/* What a folder holds under a name. Links to folders are not followed: they may lead back. */
static gf_status visit(gf_gather *gather, const char *folder, const char *name, size_t below,
                       gf_error *error) {
    char *path = gf_cli_join(folder, name);
    struct stat info;
    if (!path)
        return out_of_memory(error);
    if (!below)
        below = strlen(path) - strlen(name);
    bool there = lstat(path, &info) == 0;
    const int cause = there ? 0 : errno;
    const bool picture = gf_cli_is_picture(name, gather->inputs->raw);
    gf_status status = GF_OK;
    if (there && S_ISDIR(info.st_mode)) {
        if (!is_out(gather, &info))
            status = walk(gather, path, below, error);
    } else if (picture) {
        /* What cannot be looked at cannot be read either, and that is told of it then. */
        there = there && (!S_ISLNK(info.st_mode) || stat(path, &info) == 0);
        if (!there || S_ISREG(info.st_mode))
            return add(gather, path, below, there ? &info : NULL, error);
    } else if (there && S_ISREG(info.st_mode)) {
        skip(gather->inputs, name);
    } else if (cause && cause != ENOENT) {
        /* It may be a folder, with pictures in it. */
        gf_set_error(error, GF_FAILED, "%s: cannot look at it: %s", path, strerror(cause));
        status = complain(gather, error);
    }
    free(path);
    return status;
}

static gf_status walk(gf_gather *gather, const char *folder, size_t below, gf_error *error) {
    gf_names names = {0};
    gf_status status = read_folder(folder, &names, error);
    if (status)
        status = complain(gather, error);
    else
        for (size_t i = 0; i < names.count && !status; i++)
            status = visit(gather, folder, names.list[i], below, error);
    free_names(&names);
    return status;
}

static gf_status take_folder(gf_gather *gather, const char *path, const struct stat *info,
                             gf_error *error) {
    if (!gather->recursive) {
        gf_set_error(error, GF_FAILED, "%s: is a folder; add --recursive to take the images in it",
                     path);
        return complain(gather, error);
    }
    if (is_out(gather, info))
        return gf_set_error(error, GF_USAGE,
                            "%s: is --out-dir itself, whose files would be the inputs of the next "
                            "run; name another --out-dir, or the files",
                            path);
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    char *folder = strndup(path, length);
    if (!folder)
        return out_of_memory(error);
    gf_status status = walk(gather, folder, 0, error);
    free(folder);
    return status;
}

/* ---- names ----------------------------------------------------------------------------------- */

static gf_status take_name(gf_gather *gather, const char *path, gf_error *error) {
    struct stat info;
    const bool there = stat(path, &info) == 0;
    if (there && S_ISDIR(info.st_mode))
        return take_folder(gather, path, &info, error);
    const char *slash = strrchr(path, '/');
    return add(gather, strdup(path), slash ? (size_t)(slash + 1 - path) : 0, there ? &info : NULL,
               error);
}

/* A name in a list is a name: what is called "-" is a file. */
static gf_status take_line(gf_gather *gather, const char *path, gf_error *error) {
    return take_name(gather, strcmp(path, "-") == 0 ? "./-" : path, error);
}

/* A list of names that is being read. */
typedef struct gf_list {
    FILE *file;
    const char *name;
    bool null;       /* a NUL byte ends a name, not a newline */
    uint64_t number; /* of the name, empty ones counted */
    char path[PATH_MAX];
    size_t length;
} gf_list;

static gf_status fail_list(const gf_list *list, gf_error *error) {
    return gf_set_error(error, GF_USAGE,
                        "--files-from '%s': %s %" PRIu64
                        " is longer than a path can be (%d bytes); %s",
                        list->name, list->null ? "name" : "line", list->number, PATH_MAX - 1,
                        list->null ? "leave --null out if each name is on a line of its own"
                                   : "put one name on each line");
}

/* Read the next name. One that no system call takes as a path is not held in memory. */
static gf_status read_name(gf_list *list, gf_error *error) {
    const int end = list->null ? 0 : '\n';
    int c;
    list->length = 0;
    list->number++;
    while ((c = getc_unlocked(list->file)) != end) {
        if (c == EOF && ferror(list->file) && errno == EINTR) {
            clearerr(list->file);
            continue;
        }
        if (c == EOF)
            break;
        if (!c)
            return gf_set_error(error, GF_USAGE,
                                "--files-from '%s': holds a NUL byte; add --null if they end the "
                                "names",
                                list->name);
        if (list->length == PATH_MAX - 1)
            return fail_list(list, error);
        list->path[list->length++] = (char)c;
    }
    list->path[list->length] = 0;
    return ferror(list->file)
               ? gf_set_error(error, GF_FAILED, "%s: cannot read: %s", list->name, strerror(errno))
               : GF_OK;
}

static gf_status read_list(gf_gather *gather, FILE *file, const char *name, bool null,
                           gf_error *error) {
    gf_list list = {.file = file, .name = name, .null = null};
    gf_status status = GF_OK;
    while (!status && !feof(file)) {
        status = read_name(&list, error);
        if (!status && list.length)
            status = take_line(gather, list.path, error);
    }
    return status;
}

static gf_status take_list(gf_gather *gather, const char *name, bool null, gf_error *error) {
    if (strcmp(name, "-") == 0)
        return read_list(gather, stdin, "standard input", null, error);
    FILE *file = fopen(name, "re");
    if (!file)
        return gf_set_error(error, GF_FAILED, "%s: cannot open: %s", name, strerror(errno));
    gf_status status = read_list(gather, file, name, null, error);
    fclose(file);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------- */

void gf_cli_skipped_text(const gf_cli_inputs *inputs, char *text, size_t size) {
    const char *endings = inputs->endings;
    text[0] = 0;
    if (inputs->skipped)
        snprintf(text, size, "%" PRIu64 " file%s skipped: %s%s%s%s", inputs->skipped,
                 inputs->skipped == 1 ? "" : "s",
                 inputs->raw ? "not called .raw" : "unsupported format", *endings ? " (" : "",
                 endings, *endings ? ")" : "");
}

static gf_status fail_empty(const gf_cli_line *line, const gf_cli_inputs *inputs, const char *list,
                            gf_error *error) {
    char skipped[160];
    gf_cli_skipped_text(inputs, skipped, sizeof skipped);
    if (!line->operand_count)
        return gf_set_error(error, GF_FAILED, "--files-from '%s': names no images%s%s", list,
                            *skipped ? "; " : "", skipped);
    return gf_set_error(error, GF_FAILED, "%s%s: no images found%s%s", line->operands[0],
                        line->operand_count > 1 ? " and others" : "", *skipped ? "; " : "",
                        skipped);
}

gf_status gf_cli_gather(const char *command, const gf_cli_line *line, const char *out_dir,
                        gf_cli_inputs *inputs, gf_error *error) {
    gf_gather gather = {.inputs = inputs,
                        .out_dir = out_dir,
                        .recursive = line->options.recursive,
                        .fail_fast = line->options.fail_fast};
    gf_status status = GF_OK;
    inputs->raw = line->options.files.raw != NULL;
    if (!line->operand_count && !line->options.files_from)
        return gf_set_error(error, GF_USAGE, "%s: no inputs are named; see 'gpufilter %s --help'",
                            command, command);
    for (size_t i = 0; i < line->operand_count && !status; i++)
        status = strcmp(line->operands[i], "-") == 0 ? add(&gather, strdup("-"), 0, NULL, error)
                                                     : take_name(&gather, line->operands[i], error);
    const char *list = line->options.files_from;
    if (!status && list)
        status = take_list(&gather, list, line->options.null, error);
    return status || inputs->count || inputs->failed ? status
                                                     : fail_empty(line, inputs, list, error);
}

void gf_cli_inputs_free(gf_cli_inputs *inputs) {
    for (size_t i = 0; i < inputs->count; i++)
        free(inputs->list[i].path);
    free(inputs->list);
    *inputs = (gf_cli_inputs){0};
}
