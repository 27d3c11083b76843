#include "outputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "name.h"

static gf_status out_of_memory(gf_error *error) {
    return gf_cli_fail(error, GF_FAILED, "out of memory for the names of the outputs");
}

/* ---- names ----------------------------------------------------------------------------------- */

/* FOLDER/DIRECTORY OF THE INPUT BELOW WHAT WAS NAMED/NAME */
static gf_status name_one(const gf_cli_line *line, const gf_cli_input *input, uint64_t index,
                          gf_cli_output *output, gf_error *error) {
    const char *folder = gf_settings_text(line->common, "out-dir");
    const char *format = gf_settings_text(line->common, "format");
    const char *kept = input->path + input->below, *slash = strrchr(kept, '/');
    const char *base = slash ? slash + 1 : kept;
    char *name = gf_cli_template_fill(gf_settings_text(line->common, "name"), base, format, index);
    if (!name)
        return out_of_memory(error);
    if (!format && !gf_cli_is_written(name)) {
        gf_cli_fail(error, GF_USAGE,
                    "--name: '%s' would not tell the format; end it with {ext} or a known ending "
                    "such as .png, or add --format",
                    name);
        free(name);
        return GF_USAGE;
    }
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    const bool root = length == 1 && folder[0] == '/';
    const size_t size = length + strlen(kept) + strlen(name) + 2;
    output->path = malloc(size);
    if (output->path)
        snprintf(output->path, size, "%.*s%s%.*s%s", (int)length, folder, root ? "" : "/",
                 (int)(base - kept), kept, name);
    output->below = length + (root ? 0 : 1);
    free(name);
    return output->path ? GF_OK : out_of_memory(error);
}

static uint64_t hash_path(const void *things, size_t i) {
    const gf_cli_output *output = (const gf_cli_output *)things + i;
    return gf_cli_hash_text(GF_CLI_HASH_START, output->path + output->below);
}

static bool same_path(const void *things, size_t i, size_t j) {
    const gf_cli_output *list = things;
    return strcmp(list[i].path + list[i].below, list[j].path + list[j].below) == 0;
}

static gf_status refuse_two(const gf_cli_inputs *inputs, size_t first, size_t second,
                            const char *output, gf_error *error) {
    return gf_cli_fail(error, GF_USAGE,
                       "%s: would be written from %.300s and from %.300s; give them names apart "
                       "with --name, such as '{index}-{stem}{ext}'",
                       output, inputs->list[first].path, inputs->list[second].path);
}

static gf_status check_paths(const gf_cli_inputs *inputs, const gf_cli_output *outputs,
                             gf_error *error) {
    gf_cli_index index = {.hash = hash_path, .same = same_path};
    gf_status status = GF_OK;
    for (size_t i = 0, other; i < inputs->count && !status; i++)
        if (!gf_cli_index_add(&index, outputs, i, &other))
            status = out_of_memory(error);
        else if (other != GF_CLI_NONE)
            status = refuse_two(inputs, other, i, outputs[i].path, error);
    gf_cli_index_free(&index);
    return status;
}

/* ---- files that are there -------------------------------------------------------------------- */

static void look(gf_cli_output *output) {
    struct stat info;
    if (lstat(output->path, &info) != 0)
        return;
    output->link = S_ISLNK(info.st_mode);
    if ((output->link && stat(output->path, &info) != 0) || !S_ISREG(info.st_mode))
        return;
    output->there = true;
    output->device = info.st_dev;
    output->inode = info.st_ino;
    output->size = (uint64_t)info.st_size;
    output->time = gf_cli_time(&info);
}

static uint64_t hash_file(dev_t device, ino_t inode) {
    return gf_cli_hash(gf_cli_hash(GF_CLI_HASH_START, &device, sizeof device), &inode,
                       sizeof inode);
}

static uint64_t hash_output(const void *things, size_t i) {
    const gf_cli_output *output = (const gf_cli_output *)things + i;
    return hash_file(output->device, output->inode);
}

static bool same_output(const void *things, size_t i, size_t j) {
    const gf_cli_output *list = things;
    return list[i].device == list[j].device && list[i].inode == list[j].inode;
}

/* Two outputs may be two names of one file, each replaced by itself; but not links to one. */
static gf_status check_links(const gf_cli_inputs *inputs, const gf_cli_output *outputs,
                             gf_cli_index *index, gf_error *error) {
    gf_status status = GF_OK;
    for (size_t i = 0, other; i < inputs->count && !status; i++)
        if (!outputs[i].there)
            continue;
        else if (!gf_cli_index_add(index, outputs, i, &other))
            status = out_of_memory(error);
        else if (other != GF_CLI_NONE && (outputs[i].link || outputs[other].link))
            status = refuse_two(inputs, other, i, outputs[i].path, error);
    return status;
}

/* An input that another one's output replaces would be read before or after that, by chance. */
static gf_status check_inputs(const gf_cli_inputs *inputs, gf_cli_output *outputs,
                              const gf_cli_index *index, gf_error *error) {
    for (size_t i = 0; i < inputs->count; i++) {
        const gf_cli_input *input = &inputs->list[i];
        if (!input->there)
            continue;
        /* The place behind the last is for what is looked for. */
        gf_cli_output *probe = &outputs[inputs->count];
        probe->device = input->device;
        probe->inode = input->inode;
        const size_t found = gf_cli_index_find(index, outputs, inputs->count);
        if (found == GF_CLI_NONE || found == i)
            continue;
        const gf_cli_input *own = &inputs->list[found];
        if (own->there && own->device == input->device && own->inode == input->inode)
            continue;
        return gf_cli_fail(error, GF_USAGE,
                           "%s: is an input, and the output of %.300s would replace it; name "
                           "another --out-dir or --name",
                           input->path, own->path);
    }
    return GF_OK;
}

static gf_status check_files(const gf_cli_line *line, const gf_cli_inputs *inputs,
                             gf_cli_output *outputs, gf_error *error) {
    for (size_t i = 0; i < inputs->count; i++)
        look(&outputs[i]);
    /* Otherwise nothing that is there is replaced. */
    if (!gf_settings_flag(line->common, "force") && !gf_settings_flag(line->common, "resume"))
        return GF_OK;
    gf_cli_index index = {.hash = hash_output, .same = same_output};
    gf_status status = check_links(inputs, outputs, &index, error);
    if (!status)
        status = check_inputs(inputs, outputs, &index, error);
    gf_cli_index_free(&index);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------- */

gf_status gf_cli_outputs_name(const gf_cli_line *line, const gf_cli_inputs *inputs,
                              gf_cli_output **out, gf_error *error) {
    *out = NULL;
    gf_status status = gf_cli_template_check(gf_settings_text(line->common, "name"), error);
    if (status)
        return status;
    gf_cli_output *outputs = calloc(inputs->count + 1, sizeof *outputs);
    if (!outputs)
        return out_of_memory(error);
    for (size_t i = 0; i < inputs->count && !status; i++)
        status = name_one(line, &inputs->list[i], i + 1, &outputs[i], error);
    if (!status)
        status = check_paths(inputs, outputs, error);
    if (!status)
        status = check_files(line, inputs, outputs, error);
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

gf_status gf_cli_make_folder(const char *path, gf_error *error) {
    char *part = strdup(path);
    if (!part)
        return out_of_memory(error);
    int cause = 0;
    for (char *at = part + 1; *part && !cause; at++) {
        if (*at && *at != '/')
            continue;
        const char end = *at;
        *at = 0;
        struct stat info;
        if (mkdir(part, 0777) != 0) {
            cause = errno;
            /* Who may not make it may have it already: EROFS and EACCES come before EEXIST. */
            if (stat(part, &info) == 0)
                cause = S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
        }
        *at = end;
        if (!end)
            break;
    }
    free(part);
    return cause ? gf_cli_fail(error, GF_FAILED, "%s: cannot create the folder: %s", path,
                               strerror(cause))
                 : GF_OK;
}
