/* Names and directories of the outputs of a batch. */
#define _GNU_SOURCE /* asprintf */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gf_status outputs_out_of_memory(gf_error *error) {
    return gf_set_error(error, GF_FAILED, "--out-dir: out of memory for output names");
}

/* ---- templates ------------------------------------------------------------------------------- */

/* Write the replacement of a word in braces; {ext}: that of --format or of the input, or .png if
 * the input format cannot be written. Return false if the word is unknown. */
static bool template_put_word(FILE *file, const char *word, size_t length, const char *base,
                              const char *format, uint64_t index) {
    enum { MAX_DIGITS = 20 };
    char text[16] = "";
    gf_codec_info known;
    if (length < sizeof text)
        memcpy(text, word, length);
    const char *extension = gf_cli_extension(base);
    const bool has_digits = length > 6 && length < 9 && strncmp(text, "index:", 6) == 0 &&
                            strspn(text + 6, "0123456789") == length - 6;
    const int digits = has_digits ? (int)strtol(text + 6, NULL, 10) : 0;
    if (strcmp(text, "stem") == 0)
        fwrite(base, 1, strlen(base) - strlen(extension), file);
    else if (strcmp(text, "ext") == 0 && format)
        fprintf(file, ".%s", format);
    else if (strcmp(text, "ext") == 0)
        fputs(gf_cli_named_format(base, &known) && known.written ? extension : ".png", file);
    else if (strcmp(text, "name") == 0)
        fputs(base, file);
    else if (strcmp(text, "index") == 0 || (digits >= 1 && digits <= MAX_DIGITS))
        fprintf(file, "%0*" PRIu64, digits, index);
    else
        return false;
    return true;
}

gf_status gf_cli_template_fill(const char *template, const char *base, const char *format,
                               uint64_t index, char **name, gf_error *error) {
    bool valid = *template;
    size_t size;
    *name = NULL;
    if (strchr(template, '/'))
        return gf_set_error(
            error, GF_USAGE,
            "--name '%s': must not contain a directory; use --out-dir for the directory; "
            "--recursive keeps subdirectories",
            template);
    FILE *file = open_memstream(name, &size);
    for (const char *at = template; file && valid && *at;) {
        const bool brace = *at == '{' || *at == '}';
        if (!brace || at[1] == *at) {
            putc(*at, file);
            at += brace ? 2 : 1;
            continue;
        }
        const size_t length = strcspn(at + 1, "{}");
        valid = *at == '{' && at[1 + length] == '}' &&
                template_put_word(file, at + 1, length, base, format, index);
        at += length + 2;
    }
    const bool whole = file && !ferror(file);
    if (file && fclose(file) == 0 && whole && valid)
        return GF_OK;
    free(*name);
    *name = NULL;
    if (valid || !file)
        return outputs_out_of_memory(error);
    return gf_set_error(error, GF_USAGE,
                        "--name '%s': invalid template; use {stem}, {ext}, {name}, {index} or "
                        "{index:DIGITS}, and {{ and }} for braces",
                        template);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Cut a path to its longest existing prefix; at least "." or "/". */
static char *outputs_cut(char *path) {
    while (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR) &&
           strcmp(path, ".") != 0 && strcmp(path, "/") != 0)
        path = dirname(path);
    return path;
}

/* Return the path with symbolic links resolved in its existing prefix, so that all paths of a file
 * are equal. NULL: out of memory. */
static char *outputs_real(const char *path) {
    char *whole = strdup(path), *real = NULL;
    if (!whole)
        return NULL;
    const char *part = outputs_cut(whole);
    const char *rest = strcmp(part, ".") == 0 ? path : path + strlen(part);
    char *resolved = realpath(part, NULL); /* NULL: no permission, or too long */
    if (asprintf(&real, "%s/%s", resolved ? resolved : part, rest + strspn(rest, "/")) < 0)
        real = NULL;
    free(resolved);
    free(whole);
    return real;
}

/* Name an output of an input: OUT-DIR/SUBFOLDERS/NAME, with the subdirectories of the input
 * relative to the directory given as input. Store the path and its canonical path. */
static gf_status outputs_name_one(const gf_cli_work *work, const gf_step *writer,
                                  gf_cli_input *input, uint64_t index, size_t number,
                                  gf_error *error) {
    const gf_cli_options *options = &work->line->options;
    const gf_write_options *write = writer->write ? writer->write : &options->files.write;
    const char *directory = options->out_dir, *format = write->format;
    const char *kept = input->path + input->relative, *slash = strrchr(kept, '/');
    const char *base = slash ? slash + 1 : kept;
    char **path = &input->out[number], *name;
    struct stat info;
    const gf_status status =
        gf_cli_template_fill(writer->out_path, base, format, index, &name, error);
    if (status)
        return status;
    gf_codec_info known;
    if (!format && !(gf_cli_named_format(name, &known) && known.written)) {
        const char *extension = gf_cli_extension(name);
        gf_set_error(error, GF_USAGE,
                     "--name: '%s': %s%s; end the template with {ext} or a known extension such as "
                     ".png, or use --format",
                     name, *extension ? "cannot write " : "no extension", extension);
        free(name);
        return GF_USAGE;
    }
    size_t length = strlen(directory);
    while (length > 0 && directory[length - 1] == '/') /* also that of "/" */
        length--;
    if (asprintf(path, "%.*s/%.*s%s", (int)length, directory, (int)(base - kept), kept, name) < 0)
        *path = NULL;
    free(name);
    if (!*path || !(input->real[number] = outputs_real(*path)))
        return outputs_out_of_memory(error);
    input->existing |= stat(*path, &info) == 0 && S_ISREG(info.st_mode);
    return GF_OK;
}

/* Name all outputs of an input. An error about a template of `run` names its step. */
static gf_status outputs_name_all(const gf_cli_work *work, gf_cli_input *input, uint64_t index,
                                  gf_error *error) {
    gf_status status = GF_OK;
    input->out = calloc(2 * (size_t)work->writers, sizeof *input->out);
    if (!input->out)
        return outputs_out_of_memory(error);
    input->real = input->out + work->writers;
    for (uint32_t i = 0, number = 0; i < work->step_count && !status; i++) {
        gf_error cause = {0};
        char prefix[32] = "";
        if (work->steps[i].filter)
            continue;
        status = outputs_name_one(work, &work->steps[i], input, index, number++, &cause);
        if (!work->filter)
            snprintf(prefix, sizeof prefix, "step %" PRIu32 ", write: ", i + 1);
        /* The template is that of --name only without words of steps. */
        const bool named = strncmp(cause.message, "--name", strlen("--name")) == 0;
        const char *text = cause.message;
        if (named && work->line->steps)
            text += strlen("--name") + strspn(text + strlen("--name"), ": ");
        if (status)
            gf_set_error(error, status, "%s%s", prefix, text);
    }
    return status;
}

bool gf_cli_is_finished(const gf_cli_inputs *inputs, const gf_cli_input *input) {
    const struct timespec *changed = &input->time;
    bool finished = true;
    for (size_t i = 0; i < inputs->writers && finished; i++) {
        struct stat info;
        const struct timespec *made = &info.st_mtim;
        finished = stat(input->out[i], &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
                   (made->tv_sec != changed->tv_sec ? made->tv_sec > changed->tv_sec
                                                    : made->tv_nsec > changed->tv_nsec);
    }
    return finished;
}

/* ---- conflicts ------------------------------------------------------------------------------- */

/* An output of an input. */
typedef struct outputs_entry {
    const char *path, *real;
    const gf_cli_input *input;
} outputs_entry;

/* Order by canonical path, then by index of the input. */
static int outputs_compare(const void *one, const void *other) {
    const outputs_entry *a = one, *b = other;
    const int order = strcmp(a->real, b->real);
    return order ? order : a->input < b->input ? -1 : a->input > b->input;
}

static int outputs_compare_name(const void *real, const void *entry) {
    return strcmp(real, ((const outputs_entry *)entry)->real);
}

/* Reject two equal outputs. Report the pair whose second input comes first. what: their names. */
static gf_status outputs_check_twice(const outputs_entry *sorted, size_t count, const char *what,
                                     gf_error *error) {
    const outputs_entry *first = NULL, *one = NULL, *other = NULL;
    for (const outputs_entry *at = sorted; at < sorted + count; at++) {
        if (!first || strcmp(first->real, at->real) != 0) {
            first = at;
        } else if (!other || at->input < other->input) {
            one = first;
            other = at;
        }
    }
    if (!other)
        return GF_OK;
    if (one->input == other->input)
        return gf_set_error(error, GF_USAGE,
                            "%s: is written twice for %.300s; use different templates in the "
                            "writers, such as '{stem}-2{ext}'",
                            other->path, one->input->path);
    return gf_set_error(error, GF_USAGE,
                        "%s: is the output of both %.300s and %.300s; use a %s with {index}, "
                        "such as '{index}-{stem}{ext}'",
                        other->path, one->input->path, other->input->path, what);
}

/* Reject an output that replaces the input of another, which might be read before or after that;
 * with --resume also its own input, which each run would filter again. */
static gf_status outputs_check_inputs(const gf_cli_inputs *inputs, const outputs_entry *sorted,
                                      gf_error *error) {
    for (size_t i = 0; i < inputs->count; i++) {
        const char *path = inputs->list[i].path;
        char *real = outputs_real(path);
        if (!real)
            return outputs_out_of_memory(error);
        const outputs_entry *found = bsearch(real, sorted, inputs->count * inputs->writers,
                                             sizeof *sorted, outputs_compare_name);
        free(real);
        if (!found || !found->input->existing)
            continue;
        if (found->input != &inputs->list[i])
            return gf_set_error(
                error, GF_USAGE,
                "%s: is an input that the output of %.300s would replace; use another "
                "--out-dir or --name",
                path, found->input->path);
        if (inputs->options->resume)
            return gf_set_error(error, GF_USAGE,
                                "%s: its output replaces it, which --resume does not support; use "
                                "another --out-dir or --name",
                                path);
    }
    return GF_OK;
}

gf_status gf_cli_outputs_name(gf_cli_inputs *inputs, const gf_cli_work *work, gf_error *error) {
    const size_t writers = inputs->writers = work->writers, count = inputs->count * writers;
    outputs_entry *sorted = calloc(count + 1, sizeof *sorted);
    gf_status status = GF_OK;
    if (!sorted)
        return outputs_out_of_memory(error);
    for (size_t i = 0; i < inputs->count && !status; i++) {
        gf_cli_input *input = &inputs->list[i];
        status = outputs_name_all(work, input, i + 1, error);
        for (size_t j = 0; j < writers && !status; j++)
            sorted[i * writers + j] = (outputs_entry){input->out[j], input->real[j], input};
    }
    if (!status) {
        qsort(sorted, count, sizeof *sorted, outputs_compare);
        status =
            outputs_check_twice(sorted, count, work->line->steps ? "template" : "--name", error);
    }
    /* Without these options, existing files are not replaced. */
    if (!status && (inputs->options->files.force || inputs->options->resume))
        status = outputs_check_inputs(inputs, sorted, error);
    free(sorted);
    return status;
}

/* ---- directories ----------------------------------------------------------------------------- */

/* fsync the parent directory of a path. Return 0 or an errno. */
static int directories_sync(const char *path) {
    char *directory = strdup(path);
    const int fd = directory ? open(dirname(directory), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int failed = fd;
    while (fd >= 0 && (failed = fsync(fd)) < 0 && errno == EINTR)
        ;
    /* EINVAL: the file system does not support fsync of directories. */
    const int cause = failed < 0 && errno != EINVAL ? errno : 0;
    if (fd >= 0)
        close(fd);
    free(directory);
    return cause;
}

struct gf_cli_directory {
    struct gf_cli_directory *previous; /* created before this one */
    char path[];
};

/* Create one directory, unless it exists. Return 0 or an errno. */
static int directories_make_one(gf_cli_directories *made, const char *path) {
    struct stat info;
    const size_t size = strlen(path) + 1;
    struct gf_cli_directory *directory = malloc(sizeof *directory + size);
    if (!directory)
        return ENOMEM;
    if (mkdir(path, 0777) == 0) {
        memcpy(directory->path, path, size);
        directory->previous = made->last;
        made->last = directory;
        return made->files->sync == GF_SYNC_ALWAYS ? directories_sync(path) : 0;
    }
    const int cause = errno;
    free(directory);
    /* The directory may exist nevertheless: mkdir may report EROFS or EACCES instead of EEXIST. */
    if (stat(path, &info) == 0)
        return S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
    return cause;
}

/* Create a directory and its parents. Return 0 or an errno. */
static int directories_make_all(gf_cli_directories *made, char *path) {
    int cause = 0;
    for (char *at = path + 1; !cause; at++) {
        if (*at && *at != '/')
            continue;
        const char end = *at;
        *at = 0;
        cause = directories_make_one(made, path);
        *at = end;
        if (!end)
            break;
    }
    return cause;
}

/* Check whether directories_make_all would succeed and files could be created in the directory.
 * Return 0 or an errno. *what: the operation that would fail. */
static int directories_try(char *path, const char **what) {
    struct stat info;
    const size_t length = strlen(path);
    const char *part = outputs_cut(path);
    if (stat(part, &info) != 0)
        return errno;
    if (!S_ISDIR(info.st_mode))
        return ENOTDIR;
    *what = part == path && strlen(part) == length ? "write to" : "create";
    return access(part, W_OK | X_OK) == 0 ? 0 : errno;
}

gf_status gf_cli_directories_make(gf_cli_directories *made, const char *path, size_t length,
                                  gf_error *error) {
    if (made->ready && made->length == length && memcmp(made->ready, path, length) == 0)
        return GF_OK;
    const char *what = "create";
    char *directory = length ? strndup(path, length) : strdup("/");
    const int cause = !directory             ? ENOMEM
                      : made->files->dry_run ? directories_try(directory, &what)
                                             : directories_make_all(made, directory);
    free(directory);
    if (cause) {
        /* The parents exist: /proc and others hold no new directories. */
        gf_set_error(error, GF_FAILED, "%.*s: cannot %s the directory: %s", (int)length, path, what,
                     cause == ENOENT ? "this file system holds no new ones; use another --out-dir"
                                     : strerror(cause));
        error->cause = cause;
        return GF_FAILED;
    }
    made->ready = path;
    made->length = length;
    return GF_OK;
}

void gf_cli_directories_close(gf_cli_directories *made, bool remove) {
    for (struct gf_cli_directory *directory = made->last, *previous; directory;
         directory = previous) {
        previous = directory->previous;
        if (remove)
            (void)rmdir(directory->path);
        free(directory);
    }
}
