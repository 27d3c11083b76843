#include "io/metadata.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

void gf_metadata_init(gf_metadata *metadata) {
    *metadata = (gf_metadata){.pfm_scale = 1.0};
}

void gf_metadata_clear(gf_metadata *metadata) {
    for (size_t i = 0; i < metadata->count; i++)
        free(metadata->chunks[i].data);
    free(metadata->chunks);
    gf_metadata_init(metadata);
}

gf_status gf_metadata_append(gf_metadata *metadata, const char *name, gf_chunk_place place,
                             const void *data, size_t size, const char *file, gf_error *error) {
    /* Capacities are powers of two, so the count alone says when the array is full. */
    if ((metadata->count & (metadata->count - 1)) == 0) {
        size_t capacity = metadata->count == 0 ? 1 : 2 * metadata->count;
        gf_chunk *grown = realloc(metadata->chunks, capacity * sizeof *grown);
        if (grown == NULL)
            return gf_fail_memory(error, file, capacity * sizeof *grown, "metadata");
        metadata->chunks = grown;
    }

    gf_chunk chunk = {.place = place, .size = size};
    memcpy(chunk.name, name, 4);
    /* One byte for an empty chunk: malloc(0) may give NULL. */
    chunk.data = malloc(size == 0 ? 1 : size);
    if (chunk.data == NULL)
        return gf_fail_memory(error, file, size, "metadata");
    if (size != 0)
        memcpy(chunk.data, data, size);
    metadata->chunks[metadata->count++] = chunk;
    return GF_OK;
}
