/* The file that an output is until it is complete: in the folder of its target, so that it can get
 * its name there. One without a name is gone when the process is, whatever ends it; where the
 * system or the file system does not know such files, it has a temporary name. */
#define _GNU_SOURCE /* O_TMPFILE */

#include "io/output_create.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/output_temporary.h"
#include "io/path.h"

int gf_output_open_nameless(const char *beside, int flags, mode_t mode) {
#ifdef O_TMPFILE
    char *folder = gf_path_folder(beside);
    const int fd = folder != NULL ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | flags, mode) : -1;

    free(folder);
    return fd;
#else
    (void)beside, (void)flags, (void)mode;
    return -1;
#endif
}

/* It gets its name through /proc, which must be that of this process. */
static bool is_reached(gf_output *output) {
    struct stat made, reached;

    (void)snprintf(output->nameless, sizeof output->nameless, "/proc/self/fd/%d", output->fd);
    return fstat(output->fd, &made) == 0 && stat(output->nameless, &reached) == 0 &&
           made.st_dev == reached.st_dev && made.st_ino == reached.st_ino;
}

gf_status gf_output_create(gf_output *output, mode_t mode, gf_error *error) {
    /* An output that replaces a file needs a temporary name in the end: check now that it can have
     * one. */
    const bool refused = output->replaces && gf_output_check_temporary(output) != 0;

    output->fd = refused ? -1 : gf_output_open_nameless(output->target, 0, mode);
    output->owned = output->fd >= 0;
    if (output->owned && is_reached(output))
        return GF_OK;
    if (output->owned)
        (void)close(output->fd);
    output->owned = false;
    output->nameless[0] = '\0';
    return gf_output_create_temporary(output, mode, error);
}
