#include "hist/hist_differ.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Through the samples of one extracted bin, from piece to piece. */
typedef struct gf_hist_walk {
    const gf_hist_plan *plan;
    const gf_payloads *payloads;
    uint32_t rank, piece;
    uint64_t next; /* of the piece's samples of this bin */
} gf_hist_walk;

typedef struct gf_hist_found {
    uint64_t position;
    unsigned char value[4];
} gf_hist_found;

static const unsigned char *piece_of(const gf_payloads *payloads, uint32_t piece) {
    return payloads->data + piece * payloads->stride;
}

static uint64_t offset_of(const gf_payloads *payloads, uint32_t piece, uint32_t rank) {
    uint64_t offset;
    memcpy(&offset, piece_of(payloads, piece) + rank * sizeof offset, sizeof offset);
    return offset;
}

/* Does every head hold ascending offsets, and all together no more samples than there are? */
static bool is_sound(const gf_hist_plan *plan, uint64_t rows, const gf_payloads *payloads) {
    uint64_t room = rows * plan->head.in.width * plan->measured;
    for (uint32_t p = 0; p < payloads->count; p++) {
        if (offset_of(payloads, p, 0) != 0)
            return false;
        for (uint32_t r = 0; r < plan->extracts; r++)
            if (offset_of(payloads, p, r) > offset_of(payloads, p, r + 1))
                return false;
        const uint64_t count = offset_of(payloads, p, plan->extracts);
        if (count > room)
            return false;
        room -= count;
    }
    return true;
}

/* The next sample; false after the last one. */
static bool next(gf_hist_walk *walk, gf_hist_found *found) {
    const gf_hist_plan *plan = walk->plan;
    const gf_payloads *all = walk->payloads;
    const size_t bytes = gf_type_bytes(plan->head.in.type);
    for (; walk->piece < all->count; walk->piece++, walk->next = 0) {
        const uint64_t i = offset_of(all, walk->piece, walk->rank) + walk->next;
        if (i == offset_of(all, walk->piece, walk->rank + 1))
            continue;
        const uint64_t count = offset_of(all, walk->piece, plan->extracts);
        const unsigned char *positions = piece_of(all, walk->piece) + gf_hist_head_bytes(plan);
        const unsigned char *values = positions + count * sizeof(uint64_t);
        memset(found, 0, sizeof *found);
        memcpy(&found->position, positions + i * sizeof(uint64_t), sizeof(uint64_t));
        memcpy(found->value, values + i * bytes, bytes);
        walk->next++;
        return true;
    }
    return false;
}

static uint32_t bin_of_rank(const gf_hist_plan *plan, uint32_t rank) {
    return plan->extract_all ? rank : plan->listed[rank];
}

static uint32_t bits_of(const gf_hist_found *found) {
    uint32_t bits;
    memcpy(&bits, found->value, sizeof bits);
    return bits;
}

/* In image order, of the samples of one bin. */
static bool bin_differs(const gf_hist_plan *plan, uint32_t rank, const gf_payloads *golden,
                        const gf_payloads *got, char *where, size_t size) {
    gf_hist_walk want = {.plan = plan, .payloads = golden, .rank = rank}, have = want;
    have.payloads = got;
    for (uint64_t n = 0;; n++) {
        gf_hist_found a = {0}, b = {0};
        const bool wanted = next(&want, &a), there = next(&have, &b);
        if (!wanted && !there)
            return false;
        if (wanted && there && a.position == b.position && memcmp(a.value, b.value, 4) == 0)
            continue;
        if (wanted != there)
            snprintf(where, size, "bin %" PRIu32 " has %s samples than it should have",
                     bin_of_rank(plan, rank), there ? "more" : "fewer");
        else
            snprintf(where, size,
                     "a sample of bin %" PRIu32 " is 0x%" PRIx32 " at place %" PRIu64
                     " and should be 0x%" PRIx32 " at place %" PRIu64,
                     bin_of_rank(plan, rank), bits_of(&b), b.position, bits_of(&a), a.position);
        return true;
    }
}

bool gf_hist_differ(const gf_plan *head, uint64_t rows, const gf_payloads *golden,
                    const gf_payloads *got, char *where, size_t size) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    if (!is_sound(plan, rows, got)) {
        snprintf(where, size, "the numbers of extracted samples contradict each other");
        return true;
    }
    for (uint32_t rank = 0; rank < plan->extracts; rank++)
        if (bin_differs(plan, rank, golden, got, where, size))
            return true;
    return false;
}
