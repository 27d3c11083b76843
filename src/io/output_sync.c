/* When an output is on the disk, and when its name is. */

#define _XOPEN_SOURCE 700 /* fdatasync */

#include "io/output_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "io/path.h"

gf_status gf_output_set_sync(gf_output *output, gf_sync sync, gf_error *error) {
    output->sync = sync;
    if (sync != GF_SYNC_ALWAYS || output->target == NULL || output->joined)
        return GF_OK;
    /* Whether its folder can be synced is found out before any work. */
    char *folder = gf_path_folder(output->target);
    if (folder == NULL)
        return gf_fail_memory(error, output->name, strlen(output->target), "a name");
    output->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int cause = errno;
    free(folder);
    return output->folder >= 0 ? GF_OK
                               : gf_fail(error, GF_FAILED,
                                         "%s: cannot open its folder, to sync it: %s; leave --sync "
                                         "out, or allow it to be read",
                                         output->name, strerror(cause));
}

int gf_output_sync_file(gf_output *output) {
    int failed;

    do
        failed = output->sync == GF_SYNC_ALWAYS ? fsync(output->fd) : fdatasync(output->fd);
    while (failed != 0 && errno == EINTR);
    /* EINVAL: the file system has no need of it. */
    output->synced = failed == 0 || errno == EINVAL;
    return output->synced ? 0 : errno;
}

/* Is it to be on the disk before it has its name? */
static bool must_sync(const gf_output *output) {
    struct stat info;

    if (output->sync != GF_SYNC_REPLACING)
        return output->sync == GF_SYNC_ALWAYS;
    return output->replaces ||
           (output->force && output->target != NULL && lstat(output->target, &info) == 0);
}

gf_status gf_output_sync_if_due(gf_output *output, gf_error *error) {
    const int cause = must_sync(output) ? gf_output_sync_file(output) : 0;

    /* Pipes, terminals and the like have no disk. */
    if (cause == 0 || ((cause == EINVAL || cause == ENOTSUP) && !gf_output_seekable(output)))
        return GF_OK;
    return gf_output_fail_write(output, cause, error);
}

gf_status gf_output_sync_folder(const gf_output *output, gf_error *error) {
    int failed = 0;

    if (output->folder >= 0)
        do
            failed = fsync(output->folder);
        while (failed != 0 && errno == EINTR);
    /* EINVAL: the file system has no need of it. */
    if (failed == 0 || errno == EINVAL)
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: is complete, but may not be there after a power failure: cannot sync its "
                   "folder: %s",
                   output->name, strerror(errno));
}
