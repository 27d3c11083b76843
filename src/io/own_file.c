/* Files that the program itself writes: the outputs' rules, for a whole file at once. */
#include "error.h"
#include "io/files.h"

/* A gf_file is a gf_output under its public name. */
gf_status gf_file_open(const char *path, bool force, gf_file **file, gf_error *error) {
    gf_output *output = NULL;
    gf_status status = gf_output_open(path, force, &output, error);

    *file = (gf_file *)output;
    return status;
}

gf_status gf_file_finish(gf_file *file, const void *data, size_t size, gf_error *error) {
    gf_status status = gf_output_write((gf_output *)file, data, size, error);

    return status != GF_OK ? status : gf_output_commit((gf_output *)file, error);
}

void gf_file_close(gf_file *file) {
    gf_output_close((gf_output *)file);
}
