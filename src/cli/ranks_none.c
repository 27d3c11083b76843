/* What stands for MPI where gpufilter is built without it: this process is alone. */
#include <stdio.h>
#include <stdlib.h>

#include "ranks.h"

const bool gf_cli_has_ranks = false;

void gf_cli_ranks_start(void) {}

const gf_cli_rank *gf_cli_this_rank(void) {
    static const gf_cli_rank alone = {.job = {.count = 1}, .locals = 1};
    return &alone;
}

bool gf_cli_ranks_first(void) {
    return true;
}

int gf_cli_ranks_end(int code) {
    return code;
}

_Noreturn void gf_cli_ranks_abort(const char *why) {
    fprintf(stderr, "gpufilter: %s\n", why);
    exit(GF_FAILED);
}

void gf_cli_ranks_post(uint32_t to, const void *data, size_t size) {
    (void)to, (void)data, (void)size;
}

size_t gf_cli_ranks_posted(void) {
    return 0;
}

void *gf_cli_ranks_poll(uint32_t *from, size_t *size) {
    (void)from, (void)size;
    return NULL;
}

long gf_cli_ranks_pause(unsigned *vain) {
    (void)vain;
    return 0;
}
