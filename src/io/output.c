/* An output from when it is made until it is closed, and what is said of it where something fails.
 */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "io/output.h"
#include "io/temporaries.h"

gf_output *gf_output_new(const char *name, bool force, gf_error *error) {
    gf_output *new = malloc(sizeof *new);

    if (new == NULL) {
        gf_fail_memory(error, name, sizeof *new, "output");
        return NULL;
    }
    memset(new, 0, offsetof(gf_output, buffer));
    new->fd = -1;
    new->folder = -1;
    new->slot = -1;
    new->force = force;
    new->name = strdup(name);
    if (new->name == NULL) {
        gf_fail_memory(error, name, strlen(name) + 1, "its name");
        gf_output_close(new);
        return NULL;
    }
    return new;
}

void gf_output_close(gf_output *output) {
    if (output == NULL)
        return;
    if (output->owned)
        (void)close(output->fd);
    if (output->folder >= 0)
        (void)close(output->folder);
    if (output->temporary != NULL && !output->joined) {
        (void)unlink(output->temporary);
        gf_temporary_give_way();
    }
    gf_temporary_drop(output->slot);
    gf_claim_drop(&output->claim);
    free(output->temporary);
    free(output->target);
    free(output->name);
    free(output);
}

const char *gf_output_name(const gf_output *output) {
    return output->name;
}

const char *gf_output_reach(const gf_output *output) {
    return output == NULL                ? NULL
           : output->nameless[0] != '\0' ? output->nameless
                                         : output->temporary;
}

uint64_t gf_output_bytes(const gf_output *output) {
    struct stat info = output->made;

    if (output->target == NULL)
        return output->streamed;
    if (output->placed == GF_NOT_PLACED && stat(gf_output_reach(output), &info) != 0)
        return 0;
    return (uint64_t)info.st_size;
}

bool gf_output_seekable(const gf_output *output) {
    return gf_output_reach(output) != NULL;
}

/* ---- failures -------------------------------------------------------------------------------- */

gf_status gf_output_fail(const char *path, const char *what, int cause, gf_error *error) {
    if (cause == ENOENT)
        (void)gf_fail(error, GF_FAILED, "%s: its folder does not exist; create it first", path);
    else
        (void)gf_fail(error, GF_FAILED, "%s: %s: %s", path, what, strerror(cause));
    if (error != NULL)
        error->cause = cause;
    return GF_FAILED;
}

gf_status gf_output_fail_write(const gf_output *output, int cause, gf_error *error) {
    return gf_output_fail(output->name, "cannot write", cause, error);
}

gf_status gf_output_fail_create(const char *path, int cause, gf_error *error) {
    return gf_output_fail(path, "cannot create a file in its folder", cause, error);
}

gf_status gf_output_fail_exists(const char *name, gf_error *error) {
    return gf_fail(error, GF_FAILED, "%s: exists already; use --force to replace it", name);
}
