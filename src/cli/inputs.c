#define _GNU_SOURCE /* asprintf, strcasestr */
#include "inputs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const gf_about_format gf_about_formats[] = {
    {"PNG", "png", true, true,
     "Every colour type and depth, interlaced, too; 16 bits stay 16. Its metadata go along from PNG "
     "to PNG."},
    {"PGM", "pgm pnm", true, true, "Grey, 8 or 16 bits; text or binary in, binary out."},
    {"PPM", "ppm pnm", true, true, "RGB, 8 or 16 bits; text or binary in, binary out."},
    {"PBM", "pbm", false, false, "Not read: pbmtopgm makes a PGM of it."},
    {"PAM", "pam", true, true, "1 to 4 channels, 8 or 16 bits."},
    {"PFM", "pfm", true, true, "Grey or RGB, binary32."},
    {"JPEG", "jpg jpeg", true, true, "Grey or RGB, 8 bits; loses by its nature."},
    {"BMP", "bmp", true, true, "8 bits."},
    {"TGA", "tga", true, true, "8 bits; has no mark, so it is known by its name."},
    {"PSD", "psd", true, false, "RGB; the picture of all layers together."},
    {"GIF", "gif", true, false, "Its first frame."},
    {"HDR", "hdr", true, true, "RGB, read as binary32; loses by its nature."},
    {"raw rows", "raw", false, true,
     "Samples without a header; read with --raw, written little-endian."},
    {0}};

typedef struct inputs_gather {
    gf_cli_inputs *inputs;
    const gf_cli_options *options;
} inputs_gather;

static gf_status inputs_out_of_memory(gf_error *error) {
    return gf_set_error(error, GF_FAILED, "inputs: out of memory for their names");
}

/* Print a failure and go on, unless under --fail-fast. */
static gf_status inputs_complain(const inputs_gather *gather, gf_error *error) {
    if (gather->options->fail_fast)
        return error->status;
    gf_cli_complain(error);
    gather->inputs->failed++;
    error->status = GF_OK;
    error->message[0] = 0;
    return GF_OK;
}

/* Add an input. Takes the path, which is NULL if there was no memory. info: NULL if nothing is
 * known of it. */
static gf_status inputs_add(inputs_gather *gather, char *path, size_t below,
                            const struct stat *info, gf_error *error) {
    gf_cli_inputs *inputs = gather->inputs;
    if (!path)
        return inputs_out_of_memory(error);
    /* Lengths are powers of two, so the count alone says when the list is full. */
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
    *input = (gf_cli_input){.path = path, .below = below};
    if (info) {
        input->bytes = S_ISREG(info->st_mode) ? (uint64_t)info->st_size : 0;
        input->time = info->st_mtim;
    }
    return GF_OK;
}

/* ---- folders --------------------------------------------------------------------------------- */

const char *gf_cli_extension(const char *base) {
    const char *dot = strrchr(base, '.');
    return dot && dot != base ? dot : "";
}

const gf_about_format *gf_cli_named_format(const char *name) {
    const char *extension = gf_cli_extension(name);
    for (const gf_about_format *format = gf_about_formats; *extension && format->name; format++)
        for (const char *at = format->extensions; *at; at += strspn(at, " ")) {
            const size_t size = strcspn(at, " ");
            if (strlen(extension + 1) == size && strncasecmp(extension + 1, at, size) == 0)
                return format;
            at += size;
        }
    return NULL;
}

/* Has a file the extension of an image? raw: of one without a header. Cameras use that extension,
 * too, so it counts only then. */
static bool inputs_is_image(const char *name, bool raw) {
    const gf_about_format *format = gf_cli_named_format(name);
    return format && raw == (strcmp(format->extensions, "raw") == 0);
}

static int inputs_is_shown(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static int inputs_by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Looks each time: another shard may have made it since. */
static bool inputs_is_out(const inputs_gather *gather, const struct stat *info) {
    const char *path = gather->options->out_dir;
    struct stat out;
    return path && stat(path, &out) == 0 && info->st_dev == out.st_dev &&
           info->st_ino == out.st_ino;
}

/* Count a file that is no image by its extension. Remember the extension if there is space, and if
 * a terminal shows it as it is. */
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

static gf_status inputs_walk(inputs_gather *gather, const char *folder, size_t below,
                             gf_error *error);

/* Take what a folder holds under a name. Links to folders are not followed: they may lead back. */
static gf_status inputs_visit(inputs_gather *gather, const char *folder, const char *name,
                              size_t below, gf_error *error) {
    const bool root = strcmp(folder, "/") == 0;
    char *path;
    struct stat info;
    if (asprintf(&path, "%s%s%s", folder, root ? "" : "/", name) < 0)
        return inputs_out_of_memory(error);
    if (!below)
        below = strlen(path) - strlen(name);
    bool there = lstat(path, &info) == 0;
    const int cause = there ? 0 : errno;
    gf_status status = GF_OK;
    if (there && S_ISDIR(info.st_mode)) {
        if (!inputs_is_out(gather, &info))
            status = inputs_walk(gather, path, below, error);
    } else if (inputs_is_image(name, gather->inputs->raw)) {
        /* An image that stat refuses cannot be read either, which is reported then. */
        there = there && (!S_ISLNK(info.st_mode) || stat(path, &info) == 0);
        if (!there || S_ISREG(info.st_mode))
            return inputs_add(gather, path, below, there ? &info : NULL, error);
    } else if (there && S_ISREG(info.st_mode)) {
        inputs_skip(gather->inputs, name);
    } else if (cause && cause != ENOENT) {
        /* It may be a folder with images in it. */
        gf_set_error(error, GF_FAILED, "%s: cannot look at it: %s", path, strerror(cause));
        status = inputs_complain(gather, error);
    }
    free(path);
    return status;
}

/* Take all files of a folder. It is read whole first, so that no folder is open while another is
 * read. */
static gf_status inputs_walk(inputs_gather *gather, const char *folder, size_t below,
                             gf_error *error) {
    struct dirent **entries;
    gf_status status = GF_OK;
    const int count = scandir(folder, &entries, inputs_is_shown, inputs_by_name);
    if (count < 0) {
        gf_set_error(error, GF_FAILED, "%s: cannot read the folder: %s", folder, strerror(errno));
        return inputs_complain(gather, error);
    }
    for (int i = 0; i < count; i++) {
        if (!status)
            status = inputs_visit(gather, folder, entries[i]->d_name, below, error);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static gf_status inputs_take_folder(inputs_gather *gather, const char *path,
                                    const struct stat *info, gf_error *error) {
    if (!gather->options->recursive) {
        gf_set_error(error, GF_FAILED, "%s: is a folder; add --recursive to take the images in it",
                     path);
        return inputs_complain(gather, error);
    }
    if (inputs_is_out(gather, info))
        return gf_set_error(error, GF_USAGE,
                            "%s: is --out-dir itself, whose files would be the inputs of the next "
                            "run; name another --out-dir, or the files",
                            path);
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    char *folder = strndup(path, length);
    if (!folder)
        return inputs_out_of_memory(error);
    gf_status status = inputs_walk(gather, folder, 0, error);
    free(folder);
    return status;
}

/* ---- names ----------------------------------------------------------------------------------- */

static gf_status inputs_take_name(inputs_gather *gather, const char *path, gf_error *error) {
    struct stat info;
    const bool there = stat(path, &info) == 0;
    if (there && S_ISDIR(info.st_mode))
        return inputs_take_folder(gather, path, &info, error);
    const char *slash = strrchr(path, '/');
    return inputs_add(gather, strdup(path), slash ? (size_t)(slash + 1 - path) : 0,
                      there ? &info : NULL, error);
}

/* A list of names that is being read. */
typedef struct inputs_list {
    FILE *file;
    const char *name;
    bool null;       /* a NUL byte ends a name, not a newline */
    uint64_t number; /* of the name, empty ones counted */
    char path[PATH_MAX];
} inputs_list;

/* Read the next name. One that no system call takes as a path is not held in memory. */
static gf_status inputs_read_name(inputs_list *list, gf_error *error) {
    const int end = list->null ? 0 : '\n';
    size_t length = 0;
    int c;
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
        if (length == PATH_MAX - 1)
            return gf_set_error(
                error, GF_USAGE,
                "--files-from '%s': %s %" PRIu64 " is longer than a path can be (%d bytes); %s",
                list->name, list->null ? "name" : "line", list->number, PATH_MAX - 1,
                list->null ? "leave --null out if each name is on a line of its own"
                           : "put one name on each line");
        list->path[length++] = (char)c;
    }
    list->path[length] = 0;
    return ferror(list->file)
               ? gf_set_error(error, GF_FAILED, "%s: cannot read: %s", list->name, strerror(errno))
               : GF_OK;
}

static gf_status inputs_take_list(inputs_gather *gather, const char *name, bool null,
                                  gf_error *error) {
    const bool standard = strcmp(name, "-") == 0;
    inputs_list list = {.file = standard ? stdin : fopen(name, "re"),
                        .name = standard ? "standard input" : name,
                        .null = null};
    gf_status status = GF_OK;
    if (!list.file)
        return gf_set_error(error, GF_FAILED, "%s: cannot open: %s", name, strerror(errno));
    while (!status && !feof(list.file)) {
        status = inputs_read_name(&list, error);
        /* A file may be called "-": only operands mean standard input. */
        const char *path = strcmp(list.path, "-") == 0 ? "./-" : list.path;
        if (!status && *path)
            status = inputs_take_name(gather, path, error);
    }
    if (!standard)
        fclose(list.file);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------- */

void gf_cli_skipped_text(const gf_cli_inputs *inputs, char *text, size_t size) {
    const char *extensions = inputs->extensions;
    text[0] = 0;
    if (inputs->skipped)
        snprintf(text, size, "%" PRIu64 " file%s skipped: %s%s%s%s", inputs->skipped,
                 inputs->skipped == 1 ? "" : "s",
                 inputs->raw ? "not called .raw" : "unsupported format", *extensions ? " (" : "",
                 extensions, *extensions ? ")" : "");
}

static gf_status inputs_fail_empty(const gf_cli_line *line, const gf_cli_inputs *inputs,
                                   const char *list, gf_error *error) {
    char skipped[160];
    gf_cli_skipped_text(inputs, skipped, sizeof skipped);
    if (!line->operand_count)
        return gf_set_error(error, GF_FAILED, "--files-from '%s': names no images%s%s", list,
                            *skipped ? "; " : "", skipped);
    return gf_set_error(error, GF_FAILED, "%s%s: no images found%s%s", line->operands[0],
                        line->operand_count > 1 ? " and others" : "", *skipped ? "; " : "",
                        skipped);
}

gf_status gf_cli_gather(const char *command, const gf_cli_line *line, gf_cli_inputs *inputs,
                        gf_error *error) {
    inputs_gather gather = {inputs, &line->options};
    gf_status status = GF_OK;
    inputs->raw = line->options.files.raw != NULL;
    if (!line->operand_count && !line->options.files_from)
        return gf_set_error(error, GF_USAGE, "%s: no inputs are named; see 'gpufilter %s --help'",
                            command, command);
    for (size_t i = 0; i < line->operand_count && !status; i++)
        status = strcmp(line->operands[i], "-") == 0
                     ? inputs_add(&gather, strdup("-"), 0, NULL, error)
                     : inputs_take_name(&gather, line->operands[i], error);
    const char *list = line->options.files_from;
    if (!status && list)
        status = inputs_take_list(&gather, list, line->options.null, error);
    return status || inputs->count || inputs->failed ? status
                                                     : inputs_fail_empty(line, inputs, list, error);
}

void gf_cli_inputs_free(gf_cli_inputs *inputs) {
    for (size_t i = 0; i < inputs->count; i++)
        free(inputs->list[i].path);
    free(inputs->list);
    *inputs = (gf_cli_inputs){0};
}
