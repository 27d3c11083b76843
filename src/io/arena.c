#include "io/arena.h"

#include <string.h>

/* Under AddressSanitizer what lies between the blocks is poisoned, so that who writes past one is
 * caught as with malloc. */
#if defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHED 1
#endif
#endif
#ifdef WATCHED
#include <sanitizer/asan_interface.h>
#define forbid(address, size) __asan_poison_memory_region(address, size)
#define allow(address, size) __asan_unpoison_memory_region(address, size)
#else
#define forbid(address, size) ((void)(address), (void)(size))
#define allow(address, size) ((void)(address), (void)(size))
#endif

/* The gap is before each block, and behind the last. */
enum { ALIGN = 16, GAP = 32, NONE = 1 };

void gf_arena_init(gf_arena *arena, void *base, size_t size) {
    *arena = (gf_arena){.base = base, .size = size, .last = NONE};
}

void *gf_arena_alloc(gf_arena *arena, size_t size) {
    const size_t left = arena->size - arena->used;

    if (left < 2 * GAP + ALIGN || size > left - 2 * GAP - ALIGN) {
        arena->exhausted = true;
        return NULL;
    }
    const size_t start = arena->used + GAP;
    const size_t end = start + (size + ALIGN - 1) / ALIGN * ALIGN;
    unsigned char *block = arena->base + start;
    forbid(block - GAP, end + GAP - arena->used);
    allow(block, size);
    if (start < arena->touched)
        memset(block, 0, size < arena->touched - start ? size : arena->touched - start);
    arena->last = arena->used;
    arena->used = end;
    if (end > arena->touched)
        arena->touched = end;
    return block;
}

void gf_arena_free(gf_arena *arena, void *block) {
    if (block == NULL || arena->last == NONE || block != arena->base + arena->last + GAP)
        return;
    forbid(block, arena->used - arena->last - GAP);
    arena->used = arena->last;
    arena->last = NONE;
}

void gf_arena_end(gf_arena *arena) {
    allow(arena->base, arena->touched != 0 ? arena->touched + GAP : 0);
}
