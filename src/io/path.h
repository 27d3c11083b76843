/* Parts of paths. */
#ifndef GF_PATH_H
#define GF_PATH_H

/* The part behind the last slash. */
const char *gf_path_last_part(const char *path);
/* What follows the last dot of the last part; "" if there is none. */
const char *gf_path_ending(const char *path);
/* The folder that a path is in, for the caller to free; NULL if out of memory. */
char *gf_path_folder(const char *path);

#endif
