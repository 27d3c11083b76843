/* The file that an output is until it is complete: in the folder of its target, so that it can get
 * its name there. One without a name is gone when the process is, whatever ends it; where the
 * system or the file system does not know such files, it has a temporary name. */
#define _GNU_SOURCE /* O_TMPFILE */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "io/output.h"
#include "io/temporaries.h"

/* Names of temporary files are short enough for every file system (143 bytes where names are
 * encrypted) whatever the target is called. */
enum { STEM_BYTES = 64, AROUND_STEM = 64, ATTEMPTS = 16 };

/* ---- names ----------------------------------------------------------------------------------- */

const char *gf_output_last_part(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

char *gf_output_folder(const char *path) {
    const char *last = gf_output_last_part(path);

    return last == path ? strdup(".") : strndup(path, (size_t)(last - path));
}

static uint64_t random_number(void) {
    static _Thread_local uint64_t counter;
    uint64_t number;

    if (getrandom(&number, sizeof number, GRND_NONBLOCK) == (ssize_t)sizeof number)
        return number;
    /* Only uniqueness matters: O_EXCL turns a clash into another attempt. */
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    number = (uint64_t)now.tv_sec * UINT64_C(1000000007) + (uint64_t)now.tv_nsec;
    return number ^ ((uint64_t)getpid() << 40) ^ (counter++ << 56);
}

/* What is taken of a name: whole characters of UTF-8, since some file systems know no others. */
static int stem_bytes(const char *stem) {
    size_t length = strnlen(stem, STEM_BYTES);

    if (stem[length] != '\0')
        while (length > 0 && ((unsigned char)stem[length] & 0xc0) == 0x80)
            length--;
    return (int)length;
}

/* ".NAME.gpufilter-RANDOM.tmp" in the target's folder, so that renaming it is atomic. */
static char *temporary_name(const char *target) {
    const char *stem = gf_output_last_part(target);
    size_t folder = (size_t)(stem - target);
    size_t size = folder + STEM_BYTES + AROUND_STEM;
    char *name = malloc(size);

    if (name != NULL) {
        memcpy(name, target, folder);
        (void)snprintf(name + folder, size - folder, ".%.*s.gpufilter-%016" PRIx64 ".tmp",
                       stem_bytes(stem), stem, random_number());
    }
    return name;
}

/* ---- a temporary name ------------------------------------------------------------------------ */

/* Notes one before it exists, so that no signal falls between the two. Returns 0 or an errno. */
static int begin_temporary(gf_output *output) {
    output->temporary = temporary_name(output->target);
    if (output->temporary == NULL)
        return ENOMEM;
    output->slot = gf_temporary_add(output->temporary);
    return output->slot < 0 ? ENAMETOOLONG : 0;
}

/* Nothing has it. */
static void end_temporary(gf_output *output) {
    gf_temporary_drop(output->slot);
    output->slot = -1;
    free(output->temporary);
    output->temporary = NULL;
}

gf_status gf_output_fail_create(const char *path, int cause, gf_error *error) {
    if (cause == ENOENT) {
        return gf_fail(error, GF_FAILED, "%s: its folder does not exist; create it first", path);
    }
    return gf_fail(error, GF_FAILED, "%s: cannot create a file in its folder: %s", path,
                   strerror(cause));
}

gf_status gf_output_create_temporary(gf_output *output, mode_t mode, gf_error *error) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        const int failed = begin_temporary(output);
        if (failed == ENOMEM)
            return gf_fail_memory(error, output->name, strlen(output->target) + STEM_BYTES,
                                  "a name");
        if (failed != 0)
            return gf_fail(error, GF_FAILED,
                           "%s: too many outputs are open at once, or its path is too long",
                           output->name);
        /* For reading, too: what is only written cannot be mapped. */
        output->fd = open(output->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        int cause = errno;
        gf_temporary_made(output->slot);
        if (output->fd >= 0) {
            output->owned = true;
            return GF_OK;
        }
        end_temporary(output);
        if (cause != EEXIST)
            return gf_output_fail_create(output->name, cause, error);
    }
    return gf_output_fail_create(output->name, EEXIST, error);
}

/* ---- no name --------------------------------------------------------------------------------- */

int gf_output_open_nameless(const char *beside, int flags, mode_t mode) {
#ifdef O_TMPFILE
    char *folder = gf_output_folder(beside);
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
    /* What replaces something needs a temporary name in the end: that it is too long for one is
     * told now. */
    const bool too_long =
        output->replaces && strlen(output->target) + STEM_BYTES + AROUND_STEM > PATH_MAX;

    output->fd = too_long ? -1 : gf_output_open_nameless(output->target, 0, mode);
    output->owned = output->fd >= 0;
    if (output->owned && is_reached(output))
        return GF_OK;
    if (output->owned)
        (void)close(output->fd);
    output->owned = false;
    output->nameless[0] = '\0';
    return gf_output_create_temporary(output, mode, error);
}

int gf_output_give_temporary(gf_output *output) {
    int cause = EEXIST;

    for (int attempt = 0; attempt < ATTEMPTS && cause == EEXIST; attempt++) {
        cause = begin_temporary(output);
        if (cause == 0) {
            if (linkat(AT_FDCWD, output->nameless, AT_FDCWD, output->temporary,
                       AT_SYMLINK_FOLLOW) != 0)
                cause = errno;
            gf_temporary_made(output->slot);
        }
        if (cause != 0)
            end_temporary(output);
    }
    return gf_output_is_refused(cause) ? gf_output_copy_to_temporary(output, cause) : cause;
}
