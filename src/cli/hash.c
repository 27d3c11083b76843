#include "hash.h"

#include <stdlib.h>
#include <string.h>

uint64_t gf_cli_hash(uint64_t hash, const void *data, size_t size) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t gf_cli_hash_text(uint64_t hash, const char *text) {
    return gf_cli_hash(hash, text, strlen(text) + 1);
}

/* The slot of thing i, or of one like it, or the free one where it belongs. */
static size_t slot_of(const gf_cli_index *index, const void *things, size_t i) {
    /* The low bits alone choose: those above are folded in. */
    uint64_t hash = index->hash(things, i);
    hash ^= hash >> 32;
    size_t slot = (size_t)hash & (index->room - 1);
    while (index->slots[slot] && !index->same(things, index->slots[slot] - 1, i))
        slot = (slot + 1) & (index->room - 1);
    return slot;
}

size_t gf_cli_index_find(const gf_cli_index *index, const void *things, size_t i) {
    if (!index->room)
        return GF_CLI_NONE;
    const size_t found = index->slots[slot_of(index, things, i)];
    return found ? found - 1 : GF_CLI_NONE;
}

static bool index_grow(gf_cli_index *index, const void *things) {
    const gf_cli_index old = *index;
    const size_t room = old.room ? 2 * old.room : 64;
    size_t *slots = calloc(room, sizeof *slots);
    if (!slots)
        return false;
    index->slots = slots;
    index->room = room;
    for (size_t i = 0; i < old.room; i++)
        if (old.slots[i])
            slots[slot_of(index, things, old.slots[i] - 1)] = old.slots[i];
    free(old.slots);
    return true;
}

bool gf_cli_index_add(gf_cli_index *index, const void *things, size_t i, size_t *other) {
    *other = GF_CLI_NONE;
    if (2 * (index->used + 1) > index->room && !index_grow(index, things))
        return false;
    size_t *slot = &index->slots[slot_of(index, things, i)];
    if (*slot) {
        *other = *slot - 1;
    } else {
        *slot = i + 1;
        index->used++;
    }
    return true;
}

void gf_cli_index_free(gf_cli_index *index) {
    free(index->slots);
    index->slots = NULL;
    index->room = index->used = 0;
}
