/* The ring of announced memory. */
#include "io/stream/announced.h"

#include <assert.h>
#include <string.h>

static const gf_announced *announced_at(const gf_announcements *all, uint64_t i) {
    return &all->ring[i % GF_SOURCE_AHEAD];
}

uint64_t gf_announced_find(const gf_announcements *all, uint64_t i, uint64_t y) {
    while (i < all->count && announced_at(all, i)->end <= y)
        i++;
    return i;
}

void gf_announced_release(gf_announcements *all, uint64_t y) {
    all->released = gf_announced_find(all, all->released, y);
}

const gf_announced *gf_announced_last(const gf_announcements *all) {
    return all->count ? announced_at(all, all->count - 1) : NULL;
}

void gf_announced_add(gf_announcements *all, uint64_t y, unsigned char *to, size_t stride,
                      uint64_t rows) {
    gf_announced_release(all, y);
    assert(all->count - all->released < GF_SOURCE_AHEAD);
    const uint64_t first = all->count == all->released ? y : gf_announced_last(all)->end;
    all->ring[all->count % GF_SOURCE_AHEAD] = (gf_announced){first, first + rows, to, stride};
    all->count++; /* other threads now read it */
}

gf_announced gf_announced_rows(const gf_announcements *all, uint64_t i, uint64_t y) {
    gf_announced rows = {.first = y, .end = y};
    i = gf_announced_find(all, i, y);
    if (i == all->count || announced_at(all, i)->first > y)
        return rows;
    rows = *announced_at(all, i);
    rows.to += (y - rows.first) * rows.stride;
    rows.first = y;
    return rows;
}

void gf_announced_copy(unsigned char *dst, size_t stride, const unsigned char *from,
                       size_t from_stride, size_t bytes, uint64_t rows) {
    for (uint64_t i = 0; i < rows && from != dst; i++)
        memcpy(dst + i * stride, from + i * from_stride, bytes);
}
