/* The temporary files that exist right now, so that a signal handler can remove them. */
#ifndef GF_TEMPORARIES_H
#define GF_TEMPORARIES_H

/* Notes a path that is about to be created. Returns its slot, or -1 if the table is full or the
 * path too long. Between this and gf_temporary_made another thread's handler waits for the caller:
 * nothing but the creation may happen there. */
int gf_temporary_add(const char *path);
/* The file has been created, or could not be, or will be by renaming another temporary. */
void gf_temporary_made(int slot);
/* The file is gone or has its final name. slot may be -1. */
void gf_temporary_drop(int slot);

/* Does not return while another thread's handler ends the process: what failed because that removed
 * its file is not to be told. */
void gf_temporary_give_way(void);

#endif
