/* Memory for a decoder that may ask nobody for any: blocks one behind the other in a piece that is
 * there already, all given back at once with it. */
#ifndef GF_ARENA_H
#define GF_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct gf_arena {
    unsigned char *base; /* aligned as malloc's; its bytes are 0 in the beginning */
    size_t size;
    size_t used;
    size_t last;    /* of used, before the last block; NONE if that was given back */
    size_t touched; /* bytes that were ever handed out: above them all is still 0 */
    bool exhausted; /* a block was refused */
} gf_arena;

void gf_arena_init(gf_arena *arena, void *base, size_t size);
/* Zeros, aligned as malloc's. NULL if they do not fit. */
void *gf_arena_alloc(gf_arena *arena, size_t size);
/* Gives back the last block; of others nothing is reused. NULL is allowed. */
void gf_arena_free(gf_arena *arena, void *block);
/* No more blocks come: what is around them may be read and written again. */
void gf_arena_end(gf_arena *arena);

#endif
