/* Read and write the contents of directories. */
#define _GNU_SOURCE

#include "faults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void fatal(const char *what) {
    perror(what);
    exit(2);
}

void *need(void *memory) {
    if (!memory)
        fatal("memory");
    return memory;
}

void tree_add(gf_tree *tree, const char *path, mode_t mode, const void *data, size_t size) {
    tree->list = need(realloc(tree->list, (tree->count + 1) * sizeof *tree->list));
    gf_entry *entry = &tree->list[tree->count++];
    *entry = (gf_entry){.path = need(strdup(path)), .mode = mode, .size = size};
    if (S_ISDIR(mode))
        return;
    entry->data = need(malloc(size + 1));
    if (size)
        memcpy(entry->data, data, size);
}

const gf_entry *tree_find(const gf_tree *tree, const char *path) {
    for (size_t i = 0; i < tree->count; i++)
        if (strcmp(tree->list[i].path, path) == 0)
            return &tree->list[i];
    return NULL;
}

void tree_free(gf_tree *tree) {
    for (size_t i = 0; i < tree->count; i++) {
        free(tree->list[i].path);
        free(tree->list[i].data);
    }
    free(tree->list);
    *tree = (gf_tree){0};
}

bool entry_same(const gf_entry *a, const gf_entry *b) {
    return a->mode == b->mode && a->size == b->size && !a->data == !b->data &&
           (!a->data || memcmp(a->data, b->data, a->size) == 0);
}

static void add_file(gf_tree *tree, const char *path, const char *name, const struct stat *info) {
    unsigned char *data = need(malloc((size_t)info->st_size + 1));
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t size = 0;
    for (ssize_t got; fd >= 0 && size < (size_t)info->st_size; size += (size_t)got)
        if ((got = read(fd, data + size, (size_t)info->st_size - size)) <= 0)
            fatal(path);
    if (fd >= 0)
        close(fd);
    tree_add(tree, name, info->st_mode, data, size);
    free(data);
}

static void read_directory(gf_tree *tree, const char *directory, const char *below) {
    DIR *open_directory = opendir(directory);
    if (!open_directory)
        fatal(directory);
    for (struct dirent *entry; (entry = readdir(open_directory)) != NULL;) {
        char path[8192], name[4096];
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        snprintf(name, sizeof name, "%s%s%s", below, *below ? "/" : "", entry->d_name);
        if (lstat(path, &info) != 0)
            fatal(path);
        if (S_ISREG(info.st_mode)) {
            add_file(tree, path, name, &info);
        } else {
            tree_add(tree, name, S_IFDIR | (info.st_mode & 07777), NULL, 0);
            if (S_ISDIR(info.st_mode))
                read_directory(tree, path, name);
        }
    }
    closedir(open_directory);
}

gf_tree tree_read(const char *directory) {
    gf_tree tree = {0};
    read_directory(&tree, directory, "");
    return tree;
}

void tree_remove(const char *directory) {
    DIR *open_directory = opendir(directory);
    if (!open_directory)
        return;
    for (struct dirent *entry; (entry = readdir(open_directory)) != NULL;) {
        char path[8192];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (unlink(path) != 0 && (errno == EISDIR || errno == EPERM)) {
            tree_remove(path);
            rmdir(path);
        }
    }
    closedir(open_directory);
}

void tree_write(const gf_tree *tree, const char *directory) {
    /* An old time, so that outputs are newer even if the clock of the file system is coarse. */
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    tree_remove(directory);
    for (size_t i = 0; i < tree->count; i++) {
        const gf_entry *entry = &tree->list[i];
        char path[8192];
        snprintf(path, sizeof path, "%s/%s", directory, entry->path);
        if (!entry->data) {
            if (mkdir(path, entry->mode & 07777) != 0)
                fatal(path);
            continue;
        }
        const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, entry->data, entry->size) != (ssize_t)entry->size ||
            fchmod(fd, entry->mode & 07777) != 0 || futimens(fd, times) != 0)
            fatal(path);
        close(fd);
    }
}
