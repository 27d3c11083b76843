/* Finding equals among many things that have numbers. */
#ifndef GF_CLI_HASH_H
#define GF_CLI_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GF_CLI_HASH_START UINT64_C(0xcbf29ce484222325)

/* FNV-1a, to be continued from what it returns. */
uint64_t gf_cli_hash(uint64_t hash, const void *data, size_t size);
/* Of a text and its end, so that the next one does not run into it. */
uint64_t gf_cli_hash_text(uint64_t hash, const char *text);

/* A table of numbers. Thing i is what the functions make of things[i]; the caller's array may move
 * between calls. */
typedef struct gf_cli_index {
    uint64_t (*hash)(const void *things, size_t i);
    bool (*same)(const void *things, size_t i, size_t j);
    size_t *slots; /* a number + 1; 0: free */
    size_t room, used;
} gf_cli_index;

#define GF_CLI_NONE SIZE_MAX

/* The number of one like thing i; GF_CLI_NONE if there is none. */
size_t gf_cli_index_find(const gf_cli_index *index, const void *things, size_t i);
/* The same, but adds i where there is none. False: out of memory. */
bool gf_cli_index_add(gf_cli_index *index, const void *things, size_t i, size_t *other);
void gf_cli_index_free(gf_cli_index *index);

#endif
