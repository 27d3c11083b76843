/* Files that the program itself writes: the outputs' rules, for a whole file at once. */
#include <stdlib.h>

#include "error.h"
#include "io/files.h"

struct gf_output_file {
    gf_output *output;
    bool finished;
};

gf_status gf_output_file_open(const char *path, bool force, gf_output_file **file,
                              gf_error *error) {
    gf_output_file *new = calloc(1, sizeof *new);

    *file = NULL;
    if (new == NULL)
        return gf_fail_memory(error, path, sizeof *new, "a file");
    gf_status status = gf_output_open(path, force, &new->output, error);
    if (status != GF_OK) {
        free(new);
        return status;
    }
    *file = new;
    return GF_OK;
}

gf_status gf_output_file_finish(gf_output_file *file, const void *data, size_t size,
                                gf_error *error) {
    if (file->finished)
        return gf_fail(error, GF_USAGE, "%s: is finished already", gf_output_name(file->output));
    file->finished = true;
    gf_status status = gf_output_write(file->output, data, size, error);
    if (status == GF_OK)
        status = gf_output_prepare(file->output, error);
    return status == GF_OK ? gf_output_place(file->output, error) : status;
}

void gf_output_file_close(gf_output_file *file) {
    if (file == NULL)
        return;
    gf_output_close(file->output);
    free(file);
}
