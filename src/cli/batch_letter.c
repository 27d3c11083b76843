#include "batch_letter.h"

#include <string.h>

#include "ranks.h"

void *gf_cli_batch_need(void *memory) {
    if (!memory)
        gf_cli_ranks_abort("out of memory for a batch on several ranks");
    return memory;
}

_Noreturn void gf_cli_batch_misunderstood(void) {
    gf_cli_ranks_abort("ranks do not understand each other; start the same gpufilter on all");
}

void gf_cli_letter_head(const void *data, size_t size, gf_cli_head *head) {
    if (size < sizeof *head)
        gf_cli_batch_misunderstood();
    memcpy(head, data, sizeof *head);
}

const void *gf_cli_letter_check(const void *data, size_t size, size_t wanted) {
    if (size != wanted)
        gf_cli_batch_misunderstood();
    return data;
}
