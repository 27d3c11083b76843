/* A file without a name gets one: its own by a link or, where the system refuses that, that of
 * another file with its bytes. */

#include "io/output_link.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "io/output_copy.h"
#include "io/output_temporary.h"
#include "io/temporaries.h"

/* Does the system refuse to name a file that has no name, though it made that file? AppArmor and
 * SELinux do, file systems without links, FUSE and sandboxes without the call, and mounts of a part
 * of a file system. Other errors would meet a copy, too. */
static bool is_refused(int cause) {
    return cause == EPERM || cause == EACCES || cause == EXDEV || cause == EOPNOTSUPP ||
           cause == ENOENT || cause == ENOSYS || cause == EINVAL;
}

static int copy_if_refused(gf_output *output, int cause) {
    return is_refused(cause) ? gf_output_copy_to_temporary(output, cause) : cause;
}

int gf_output_give_name(gf_output *output) {
    if (linkat(AT_FDCWD, output->nameless, AT_FDCWD, output->target, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    return copy_if_refused(output, errno);
}

int gf_output_give_temporary(gf_output *output) {
    int cause = EEXIST;

    for (int attempt = 0; attempt < GF_TEMPORARY_ATTEMPTS && cause == EEXIST; attempt++) {
        cause = gf_output_begin_temporary(output);
        if (cause == 0) {
            if (linkat(AT_FDCWD, output->nameless, AT_FDCWD, output->temporary,
                       AT_SYMLINK_FOLLOW) != 0)
                cause = errno;
            gf_temporary_made(output->slot);
        }
        if (cause != 0)
            gf_output_end_temporary(output);
    }
    return copy_if_refused(output, cause);
}
