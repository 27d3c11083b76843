#include "engine/seen.h"

#include <string.h>

gf_seen gf_see(const char *path) {
    gf_seen seen = {.regular = false};
    seen.regular =
        strcmp(path, "-") != 0 && stat(path, &seen.info) == 0 && S_ISREG(seen.info.st_mode);
    return seen;
}

bool gf_is_still(const gf_seen *before, const char *path) {
    const gf_seen now = gf_see(path);
    const struct stat *a = &before->info, *b = &now.info;
    return now.regular && a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}
