/* Collection of inputs. */
#define _GNU_SOURCE /* asprintf, strcasestr */
#include "cli.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static gf_status inputs_out_of_memory(gf_error *error) {
    return gf_set_error(error, GF_FAILED, "inputs: out of memory for file names");
}

/* Print an error and continue; with --fail-fast, return it. */
static gf_status inputs_print_error(gf_cli_inputs *inputs, gf_error *error) {
    if (inputs->options->fail_fast)
        return error->status;
    gf_cli_print_error(error);
    inputs->failed++;
    *error = (gf_error){0};
    return GF_OK;
}

/* Add an input and take ownership of its path. path NULL: out of memory. info NULL: unknown. */
static gf_status inputs_add(gf_cli_inputs *inputs, char *path, size_t relative,
                            const struct stat *info, gf_error *error) {
    if (!path)
        return inputs_out_of_memory(error);
    /* The capacity is the next power of two, so the list is full if count is a power of two. */
    if ((inputs->count & (inputs->count - 1)) == 0) {
        const size_t length = inputs->count ? 2 * inputs->count : 1;
        gf_cli_input *list = realloc(inputs->list, length * sizeof *list);
        if (!list) {
            free(path);
            return inputs_out_of_memory(error);
        }
        inputs->list = list;
    }
    gf_cli_input *input = &inputs->list[inputs->count++];
    *input = (gf_cli_input){.path = path, .relative = relative};
    if (info) {
        input->bytes = S_ISREG(info->st_mode) ? (uint64_t)info->st_size : 0;
        input->time = info->st_mtim;
    }
    return GF_OK;
}

/* ---- directories ----------------------------------------------------------------------------- */

const char *gf_cli_extension(const char *base) {
    const char *dot = strrchr(base, '.');
    return dot && dot != base ? dot : "";
}

bool gf_cli_named_format(const char *name, gf_codec_info *format) {
    const char *extension = gf_cli_extension(name);
    for (size_t i = 0; *extension && gf_codec_describe(i, format); i++)
        for (const char *const *known = format->extensions; *known; known++)
            if (strcasecmp(extension + 1, *known) == 0)
                return true;
    return false;
}

/* Return whether a directory is --out-dir. Call stat each time: another shard may have made it. */
static bool inputs_is_out(const gf_cli_inputs *inputs, const struct stat *info) {
    const char *path = inputs->options->out_dir;
    struct stat out;
    return path && stat(path, &out) == 0 && info->st_dev == out.st_dev &&
           info->st_ino == out.st_ino;
}

/* Count a skipped file. Store its extension if it is alphanumeric and fits. */
static void inputs_skip(gf_cli_inputs *inputs, const char *name) {
    const char *extension = gf_cli_extension(name), *kept = inputs->extensions;
    const size_t length = strlen(extension), used = strlen(kept);
    inputs->skipped++;
    for (size_t i = 1; i < length; i++)
        if (!isalnum((unsigned char)extension[i]))
            return;
    if (length < 2)
        return;
    for (const char *at = kept; (at = strcasestr(at, extension)); at += length)
        if (at[length] == 0 || at[length] == ',')
            return;
    if (used + strlen(", ") + length < sizeof inputs->extensions)
        snprintf(inputs->extensions + used, sizeof inputs->extensions - used, "%s%s",
                 used ? ", " : "", extension);
}

static gf_status inputs_walk(gf_cli_inputs *inputs, const char *directory, size_t relative,
                             gf_error *error);

/* Process an entry of a directory. Do not follow links to directories: they may form cycles. */
static gf_status inputs_visit(gf_cli_inputs *inputs, const char *directory, const char *name,
                              size_t relative, gf_error *error) {
    gf_codec_info format;
    const bool raw = inputs->options->files.raw; /* else .raw is the extension of cameras */
    char *path;
    struct stat info, target;
    if (asprintf(&path, "%s%s%s", directory, strcmp(directory, "/") == 0 ? "" : "/", name) < 0)
        return inputs_out_of_memory(error);
    if (!relative)
        relative = strlen(path) - strlen(name);
    bool exists = lstat(path, &info) == 0;
    const int cause = exists ? 0 : errno;
    const bool link = exists && S_ISLNK(info.st_mode);
    gf_status status = GF_OK;
    if (link && (exists = stat(path, &target) == 0))
        info = target;
    if (exists && S_ISDIR(info.st_mode)) {
        inputs->skipped += link;
        inputs->links += link;
        if (!link && !inputs_is_out(inputs, &info))
            status = inputs_walk(inputs, path, relative, error);
    } else if (gf_cli_named_format(name, &format) && format.headerless == raw) {
        /* If stat fails, reading fails too and reports the error. */
        if (!exists || S_ISREG(info.st_mode))
            return inputs_add(inputs, path, relative, exists ? &info : NULL, error);
    } else if (exists && S_ISREG(info.st_mode)) {
        inputs_skip(inputs, name);
    } else if (cause && cause != ENOENT) {
        /* It may be a directory that contains images. */
        gf_set_error(error, GF_FAILED, "%s: cannot stat: %s", path, strerror(cause));
        status = inputs_print_error(inputs, error);
    }
    free(path);
    return status;
}

/* Process all entries of a directory. scandir closes the directory before a subdirectory is opened,
 * so that one descriptor suffices for any depth. */
static gf_status inputs_walk(gf_cli_inputs *inputs, const char *directory, size_t relative,
                             gf_error *error) {
    struct dirent **entries;
    gf_status status = GF_OK;
    const int count = scandir(directory, &entries, NULL, alphasort);
    if (count < 0) {
        gf_set_error(error, GF_FAILED, "%s: cannot read the directory: %s", directory,
                     strerror(errno));
        return inputs_print_error(inputs, error);
    }
    for (int i = 0; i < count; i++) {
        if (!status && entries[i]->d_name[0] != '.')
            status = inputs_visit(inputs, directory, entries[i]->d_name, relative, error);
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* ---- names ----------------------------------------------------------------------------------- */

static gf_status inputs_take_name(gf_cli_inputs *inputs, const char *path, gf_error *error) {
    struct stat info;
    const bool exists = stat(path, &info) == 0;
    if (!exists || !S_ISDIR(info.st_mode)) {
        const char *slash = strrchr(path, '/');
        return inputs_add(inputs, strdup(path), slash ? (size_t)(slash + 1 - path) : 0,
                          exists ? &info : NULL, error);
    }
    if (!inputs->options->recursive) {
        gf_set_error(error, GF_FAILED, "%s: is a directory; use --recursive to process its images",
                     path);
        return inputs_print_error(inputs, error);
    }
    if (inputs_is_out(inputs, &info))
        return gf_set_error(
            error, GF_USAGE,
            "%s: is also --out-dir, and its outputs would be inputs of the next run; "
            "use another --out-dir, or name the files",
            path);
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    char *directory = strndup(path, length);
    if (!directory)
        return inputs_out_of_memory(error);
    gf_status status = inputs_walk(inputs, directory, 0, error);
    free(directory);
    return status;
}

/* A list of names being read. */
typedef struct inputs_list {
    FILE *file;
    const char *name;
    bool null;       /* names are NUL-terminated */
    uint64_t number; /* of the current name, from 1, including empty ones */
    char path[PATH_MAX];
} inputs_list;

/* Read the next name. Fail for names of PATH_MAX bytes or more, which no system call accepts. */
static gf_status inputs_read_name(inputs_list *list, gf_error *error) {
    size_t length = 0;
    int c;
    list->number++;
    while ((c = getc_unlocked(list->file)) != (list->null ? 0 : '\n')) {
        if (c == EOF && ferror(list->file) && errno == EINTR) {
            clearerr(list->file);
            continue;
        }
        if (c == EOF)
            break;
        if (!c)
            return gf_set_error(
                error, GF_USAGE,
                "--files-from '%s': contains a NUL byte; use --null for NUL-terminated names",
                list->name);
        if (length == PATH_MAX - 1)
            return gf_set_error(
                error, GF_USAGE,
                "--files-from '%s': %s %" PRIu64 " exceeds the maximum path length of %d bytes; %s",
                list->name, list->null ? "name" : "line", list->number, PATH_MAX - 1,
                list->null ? "omit --null if names are separated by newlines"
                           : "write one name per line");
        list->path[length++] = (char)c;
    }
    list->path[length] = 0;
    /* Drop byte order mark and carriage return of a Windows list, unless a file has them. */
    const size_t mark = list->number == 1 && strncmp(list->path, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    if (!list->null && length && access(list->path, F_OK) != 0) {
        memmove(list->path, list->path + mark, length + 1 - mark);
        if (length > mark && list->path[length - mark - 1] == '\r')
            list->path[length - mark - 1] = 0;
    }
    return ferror(list->file)
               ? gf_set_error(error, GF_FAILED, "%s: cannot read: %s", list->name, strerror(errno))
               : GF_OK;
}

static gf_status inputs_take_list(gf_cli_inputs *inputs, const char *name, gf_error *error) {
    const bool standard = strcmp(name, "-") == 0;
    inputs_list list = {.file = standard ? stdin : fopen(name, "re"),
                        .name = standard ? "standard input" : name,
                        .null = inputs->options->null};
    gf_status status = GF_OK;
    if (!list.file)
        return gf_set_error(error, GF_FAILED, "%s: cannot open: %s", name, strerror(errno));
    while (!status && !feof(list.file)) {
        status = inputs_read_name(&list, error);
        /* In a list, "-" is a file: only the operand "-" is standard input. */
        const char *path = strcmp(list.path, "-") == 0 ? "./-" : list.path;
        if (!status && *path)
            status = inputs_take_name(inputs, path, error);
    }
    if (!standard)
        fclose(list.file);
    return status;
}

/* ---- all inputs ------------------------------------------------------------------------------ */

void gf_cli_skipped_text(const gf_cli_inputs *inputs, char *text, size_t size) {
    const char *extensions = inputs->extensions;
    const uint64_t links = inputs->links, files = inputs->skipped - links;
    int used = 0;
    text[0] = 0;
    if (files)
        used = snprintf(text, size, "%" PRIu64 " file%s skipped: %s%s%s%s", files,
                        files == 1 ? "" : "s",
                        inputs->options->files.raw ? "no extension .raw" : "unsupported format",
                        *extensions ? " (" : "", extensions, *extensions ? ")" : "");
    if (links)
        snprintf(text + used, size - (size_t)used, "%s%" PRIu64 " link%s to directories skipped",
                 used ? "; " : "", links, links == 1 ? "" : "s");
}

gf_status gf_cli_gather(const char *command, const gf_cli_line *line, gf_cli_inputs *inputs,
                        gf_error *error) {
    const char *list = line->options.files_from;
    char skipped[160];
    gf_status status = GF_OK;
    inputs->options = &line->options;
    if (!line->operand_count && !list)
        return gf_set_error(error, GF_USAGE, "%s: expected input files; see 'gpufilter %s --help'",
                            command, command);
    for (size_t i = 0; i < line->operand_count && !status; i++)
        status = strcmp(line->operands[i], "-") == 0
                     ? inputs_add(inputs, strdup("-"), 0, NULL, error)
                     : inputs_take_name(inputs, line->operands[i], error);
    if (!status && list)
        status = inputs_take_list(inputs, list, error);
    if (status || inputs->count || inputs->failed)
        return status;
    const char *first = line->operand_count ? line->operands[0] : NULL;
    gf_cli_skipped_text(inputs, skipped, sizeof skipped);
    return gf_set_error(error, GF_FAILED, "%s%s%s: no images found%s%s",
                        first ? "" : "--files-from '", first ? first : list,
                        !first                    ? "'"
                        : line->operand_count > 1 ? " and others"
                                                  : "",
                        *skipped ? "; " : "", skipped);
}

void gf_cli_inputs_free(gf_cli_inputs *inputs) {
    for (size_t i = 0; i < inputs->count; i++) {
        for (size_t j = 0; inputs->list[i].out && j < inputs->writers; j++) {
            free(inputs->list[i].out[j]);
            free(inputs->list[i].real[j]);
        }
        free(inputs->list[i].path);
        free(inputs->list[i].out);
    }
    free(inputs->list);
    *inputs = (gf_cli_inputs){0};
}
