#define _GNU_SOURCE /* MADV_POPULATE_WRITE */

#include "io/output_map.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/output.h"

#if defined(__linux__) && defined(MADV_POPULATE_WRITE)

#include <linux/magic.h>
#include <sys/vfs.h>

int gf_output_map_open(const gf_output *output, uint64_t offset, size_t size, gf_output_map *map) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), before = offset % page;
    int failed;

    map->page_bytes = size + (size_t)before;
    map->pages = mmap(NULL, map->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, output->fd,
                      (off_t)(offset - before));
    if (map->pages == MAP_FAILED)
        return errno;
    /* Touching a page that the file system has no room for would be a signal. */
    do {
        failed = madvise(map->pages, map->page_bytes, MADV_POPULATE_WRITE) != 0 ? errno : 0;
    } while (failed == EINTR);
    if (failed != 0) {
        gf_output_map_close(map);
        return failed == EFAULT ? ENOSPC : failed;
    }
    map->data = (unsigned char *)map->pages + before;
    return 0;
}

void gf_output_map_close(gf_output_map *map) {
    (void)munmap(map->pages, map->page_bytes);
}

bool gf_output_map_start(gf_output *output, uint64_t size) {
    struct statfs system;
    gf_output_map first;

    if (!gf_output_seekable(output) || output->used != 0 || size > INT64_MAX ||
        fstatfs(output->fd, &system) != 0 || system.f_type != TMPFS_MAGIC ||
        ftruncate(output->fd, (off_t)size) != 0)
        return false;
    /* Older systems do not know the call. */
    if (gf_output_map_open(output, 0, 1, &first) != 0)
        return false;
    gf_output_map_close(&first);
    return true;
}

#else

bool gf_output_map_start(gf_output *output, uint64_t size) {
    (void)output;
    (void)size;
    return false;
}

int gf_output_map_open(const gf_output *output, uint64_t offset, size_t size, gf_output_map *map) {
    (void)output;
    (void)offset;
    (void)size;
    (void)map;
    return ENOSYS;
}

void gf_output_map_close(gf_output_map *map) {
    (void)map;
}

#endif
