/* Pieces of an output in memory, so that several threads can fill it: write() lets only one at a
 * time into a file. */
#ifndef GF_OUTPUT_MAP_H
#define GF_OUTPUT_MAP_H

#include "io/files.h"

typedef struct gf_output_map {
    unsigned char *data; /* of the piece asked for */
    void *pages;
    size_t page_bytes;
} gf_output_map;

/* Makes the output, empty until now, a file of so many bytes whose pieces can be mapped. False,
 * with the output as it was, where they cannot be: no file in memory (another kind may drop pages
 * that were made, and then find its disk full when they are written again), no such system. */
bool gf_output_map_start(gf_output *output, uint64_t size);
/* Maps a piece, whose pages are there: writing to it cannot fail. Returns 0 or an errno, ENOSPC for
 * a full disk. */
int gf_output_map_open(const gf_output *output, uint64_t offset, size_t size, gf_output_map *map);
void gf_output_map_close(gf_output_map *map);

#endif
