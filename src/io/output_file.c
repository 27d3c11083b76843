/* Files that the program itself writes: the outputs' rules, for a whole file at once. */
#include <stdlib.h>

#include "error.h"
#include "io/files.h"

struct gf_output_file {
    gf_output *output;
    bool written;
};

gf_status gf_output_file_open(const char *path, const gf_file_options *options,
                              gf_output_file **file, gf_error *error) {
    const gf_file_options defaults = {0};
    gf_output_file *new = calloc(1, sizeof *new);

    *file = NULL;
    if (new == NULL)
        return gf_fail_memory(error, path, sizeof *new, "a file");
    if (options == NULL)
        options = &defaults;
    gf_status status = gf_output_open(path, options->force, &new->output, error);
    if (status == GF_OK)
        status = gf_output_set_sync(new->output, options->sync, error);
    if (status != GF_OK) {
        gf_output_file_close(new);
        return status;
    }
    *file = new;
    return GF_OK;
}

gf_status gf_output_file_write(gf_output_file *file, const void *data, size_t size,
                               gf_error *error) {
    if (file->written)
        return gf_fail(error, GF_USAGE, "%s: is finished already", gf_output_name(file->output));
    file->written = true;
    gf_status status = gf_output_write(file->output, data, size, error);
    return status == GF_OK ? gf_output_prepare(file->output, error) : status;
}

gf_status gf_output_file_finish(gf_output_file *file, const void *data, size_t size,
                                gf_error *error) {
    const gf_status status = gf_output_file_write(file, data, size, error);

    return status == GF_OK ? gf_output_place(file->output, error) : status;
}

gf_output *gf_output_file_output(const gf_output_file *file) {
    return file->output;
}

void gf_output_file_close(gf_output_file *file) {
    if (file == NULL)
        return;
    gf_output_close(file->output);
    free(file);
}
