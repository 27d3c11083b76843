#include "io/path.h"

#include <string.h>

const char *gf_path_last_part(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

const char *gf_path_ending(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash != NULL ? slash : path, '.');

    return dot != NULL ? dot + 1 : "";
}

char *gf_path_folder(const char *path) {
    const char *last = gf_path_last_part(path);

    return last == path ? strdup(".") : strndup(path, (size_t)(last - path));
}
