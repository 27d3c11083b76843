/* Interface to the stb libraries, and to the decoding of whole files in the sandbox. */
#ifndef GF_STB_H
#define GF_STB_H

#include <string.h>

#include "io/formats.h"
#include "io/raster.h"

/* Arena allocator for a decoder that cannot call malloc: consecutive blocks in memory that is
 * already allocated. They are all freed with that memory. */

typedef struct gf_arena {
    unsigned char *base; /* aligned as by malloc; initially all 0 */
    size_t size;
    size_t used;
    size_t last;    /* value of used before the last block; NONE if that block was freed */
    size_t touched; /* bytes ever allocated; the rest is still 0 */
    bool exhausted; /* an allocation has failed */
} gf_arena;

void gf_arena_init(gf_arena *arena, void *base, size_t size);
/* Allocate zeroed memory, aligned as by malloc. Return NULL if it does not fit. */
void *gf_arena_alloc(gf_arena *arena, size_t size);
/* Free the last block. Other blocks are not reused. NULL is allowed. */
void gf_arena_free(gf_arena *arena, void *block);
/* End allocation: make the gaps between blocks accessible again. */
void gf_arena_end(gf_arena *arena);

/* ---- decoding -------------------------------------------------------------------------------- */

/* An HDR file in memory, and the state of reading it. */
typedef struct gf_stb_bytes {
    const unsigned char *data;
    size_t size;
    size_t used;
    void *buffer; /* stb's buffer, known after its first read */
    bool past_end;
    bool loading; /* pixels are being decoded */
    /* Called while pixels are decoded, as soon as decoding is known to fail with TRUNCATED or
     * OVER_MEMORY. If it returns, stb continues with zeros for missing bytes. May be NULL. */
    void (*on_abort)(void *context, gf_raster_outcome reason);
    void *context;
} gf_stb_bytes;

/* The next two functions allocate only from the arena and make no system calls. */

/* Read the size from the header of an HDR file. */
bool gf_stb_info(gf_stb_bytes *bytes, gf_arena *arena, int *width, int *height);
/* Decode it into f32 RGB, in a block of the arena. Return NULL on failure. */
void *gf_stb_load(gf_stb_bytes *bytes, gf_arena *arena, int *width, int *height);
/* Return why the last of these calls failed in this thread; never NULL. */
const char *gf_stb_reason(void);

typedef void gf_stb_write_func(void *context, void *data, int size);

/* Encode an image whose rows have no gaps as BMP, TGA or HDR. The encoded bytes are passed to
 * `write`. scratch: 4 * width bytes for HDR, otherwise NULL. */
bool gf_stb_write(gf_sink_kind kind, gf_stb_write_func *write, void *context, int width, int height,
                  int channels, const void *pixels, void *scratch);

/* Decoding of a BMP, TGA, PSD, GIF (raster.h) or HDR file inside the sandbox: memory comes from an
 * arena, no system calls, no messages. The caller must not trust the result. */

/* Integers only, so any byte pattern is a valid object. */
typedef struct gf_stb_result {
    uint32_t outcome; /* a gf_raster_outcome */
    uint32_t channels;
    uint32_t type; /* a gf_type */
    uint64_t width, height;
    uint64_t offset;  /* READ: offset of the pixels in the arena; rows have no gaps */
    char reason[64];  /* DAMAGED, UNSUPPORTED */
    uint64_t damaged; /* the rest: as in gf_raster */
    uint32_t unread, pages;
} gf_stb_result;

typedef struct gf_stb_task {
    const unsigned char *data;
    size_t size;
    uint64_t file_bytes; /* size of the file; more than size if data is only its beginning */
    const gf_limits *limits;
    gf_arena *arena;
    gf_stb_result *result;
    bool header_only; /* read only the header; READ: it is within the limits */
    /* Called as soon as the result is known during decoding. If it returns, decoding continues
     * without effect. May be NULL. */
    void (*exit)(int code);
} gf_stb_task;

void gf_stb_decode(const gf_stb_task *task);

/* Size of the smallest header; format detection reads that many bytes without a check. */
enum { GF_STB_MIN_BYTES = 19 };

/* Append the metadata of a BMP, PSD, GIF or TGA file in memory, at most one item of each kind, and
 * set bits of gf_dropped for kinds that are not read. `data` holds at least GF_STB_MIN_BYTES bytes
 * of any content. name: for messages. Return GF_FAILED if out of memory. */
gf_status gf_stb_metadata(const unsigned char *data, size_t size, gf_metadata *metadata,
                          uint32_t *dropped, const char *name, gf_error *error);

/* Return whether the data, of at least GF_STB_MIN_BYTES bytes, is that of an HDR file. */
static inline bool gf_stb_is_hdr(const unsigned char *data) {
    return memcmp(data, "#?", 2) == 0;
}

#endif
