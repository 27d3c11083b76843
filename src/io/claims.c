#include "io/claims.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gf_claim *claims;

bool gf_claim_take(gf_claim *claim) {
    pthread_mutex_lock(&lock);
    const gf_claim *other = claims;
    while (other != NULL && (other->device != claim->device || other->inode != claim->inode ||
                             strcmp(other->name, claim->name) != 0))
        other = other->next;
    claim->taken = other == NULL;
    if (claim->taken) {
        claim->next = claims;
        claims = claim;
    }
    pthread_mutex_unlock(&lock);
    return claim->taken;
}

void gf_claim_drop(gf_claim *claim) {
    if (!claim->taken)
        return;
    pthread_mutex_lock(&lock);
    gf_claim **at = &claims;
    while (*at != claim)
        at = &(*at)->next;
    *at = claim->next;
    claim->taken = false;
    pthread_mutex_unlock(&lock);
}
