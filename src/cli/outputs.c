#include "outputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "journal.h"
#include "name.h"

static gf_status outputs_out_of_memory(gf_error *error) {
    return gf_set_error(error, GF_FAILED, "--out-dir: out of memory for the names of the outputs");
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The last folder of the path that is there. before: another output, likely in the same one. */
static gf_status find_place(gf_cli_output *output, const gf_cli_output *before, gf_error *error) {
    const size_t length = output->folder;
    if (before && before->folder == length && memcmp(before->path, output->path, length) == 0) {
        output->folder_device = before->folder_device;
        output->folder_inode = before->folder_inode;
        output->below_folder = before->below_folder;
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
    output->below_folder = strlen(folder);
    if (there || stat(start, &info) == 0) {
        output->folder_device = info.st_dev;
        output->folder_inode = info.st_ino;
    }
    free(folder);
    return GF_OK;
}

/* FOLDER/DIRECTORY OF THE INPUT BELOW WHAT WAS NAMED/NAME */
static gf_status name_one(const gf_cli_line *line, const gf_cli_input *input, uint64_t index,
                          gf_cli_output *output, gf_error *error) {
    const char *folder = line->options.out_dir;
    const char *format = line->options.files.format;
    const char *kept = input->path + input->below, *slash = strrchr(kept, '/');
    const char *base = slash ? slash + 1 : kept;
    char *name = gf_cli_template_fill(line->options.name, base, format, index);
    if (!name)
        return outputs_out_of_memory(error);
    gf_status status = GF_OK;
    if (!format && !gf_cli_is_written(name)) {
        const char *ending = gf_cli_ending(name);
        status =
            gf_set_error(error, GF_USAGE,
                         "--name: '%s'%s%s; end it with {ext} or a known ending such as .png, "
                         "or add --format",
                         name, *ending ? ": cannot write " : " would not tell the format", ending);
    } else if (gf_cli_journal_is_name(name)) {
        status = gf_set_error(error, GF_USAGE,
                              "--name: '%s' is what the record of finished outputs is called; name "
                              "outputs otherwise",
                              name);
    }
    if (status) {
        free(name);
        return status;
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
    if (!output->path)
        return outputs_out_of_memory(error);
    output->folder = (size_t)(strrchr(output->path, '/') - output->path);
    return find_place(output, index > 1 ? output - 1 : NULL, error);
}

/* ---- places ---------------------------------------------------------------------------------- */

static const char *below_folder(const gf_cli_output *output) {
    const char *rest = output->path + output->below_folder;
    return rest + (*rest == '/');
}

static uint64_t hash_file(dev_t device, ino_t inode) {
    return gf_cli_hash(gf_cli_hash(GF_CLI_HASH_START, &device, sizeof device), &inode,
                       sizeof inode);
}

static uint64_t hash_place(const void *things, size_t i) {
    const gf_cli_output *output = (const gf_cli_output *)things + i;
    return gf_cli_hash_text(hash_file(output->folder_device, output->folder_inode),
                            below_folder(output));
}

static bool same_place(const void *things, size_t i, size_t j) {
    const gf_cli_output *a = (const gf_cli_output *)things + i,
                        *b = (const gf_cli_output *)things + j;
    return a->folder_device == b->folder_device && a->folder_inode == b->folder_inode &&
           strcmp(below_folder(a), below_folder(b)) == 0;
}

static gf_status refuse_two(const gf_cli_inputs *inputs, size_t first, size_t second,
                            const char *output, gf_error *error) {
    return gf_set_error(error, GF_USAGE,
                        "%s: would be written from %.300s and from %.300s; give them names apart "
                        "with --name, such as '{index}-{stem}{ext}'",
                        output, inputs->list[first].path, inputs->list[second].path);
}

static gf_status check_places(const gf_cli_inputs *inputs, const gf_cli_output *outputs,
                              gf_error *error) {
    gf_cli_index index = {.hash = hash_place, .same = same_place};
    gf_status status = GF_OK;
    for (size_t i = 0, other; i < inputs->count && !status; i++)
        if (!gf_cli_index_add(&index, outputs, i, &other))
            status = outputs_out_of_memory(error);
        else if (other != GF_CLI_NONE)
            status = refuse_two(inputs, other, i, outputs[i].path, error);
    gf_cli_index_free(&index);
    return status;
}

/* ---- files that are there -------------------------------------------------------------------- */

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
    look.size = (uint64_t)info.st_size;
    look.time = gf_cli_time(&info);
    return look;
}

static uint64_t hash_output(const void *things, size_t i) {
    const gf_cli_look *look = &((const gf_cli_output *)things)[i].look;
    return hash_file(look->device, look->inode);
}

static bool same_output(const void *things, size_t i, size_t j) {
    const gf_cli_output *list = things;
    const gf_cli_look *a = &list[i].look, *b = &list[j].look;
    return a->device == b->device && a->inode == b->inode;
}

/* Runs beside this one replace outputs, and the file system gives their inodes to others: what
 * looked like one file is looked at again. */
static bool is_one_file(const char *a, const char *b) {
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* Two outputs may be two names of one file, each replaced by itself; but not links to one, nor two
 * spellings of its only name. */
static gf_status check_links(const gf_cli_inputs *inputs, const gf_cli_output *outputs,
                             gf_cli_index *index, gf_error *error) {
    gf_status status = GF_OK;
    for (size_t i = 0, other; i < inputs->count && !status; i++) {
        const gf_cli_look *look = &outputs[i].look;
        if (!look->there)
            continue;
        if (!gf_cli_index_add(index, outputs, i, &other))
            status = outputs_out_of_memory(error);
        else if (other != GF_CLI_NONE && (look->alone || look->link || outputs[other].look.link) &&
                 is_one_file(outputs[other].path, outputs[i].path))
            status = refuse_two(inputs, other, i, outputs[i].path, error);
    }
    return status;
}

/* An input that another one's output replaces would be read before or after that, by chance. */
static gf_status outputs_check_inputs(const gf_cli_inputs *inputs, gf_cli_output *outputs,
                                      const gf_cli_index *index, gf_error *error) {
    for (size_t i = 0; i < inputs->count; i++) {
        const gf_cli_input *input = &inputs->list[i];
        if (!input->there)
            continue;
        /* The place behind the last is for what is looked for. */
        gf_cli_look *probe = &outputs[inputs->count].look;
        probe->device = input->device;
        probe->inode = input->inode;
        const size_t found = gf_cli_index_find(index, outputs, inputs->count);
        if (found == GF_CLI_NONE || found == i)
            continue;
        const gf_cli_input *own = &inputs->list[found];
        if ((own->there && own->device == input->device && own->inode == input->inode) ||
            !is_one_file(input->path, outputs[found].path))
            continue;
        return gf_set_error(error, GF_USAGE,
                            "%s: is an input, and the output of %.300s would replace it; name "
                            "another --out-dir or --name",
                            input->path, own->path);
    }
    return GF_OK;
}

static gf_status check_files(const gf_cli_line *line, const gf_cli_inputs *inputs,
                             gf_cli_output *outputs, gf_error *error) {
    for (size_t i = 0; i < inputs->count; i++)
        outputs[i].look = gf_cli_look_at(outputs[i].path);
    /* Otherwise nothing that is there is replaced. */
    if (!line->options.files.force && !line->options.resume)
        return GF_OK;
    gf_cli_index index = {.hash = hash_output, .same = same_output};
    gf_status status = check_links(inputs, outputs, &index, error);
    if (!status)
        status = outputs_check_inputs(inputs, outputs, &index, error);
    gf_cli_index_free(&index);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------- */

gf_status gf_cli_outputs_name(const gf_cli_line *line, const gf_cli_inputs *inputs,
                              gf_cli_output **out, gf_error *error) {
    *out = NULL;
    gf_status status = gf_cli_template_check(line->options.name, error);
    if (status)
        return status;
    gf_cli_output *outputs = calloc(inputs->count + 1, sizeof *outputs);
    if (!outputs)
        return outputs_out_of_memory(error);
    for (size_t i = 0; i < inputs->count && !status; i++)
        status = name_one(line, &inputs->list[i], i + 1, &outputs[i], error);
    if (!status)
        status = check_places(inputs, outputs, error);
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
