/* An output's temporary name: known to signal handlers before a file has it, and as long as one
 * does. */
#define _GNU_SOURCE /* getrandom, statx */

#include "io/output_temporary.h"

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
#include "io/path.h"
#include "io/temporaries.h"

/* Names of temporary files are short enough for every file system (143 bytes where names are
 * encrypted) whatever the target is called. */
enum { STEM_BYTES = 64, AROUND_STEM = sizeof "..gpufilter-0123456789abcdef.tmp" };

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
    const char *stem = gf_path_last_part(target);
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

/* Can files in the folder be made, but neither renamed nor removed? */
static bool is_append_only(const char *folder) {
#ifdef STATX_ATTR_APPEND
    struct statx info;

    return statx(AT_FDCWD, folder, 0, 0, &info) == 0 &&
           (info.stx_attributes & STATX_ATTR_APPEND) != 0;
#else
    (void)folder;
    return false;
#endif
}

int gf_output_check_temporary(const gf_output *output) {
    const char *stem = gf_path_last_part(output->target);

    if (stem - output->target + stem_bytes(stem) + AROUND_STEM > PATH_MAX)
        return ENAMETOOLONG;
    char *folder = gf_path_folder(output->target);
    if (folder == NULL)
        return ENOMEM;
    const bool append_only = is_append_only(folder);
    free(folder);
    return append_only ? EPERM : 0;
}

int gf_output_begin_temporary(gf_output *output) {
    const int refused = gf_output_check_temporary(output);

    if (refused != 0)
        return refused;
    output->temporary = temporary_name(output->target);
    if (output->temporary == NULL)
        return ENOMEM;
    output->slot = gf_temporary_add(output->temporary);
    return output->slot < 0 ? EMFILE : 0;
}

void gf_output_end_temporary(gf_output *output) {
    gf_temporary_drop(output->slot);
    output->slot = -1;
    free(output->temporary);
    output->temporary = NULL;
}

/* Report why an output has no temporary name. */
static gf_status fail_name(const gf_output *output, int cause, gf_error *error) {
    switch (cause) {
    case ENOMEM:
        return gf_fail_memory(error, output->name, strlen(output->target) + STEM_BYTES, "a name");
    case ENAMETOOLONG:
        return gf_fail(error, GF_FAILED,
                       "%s: its path is too long for a temporary file beside it; change into its "
                       "folder and name it from there",
                       output->name);
    case EPERM:
        return gf_fail(
            error, GF_FAILED,
            "%s: its folder is append-only, so no file in it can be replaced or removed; "
            "write to another folder",
            output->name);
    default:
        return gf_fail(error, GF_FAILED, "%s: too many outputs are open at once", output->name);
    }
}

gf_status gf_output_create_temporary(gf_output *output, mode_t mode, gf_error *error) {
    for (int attempt = 0; attempt < GF_TEMPORARY_ATTEMPTS; attempt++) {
        const int failed = gf_output_begin_temporary(output);
        if (failed != 0)
            return fail_name(output, failed, error);
        /* For reading, too: what is only written cannot be mapped. */
        output->fd = open(output->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        int cause = errno;
        gf_temporary_made(output->slot);
        if (output->fd >= 0) {
            output->owned = true;
            return GF_OK;
        }
        gf_output_end_temporary(output);
        if (cause != EEXIST)
            return gf_output_fail_create(output->name, cause, error);
    }
    return gf_output_fail_create(output->name, EEXIST, error);
}
