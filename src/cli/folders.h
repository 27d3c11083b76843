/* Folders: paths in them; those that are made for outputs, and taken away again if nothing came of
 * it. */
#ifndef GF_CLI_FOLDERS_H
#define GF_CLI_FOLDERS_H

#include "gpufilter.h"

/* Those that were made, outer ones first. All zero is none. */
typedef struct gf_cli_folders {
    char **list;
    size_t count, room;
    bool sync; /* each is on the disk when it has been made */
} gf_cli_folders;

/* FOLDER/NAME, for the caller to free; NULL if out of memory. */
char *gf_cli_join(const char *folder, const char *name);
/* Waits until the folder that a path is in is on the disk. Returns 0 or an errno. */
int gf_cli_folder_sync(const char *path);
/* Makes a folder, and those it is in. */
gf_status gf_cli_folders_make(gf_cli_folders *made, const char *path, gf_error *error);
/* Fails as that would, or if nothing could be made in the folder; makes nothing. */
gf_status gf_cli_folders_check(const char *path, gf_error *error);
/* Removes those that were made and are empty. */
void gf_cli_folders_remove(const gf_cli_folders *made);
void gf_cli_folders_free(gf_cli_folders *made);

#endif
