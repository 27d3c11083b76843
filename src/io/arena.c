/* Memory for decoders in the sandbox. */
#include "io/stb.h"

#include <string.h>

/* Under AddressSanitizer, poison the gaps between blocks. Out-of-bounds writes are then detected as
 * for malloc. */
#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER 1
#endif
#endif
#ifdef ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#define arena_poison(address, size) __asan_poison_memory_region(address, size)
#define arena_unpoison(address, size) __asan_unpoison_memory_region(address, size)
#else
#define arena_poison(address, size) ((void)(address), (void)(size))
#define arena_unpoison(address, size) ((void)(address), (void)(size))
#endif

/* A gap precedes each block and follows the last one. */
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
    arena_poison(block - GAP, end + GAP - arena->used);
    arena_unpoison(block, size);
    if (start < arena->touched)
        memset(block, 0, size < arena->touched - start ? size : arena->touched - start);
    arena->last = arena->used;
    arena->used = end;
    if (end > arena->touched)
        arena->touched = end;
    return block;
}

void gf_arena_free(gf_arena *arena, void *block) {
    if (!block || arena->last == NONE || block != arena->base + arena->last + GAP)
        return;
    arena_poison(block, arena->used - arena->last - GAP);
    arena->used = arena->last;
    arena->last = NONE;
}

void gf_arena_end(gf_arena *arena) {
    arena_unpoison(arena->base, arena->touched != 0 ? arena->touched + GAP : 0);
}
