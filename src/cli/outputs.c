#define _GNU_SOURCE /* asprintf */
#include "outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gf_status outputs_out_of_memory(gf_error *error) {
    gf_set_error(error, GF_FAILED, "--out-dir: out of memory for the names of the outputs");
    return GF_FAILED;
}

/* ---- templates ------------------------------------------------------------------------------- */

/* Write the extension of an output: .png for a format that is only read. */
static void template_put_extension(FILE *file, const char *base, const char *format) {
    const gf_about_format *known = gf_cli_named_format(base);
    if (format)
        fprintf(file, ".%s", format);
    else
        fputs(known && known->written ? gf_cli_extension(base) : ".png", file);
}

/* Write what stands for a word in braces. False: it is none that is known. */
static bool template_put_word(FILE *file, const char *word, size_t length, const char *base,
                              const char *format, uint64_t index) {
    enum { MAX_DIGITS = 20 };
    char text[16] = "";
    if (length < sizeof text)
        memcpy(text, word, length);
    const bool has_digits = length > 6 && length < 9 && strncmp(text, "index:", 6) == 0 &&
                            strspn(text + 6, "0123456789") == length - 6;
    const int digits = has_digits ? (int)strtol(text + 6, NULL, 10) : 0;
    if (strcmp(text, "stem") == 0)
        fwrite(base, 1, strlen(base) - strlen(gf_cli_extension(base)), file);
    else if (strcmp(text, "ext") == 0)
        template_put_extension(file, base, format);
    else if (strcmp(text, "name") == 0)
        fputs(base, file);
    else if (strcmp(text, "index") == 0 || (digits >= 1 && digits <= MAX_DIGITS))
        fprintf(file, "%0*" PRIu64, digits, index);
    else
        return false;
    return true;
}

/* Write the name. False: the template is not valid. */
static bool template_put(FILE *file, const char *template, const char *base, const char *format,
                         uint64_t index) {
    for (const char *at = template; *at;) {
        const bool brace = *at == '{' || *at == '}';
        if (!brace || at[1] == *at) {
            putc(*at, file);
            at += brace ? 2 : 1;
            continue;
        }
        const size_t length = strcspn(at + 1, "{}");
        if (*at == '}' || at[1 + length] != '}' ||
            !template_put_word(file, at + 1, length, base, format, index))
            return false;
        at += length + 2;
    }
    return *template;
}

gf_status gf_cli_template_fill(const char *template, const char *base, const char *format,
                               uint64_t index, char **name, gf_error *error) {
    size_t size;
    *name = NULL;
    if (strchr(template, '/')) {
        gf_set_error(error, GF_USAGE,
                     "--name '%s': is for names without folders; --out-dir says where, and "
                     "--recursive keeps folders",
                     template);
        return GF_USAGE;
    }
    FILE *file = open_memstream(name, &size);
    const bool valid = !file || template_put(file, template, base, format, index);
    const bool whole = file && !ferror(file);
    if (file && fclose(file) == 0 && whole && valid)
        return GF_OK;
    free(*name);
    *name = NULL;
    if (valid)
        return outputs_out_of_memory(error);
    gf_set_error(error, GF_USAGE,
                 "--name '%s': must be text with {stem}, {ext}, {name}, {index} or "
                 "{index:DIGITS}; {{ and }} are braces",
                 template);
    return GF_USAGE;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Cut a path back to the innermost part of it that is there; "." or "/" at least. */
static char *outputs_cut(char *path) {
    while (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR) &&
           strcmp(path, ".") != 0 && strcmp(path, "/") != 0)
        path = dirname(path);
    return path;
}

/* Return the path without links, as far as it is there: all paths of a file give one. NULL: out of
 * memory. */
static char *outputs_real(const char *path) {
    char *whole = strdup(path), *real = NULL;
    if (!whole)
        return NULL;
    const char *part = outputs_cut(whole);
    const char *rest = strcmp(part, ".") == 0 ? path : path + strlen(part);
    char *there = realpath(part, NULL); /* NULL: it may not be looked at, or is too long */
    if (asprintf(&real, "%s/%s", there ? there : part, rest + strspn(rest, "/")) < 0)
        real = NULL;
    free(there);
    free(whole);
    return real;
}

/* FOLDER/DIRECTORY OF THE INPUT BELOW WHAT WAS NAMED/NAME */
static gf_status outputs_name_one(const gf_cli_line *line, const gf_cli_input *input,
                                  uint64_t index, gf_cli_output *output, gf_error *error) {
    const char *folder = line->options.out_dir;
    const char *format = line->options.files.format;
    const char *kept = input->path + input->below, *slash = strrchr(kept, '/');
    const char *base = slash ? slash + 1 : kept;
    char *name;
    const gf_status status =
        gf_cli_template_fill(line->options.name, base, format, index, &name, error);
    if (status)
        return status;
    const gf_about_format *known = gf_cli_named_format(name);
    if (!format && !(known && known->written)) {
        const char *extension = gf_cli_extension(name);
        gf_set_error(error, GF_USAGE,
                     "--name: '%s'%s%s; end it with {ext} or a known ending such as .png, or add "
                     "--format",
                     name, *extension ? ": cannot write " : " would not tell the format",
                     extension);
        free(name);
        return GF_USAGE;
    }
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    const bool root = length == 1 && folder[0] == '/';
    if (asprintf(&output->path, "%.*s%s%.*s%s", (int)length, folder, root ? "" : "/",
                 (int)(base - kept), kept, name) < 0)
        output->path = NULL;
    free(name);
    output->real = output->path ? outputs_real(output->path) : NULL;
    if (!output->real)
        return outputs_out_of_memory(error);
    output->look = gf_cli_look_at(output->path);
    return GF_OK;
}

/* ---- what is there --------------------------------------------------------------------------- */

gf_cli_look gf_cli_look_at(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return (gf_cli_look){.there = false};
    return (gf_cli_look){.there = true, .empty = info.st_size == 0, .time = info.st_mtim};
}

bool gf_cli_is_finished(const gf_cli_look *output, const gf_cli_input *input) {
    const struct timespec *made = &output->time, *changed = &input->time;
    return output->there && !output->empty &&
           (made->tv_sec != changed->tv_sec ? made->tv_sec > changed->tv_sec
                                            : made->tv_nsec > changed->tv_nsec);
}

/* ---- files that two names mean --------------------------------------------------------------- */

/* Of one file, in the order of the outputs. */
static int outputs_compare(const void *one, const void *other) {
    const gf_cli_output *a = *(const gf_cli_output *const *)one;
    const gf_cli_output *b = *(const gf_cli_output *const *)other;
    const int order = strcmp(a->real, b->real);
    return order ? order : a < b ? -1 : a > b;
}

static int outputs_compare_name(const void *real, const void *output) {
    return strcmp(real, (*(const gf_cli_output *const *)output)->real);
}

/* Refuse two outputs that are one file: of those, the second one that is named first. */
static gf_status outputs_check_twice(const gf_cli_inputs *inputs, const gf_cli_output *outputs,
                                     const gf_cli_output *const *sorted, gf_error *error) {
    const gf_cli_output *first = outputs, *one = NULL, *other = NULL;
    for (size_t i = 0; i < inputs->count; i++) {
        if (i == 0 || strcmp(first->real, sorted[i]->real) != 0) {
            first = sorted[i];
        } else if (!other || sorted[i] < other) {
            one = first;
            other = sorted[i];
        }
    }
    if (!other)
        return GF_OK;
    return gf_set_error(error, GF_USAGE,
                        "%s: would be written from %.300s and from %.300s; give them names apart "
                        "with --name, such as '{index}-{stem}{ext}'",
                        other->path, inputs->list[one - outputs].path,
                        inputs->list[other - outputs].path);
}

/* An input that another one's output replaces would be read before or after that, by chance. With
 * --resume, an image that replaces itself would be filtered again by each run. */
static gf_status outputs_check_inputs(const gf_cli_inputs *inputs, const gf_cli_output *outputs,
                                      const gf_cli_output *const *sorted, bool resume,
                                      gf_error *error) {
    for (size_t i = 0; i < inputs->count; i++) {
        const char *path = inputs->list[i].path;
        char *real = outputs_real(path);
        if (!real)
            return outputs_out_of_memory(error);
        const gf_cli_output *const *found =
            bsearch(real, sorted, inputs->count, sizeof(gf_cli_output *), outputs_compare_name);
        free(real);
        if (!found || !(*found)->look.there)
            continue;
        if (*found != &outputs[i])
            return gf_set_error(error, GF_USAGE,
                                "%s: is an input, and the output of %.300s would replace it; name "
                                "another --out-dir or --name",
                                path, inputs->list[*found - outputs].path);
        if (resume)
            return gf_set_error(error, GF_USAGE,
                                "%s: replaces itself, so --resume cannot tell whether it is "
                                "finished; name another --out-dir or --name",
                                path);
    }
    return GF_OK;
}

static gf_status outputs_check(const gf_cli_line *line, const gf_cli_inputs *inputs,
                               const gf_cli_output *outputs, gf_error *error) {
    const size_t count = inputs->count;
    const gf_cli_output **sorted = calloc(count + 1, sizeof(gf_cli_output *));
    if (!sorted)
        return outputs_out_of_memory(error);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &outputs[i];
    qsort(sorted, count, sizeof(gf_cli_output *), outputs_compare);
    gf_status status = outputs_check_twice(inputs, outputs, sorted, error);
    /* Otherwise nothing that is there is replaced. */
    if (!status && (line->options.files.force || line->options.resume))
        status = outputs_check_inputs(inputs, outputs, sorted, line->options.resume, error);
    free(sorted);
    return status;
}

gf_status gf_cli_outputs_name(const gf_cli_line *line, const gf_cli_inputs *inputs,
                              gf_cli_output **out, gf_error *error) {
    gf_cli_output *outputs = *out = calloc(inputs->count + 1, sizeof *outputs);
    gf_status status = outputs ? GF_OK : outputs_out_of_memory(error);
    for (size_t i = 0; i < inputs->count && !status; i++)
        status = outputs_name_one(line, &inputs->list[i], i + 1, &outputs[i], error);
    return status ? status : outputs_check(line, inputs, outputs, error);
}

void gf_cli_outputs_free(gf_cli_output *outputs, size_t count) {
    for (size_t i = 0; outputs && i < count; i++) {
        free(outputs[i].path);
        free(outputs[i].real);
    }
    free(outputs);
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Wait until the folder that a path is in is on the disk. Returns 0 or an errno. */
static int folders_sync(const char *path) {
    char *folder = strdup(path);
    const int fd = folder ? open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int failed = fd;
    if (fd >= 0)
        do
            failed = fsync(fd);
        while (failed < 0 && errno == EINTR);
    /* EINVAL: the file system has no need of it. */
    const int cause = failed < 0 && errno != EINVAL ? errno : 0;
    if (fd >= 0)
        close(fd);
    free(folder);
    return cause;
}

struct gf_cli_folder {
    struct gf_cli_folder *before;
    char path[];
};

/* Returns 0 or an errno. */
static int folders_make_one(gf_cli_folders *made, const char *path) {
    struct stat info;
    const size_t size = strlen(path) + 1;
    struct gf_cli_folder *folder = malloc(sizeof *folder + size);
    if (!folder)
        return ENOMEM;
    if (mkdir(path, 0777) == 0) {
        memcpy(folder->path, path, size);
        folder->before = made->last;
        made->last = folder;
        return made->sync ? folders_sync(path) : 0;
    }
    const int cause = errno;
    free(folder);
    /* Who may not make it may have it already: EROFS and EACCES come before EEXIST. */
    if (stat(path, &info) == 0)
        return S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
    return cause;
}

/* Make a folder, and those it is in. Returns 0 or an errno. */
static int folders_make_all(gf_cli_folders *made, char *path) {
    int cause = 0;
    for (char *at = path + 1; !cause; at++) {
        if (*at && *at != '/')
            continue;
        const char end = *at;
        *at = 0;
        cause = folders_make_one(made, path);
        *at = end;
        if (!end)
            break;
    }
    return cause;
}

/* Fail as that would, or if nothing could be made in the folder; make nothing. *what: which. */
static int folders_try(char *path, const char **what) {
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

gf_status gf_cli_folders_make(gf_cli_folders *made, const char *path, size_t length,
                              gf_error *error) {
    if (made->ready && made->length == length && memcmp(made->ready, path, length) == 0)
        return GF_OK;
    const char *what = "create";
    char *folder = length ? strndup(path, length) : strdup("/");
    const int cause = !folder         ? ENOMEM
                      : made->dry_run ? folders_try(folder, &what)
                                      : folders_make_all(made, folder);
    free(folder);
    if (cause) {
        gf_set_error(error, GF_FAILED, "%.*s: cannot %s the folder: %s", (int)length, path, what,
                     strerror(cause));
        error->cause = cause;
        return GF_FAILED;
    }
    made->ready = path;
    made->length = length;
    return GF_OK;
}

void gf_cli_folders_close(gf_cli_folders *made, bool remove) {
    for (struct gf_cli_folder *folder = made->last, *before; folder; folder = before) {
        before = folder->before;
        if (remove)
            (void)rmdir(folder->path);
        free(folder);
    }
}
