#include "folders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

char *gf_cli_join(const char *folder, const char *name) {
    const size_t length = strlen(folder), size = length + strlen(name) + 2;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/",
                 name);
    return path;
}

int gf_cli_folder_sync(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path + 1)) : strdup(".");
    const int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int failed = fd;
    if (fd >= 0)
        do
            failed = fsync(fd);
        while (failed < 0 && errno == EINTR);
    /* EINVAL: the file system has no need of it. */
    const int cause = failed < 0 && errno != EINVAL ? errno : 0;
    if (fd >= 0)
        close(fd);
    free(folder);
    return cause;
}

static bool has_room(gf_cli_folders *made) {
    if (made->count < made->room)
        return true;
    const size_t room = made->room ? 2 * made->room : 16;
    char **list = realloc(made->list, room * sizeof *list);
    if (!list)
        return false;
    made->list = list;
    made->room = room;
    return true;
}

/* Returns 0 or an errno. */
static int make_one(gf_cli_folders *made, const char *path) {
    struct stat info;
    char *copy = has_room(made) ? strdup(path) : NULL;
    if (!copy)
        return ENOMEM;
    if (mkdir(path, 0777) == 0) {
        made->list[made->count++] = copy;
        return made->sync ? gf_cli_folder_sync(path) : 0;
    }
    const int cause = errno;
    free(copy);
    /* Who may not make it may have it already: EROFS and EACCES come before EEXIST. */
    if (stat(path, &info) == 0)
        return S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
    return cause;
}

static gf_status fail_folder(const char *path, const char *what, int cause, gf_error *error) {
    gf_set_error(error, GF_FAILED, "%s: cannot %s the folder: %s", path, what, strerror(cause));
    error->cause = cause;
    return GF_FAILED;
}

gf_status gf_cli_folders_make(gf_cli_folders *made, const char *path, gf_error *error) {
    char *part = strdup(path);
    int cause = part ? 0 : ENOMEM;
    for (char *at = part + 1; part && *part && !cause; at++) {
        if (*at && *at != '/')
            continue;
        const char end = *at;
        *at = 0;
        cause = make_one(made, part);
        *at = end;
        if (!end)
            break;
    }
    free(part);
    return cause ? fail_folder(path, "create", cause, error) : GF_OK;
}

gf_status gf_cli_folders_check(const char *path, gf_error *error) {
    char *part = strdup(*path ? path : "/");
    const char *what = "write to";
    struct stat info;
    int cause = part ? 0 : ENOMEM;
    /* From the folder outwards, to one that is there. */
    while (!cause && stat(part, &info) != 0) {
        char *slash = strrchr(part, '/');
        what = "create";
        if ((errno != ENOENT && errno != ENOTDIR) || !strcmp(part, "/") || !strcmp(part, "."))
            cause = errno;
        else if (slash && slash != part)
            *slash = 0;
        else
            memcpy(part, slash ? "/" : ".", 2);
    }
    if (!cause && !S_ISDIR(info.st_mode)) {
        what = "create";
        cause = ENOTDIR;
    } else if (!cause && access(part, W_OK | X_OK) != 0) {
        cause = errno;
    }
    free(part);
    return cause ? fail_folder(path, what, cause, error) : GF_OK;
}

void gf_cli_folders_remove(const gf_cli_folders *made) {
    for (size_t i = made->count; i > 0; i--)
        (void)rmdir(made->list[i - 1]);
}

void gf_cli_folders_free(gf_cli_folders *made) {
    for (size_t i = 0; i < made->count; i++)
        free(made->list[i]);
    free(made->list);
    *made = (gf_cli_folders){0};
}
