/* Who may do what with an output that replaces a file: never more people than before. */
#define _GNU_SOURCE

#include "io/output_access.h"

#include <errno.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/xattr.h>
#endif
#include <unistd.h>

/* Its access control list; without one, none that the folder gives to new files. */
static bool keep_list(gf_output *output, const char *from) {
#ifdef __linux__
    static const char name[] = "system.posix_acl_access";
    /* Nothing is in the buffer yet, or not any more. */
    const ssize_t size = getxattr(from, name, output->buffer, sizeof output->buffer);

    if (size > 0)
        return fsetxattr(output->fd, name, output->buffer, (size_t)size, 0) == 0;
    if (size < 0 && errno != ENODATA && errno != EOPNOTSUPP && errno != ENOSYS)
        return false;
    return fremovexattr(output->fd, name) == 0 || errno == ENODATA || errno == EOPNOTSUPP ||
           errno == ENOSYS;
#else
    (void)output, (void)from;
    return true;
#endif
}

int gf_output_keep_access(gf_output *output, const char *from, const struct stat *info) {
    mode_t mode = info->st_mode & 0777;

    /* The owner is kept where that is allowed. Without its group, what the group might do is for
     * another group; and with a list these bits are what anybody on it may do at most. */
    if (fchown(output->fd, (uid_t)-1, info->st_gid) != 0 || !keep_list(output, from))
        mode &= ~(mode_t)S_IRWXG;
    (void)!fchown(output->fd, info->st_uid, (gid_t)-1);
    return fchmod(output->fd, mode);
}
