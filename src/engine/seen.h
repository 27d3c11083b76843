/* Is a file that was read still the same one? */
#ifndef GF_SEEN_H
#define GF_SEEN_H

#include <stdbool.h>
#include <sys/stat.h>

/* A file as it was before anything was read of it. */
typedef struct gf_seen {
    bool regular; /* it can be read again */
    struct stat info;
} gf_seen;

gf_seen gf_see(const char *path);
/* Is it regular still, and unchanged? */
bool gf_is_still(const gf_seen *before, const char *path);

#endif
