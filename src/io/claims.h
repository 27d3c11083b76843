/* What this process is writing right now, so that two outputs never go to one place. */
#ifndef GF_CLAIMS_H
#define GF_CLAIMS_H

#include <stdbool.h>
#include <sys/types.h>

/* A file by its folder and its name there, so that it need not exist; or, with the name "", by
 * itself. */
typedef struct gf_claim {
    struct gf_claim *next;
    bool taken;
    dev_t device;
    ino_t inode;
    const char *name; /* lives as long as the claim */
} gf_claim;

/* False if there is such a claim already. */
bool gf_claim_take(gf_claim *claim);
/* Nothing for a claim that was not taken. */
void gf_claim_drop(gf_claim *claim);

#endif
