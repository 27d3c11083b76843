#define _GNU_SOURCE /* asprintf */
#include "outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gf_status outputs_out_of_memory(gf_error *error) {
    gf_set_error(error, GF_FAILED, "--out-dir: out of memory for the names of the outputs");
    return GF_FAILED;
}

/* ---- templates ------------------------------------------------------------------------------- */

/* Write the extension of an output: .png for a format that is only read. */
static void template_put_ending(FILE *file, const char *base, const char *format) {
    const gf_about_format *known = gf_cli_named_format(base);
    if (format)
        fprintf(file, ".%s", format);
    else
        fputs(known && known->written ? gf_cli_ending(base) : ".png", file);
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
        fwrite(base, 1, strlen(base) - strlen(gf_cli_ending(base)), file);
    else if (strcmp(text, "ext") == 0)
        template_put_ending(file, base, format);
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

/* The last folder of the path that is there. before: another output, likely in the same one. */
static gf_status outputs_find_place(gf_cli_output *output, const gf_cli_output *before,
                                    gf_error *error) {
    const size_t length = output->folder;
    if (before && before->folder == length && memcmp(before->path, output->path, length) == 0) {
        output->place = before->place;
        return GF_OK;
    }
    char *folder = strndup(output->path, length);
    struct stat info;
    if (!folder)
        return outputs_out_of_memory(error);
    bool there = false;
    for (char *end = folder + length; end > folder && !there;) {
        there = stat(folder, &info) == 0;
        while (!there && end > folder && *--end != '/')
            continue;
        *end = 0;
    }
    const char *start = output->path[0] == '/' ? "/" : ".";
    output->place.below = strlen(folder);
    if (there || stat(start, &info) == 0) {
        output->place.device = info.st_dev;
        output->place.inode = info.st_ino;
    }
    free(folder);
    return GF_OK;
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
        const char *ending = gf_cli_ending(name);
        gf_set_error(error, GF_USAGE,
                     "--name: '%s'%s%s; end it with {ext} or a known ending such as .png, or add "
                     "--format",
                     name, *ending ? ": cannot write " : " would not tell the format", ending);
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
    output->below = length + (root ? 0 : 1);
    free(name);
    if (!output->path)
        return outputs_out_of_memory(error);
    output->folder = (size_t)(strrchr(output->path, '/') - output->path);
    return outputs_find_place(output, index > 1 ? output - 1 : NULL, error);
}

/* ---- files that two names mean --------------------------------------------------------------- */

/* A file or a folder, and a path below it; of which output. */
typedef struct outputs_key {
    dev_t device;
    ino_t inode;
    const char *below;
    const gf_cli_output *output;
} outputs_key;

static int outputs_compare_places(const void *one, const void *other) {
    const outputs_key *a = one, *b = other;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    if (a->inode != b->inode)
        return a->inode < b->inode ? -1 : 1;
    return strcmp(a->below, b->below);
}

/* Of one place, in the order of the outputs. */
static int outputs_compare(const void *one, const void *other) {
    const outputs_key *a = one, *b = other;
    const int order = outputs_compare_places(a, b);
    return order ? order : a->output < b->output ? -1 : a->output > b->output;
}

gf_cli_look gf_cli_look_at(const char *path) {
    struct stat info;
    gf_cli_look look = {0};
    if (lstat(path, &info) != 0)
        return look;
    look.taken = true;
    look.link = S_ISLNK(info.st_mode);
    if ((look.link && stat(path, &info) != 0) || !S_ISREG(info.st_mode))
        return look;
    look.there = true;
    look.alone = info.st_nlink == 1;
    look.device = info.st_dev;
    look.inode = info.st_ino;
    look.empty = info.st_size == 0;
    look.time = info.st_mtim;
    return look;
}

bool gf_cli_is_finished(const gf_cli_look *output, const gf_cli_input *input) {
    const struct timespec *made = &output->time, *changed = &input->time;
    return output->there && !output->empty &&
           (made->tv_sec != changed->tv_sec ? made->tv_sec > changed->tv_sec
                                            : made->tv_nsec > changed->tv_nsec);
}

/* Other runs replace outputs, and the file system gives their inodes to new files: two that seemed
 * to be one file are looked at again. */
static bool outputs_is_one_file(const char *a, const char *b) {
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* May two outputs with this inode be two names of one file, each replaced by itself? Not links to
 * one, nor two spellings of its only name. */
static bool outputs_replace_apart(const gf_cli_output *a, const gf_cli_output *b) {
    const bool names = !b->look.alone && !a->look.link && !b->look.link;
    return names || !outputs_is_one_file(a->path, b->path);
}

/* Refuse two outputs with one key: of those, the second one that is named first. */
static gf_status outputs_check_twice(const gf_cli_inputs *inputs, const gf_cli_output *outputs,
                                     const outputs_key *keys, size_t count, bool files,
                                     gf_error *error) {
    const outputs_key *first = keys, *one = NULL, *other = NULL;
    for (const outputs_key *key = keys; key < keys + count; key++) {
        if (outputs_compare_places(first, key) != 0)
            first = key;
        if (key != first && (!other || key->output < other->output) &&
            !(files && outputs_replace_apart(first->output, key->output))) {
            one = first;
            other = key;
        }
    }
    if (!other)
        return GF_OK;
    return gf_set_error(error, GF_USAGE,
                        "%s: would be written from %.300s and from %.300s; give them names apart "
                        "with --name, such as '{index}-{stem}{ext}'",
                        other->output->path, inputs->list[one->output - outputs].path,
                        inputs->list[other->output - outputs].path);
}

static gf_status outputs_check_places(const gf_cli_inputs *inputs, const gf_cli_output *outputs,
                                      outputs_key *keys, gf_error *error) {
    for (size_t i = 0; i < inputs->count; i++) {
        const char *rest = outputs[i].path + outputs[i].place.below;
        keys[i] = (outputs_key){outputs[i].place.device, outputs[i].place.inode,
                                rest + (*rest == '/'), &outputs[i]};
    }
    qsort(keys, inputs->count, sizeof *keys, outputs_compare);
    return outputs_check_twice(inputs, outputs, keys, inputs->count, false, error);
}

/* An input that another one's output replaces would be read before or after that, by chance. With
 * --resume, an image that replaces itself would be filtered again by each run. */
static gf_status outputs_check_inputs(const gf_cli_inputs *inputs, const gf_cli_output *outputs,
                                      const outputs_key *keys, size_t count, bool resume,
                                      gf_error *error) {
    for (size_t i = 0; i < inputs->count; i++) {
        const gf_cli_input *input = &inputs->list[i];
        const outputs_key key = {input->device, input->inode, "", NULL}, *found = NULL;
        if (input->there && count)
            found = bsearch(&key, keys, count, sizeof key, outputs_compare_places);
        if (!found)
            continue;
        if (resume && outputs_is_one_file(input->path, outputs[i].path))
            return gf_set_error(error, GF_USAGE,
                                "%s: replaces itself, so --resume cannot tell whether it is "
                                "finished; name another --out-dir or --name",
                                input->path);
        const gf_cli_input *own = &inputs->list[found->output - outputs];
        if ((own->there && own->device == input->device && own->inode == input->inode) ||
            !outputs_is_one_file(input->path, found->output->path))
            continue;
        return gf_set_error(error, GF_USAGE,
                            "%s: is an input, and the output of %.300s would replace it; name "
                            "another --out-dir or --name",
                            input->path, own->path);
    }
    return GF_OK;
}

static gf_status outputs_check_files(const gf_cli_line *line, const gf_cli_inputs *inputs,
                                     gf_cli_output *outputs, outputs_key *keys, gf_error *error) {
    size_t count = 0;
    for (size_t i = 0; i < inputs->count; i++) {
        const gf_cli_look look = outputs[i].look = gf_cli_look_at(outputs[i].path);
        if (look.there)
            keys[count++] = (outputs_key){look.device, look.inode, "", &outputs[i]};
    }
    /* Otherwise nothing that is there is replaced. */
    if (!line->options.files.force && !line->options.resume)
        return GF_OK;
    qsort(keys, count, sizeof *keys, outputs_compare);
    const gf_status status = outputs_check_twice(inputs, outputs, keys, count, true, error);
    return status ? status
                  : outputs_check_inputs(inputs, outputs, keys, count, line->options.resume, error);
}

gf_status gf_cli_outputs_name(const gf_cli_line *line, const gf_cli_inputs *inputs,
                              gf_cli_output **out, gf_error *error) {
    *out = NULL;
    gf_status status = GF_OK;
    gf_cli_output *outputs = calloc(inputs->count + 1, sizeof *outputs);
    outputs_key *keys = calloc(inputs->count + 1, sizeof *keys);
    if (!outputs || !keys) {
        free(outputs);
        free(keys);
        return outputs_out_of_memory(error);
    }
    for (size_t i = 0; i < inputs->count && !status; i++)
        status = outputs_name_one(line, &inputs->list[i], i + 1, &outputs[i], error);
    if (!status)
        status = outputs_check_places(inputs, outputs, keys, error);
    if (!status)
        status = outputs_check_files(line, inputs, outputs, keys, error);
    free(keys);
    if (status)
        gf_cli_outputs_free(outputs, inputs->count);
    else
        *out = outputs;
    return status;
}

void gf_cli_outputs_free(gf_cli_output *outputs, size_t count) {
    for (size_t i = 0; outputs && i < count; i++)
        free(outputs[i].path);
    free(outputs);
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Wait until the folder that a path is in is on the disk. Returns 0 or an errno. */
static int folders_sync(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path + 1)) : strdup(".");
    const int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
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

static gf_status folders_fail(const char *path, const char *what, int cause, gf_error *error) {
    gf_set_error(error, GF_FAILED, "%s: cannot %s the folder: %s", path, what, strerror(cause));
    error->cause = cause;
    return GF_FAILED;
}

gf_status gf_cli_folders_make(gf_cli_folders *made, const char *path, gf_error *error) {
    char *part = strdup(path);
    int cause = part ? 0 : ENOMEM;
    for (char *at = part + 1; part && *part && !cause; at++) {
        if (*at && *at != '/')
            continue;
        const char end = *at;
        *at = 0;
        cause = folders_make_one(made, part);
        *at = end;
        if (!end)
            break;
    }
    free(part);
    return cause ? folders_fail(path, "create", cause, error) : GF_OK;
}

gf_status gf_cli_folders_check(const char *path, gf_error *error) {
    char *part = strdup(*path ? path : "/");
    const char *what = "write to";
    struct stat info;
    int cause = part ? 0 : ENOMEM;
    /* From the folder outwards, to one that is there. */
    while (!cause && stat(part, &info) != 0) {
        char *slash = strrchr(part, '/');
        what = "create";
        if ((errno != ENOENT && errno != ENOTDIR) || !strcmp(part, "/") || !strcmp(part, "."))
            cause = errno;
        else if (slash && slash != part)
            *slash = 0;
        else
            memcpy(part, slash ? "/" : ".", 2);
    }
    if (!cause && !S_ISDIR(info.st_mode)) {
        what = "create";
        cause = ENOTDIR;
    } else if (!cause && access(part, W_OK | X_OK) != 0) {
        cause = errno;
    }
    free(part);
    return cause ? folders_fail(path, what, cause, error) : GF_OK;
}

void gf_cli_folders_close(gf_cli_folders *made, bool remove) {
    for (struct gf_cli_folder *folder = made->last, *before; folder; folder = before) {
        before = folder->before;
        if (remove)
            (void)rmdir(folder->path);
        free(folder);
    }
}
