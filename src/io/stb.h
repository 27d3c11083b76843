/* Interface to the stb libraries, and the checks that make them safe to use. */
#ifndef GF_STB_H
#define GF_STB_H

#include "io/formats.h"

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

/* Result of decoding. */
typedef enum gf_stb_outcome {
    GF_STB_NONE, /* the decoder stored no result */
    GF_STB_DECODED,
    GF_STB_TRUNCATED,      /* the file ends too early */
    GF_STB_REJECTED,       /* stb cannot decode it; the reason is stored */
    GF_STB_INVALID_HEADER, /* invalid dimensions */
    GF_STB_INVALID_CODES,  /* a GIF contains an undefined code */
    GF_STB_PSD_CHANNELS,   /* the PSD channels are not RGB */
    GF_STB_PSD_COMPRESSED, /* the PSD has compressed 16-bit samples */
    GF_STB_OVER_LIMIT,     /* the format is valid, but exceeds the limits */
    GF_STB_OVER_MEMORY     /* the arena is too small */
} gf_stb_outcome;

/* A file in memory, and the state of reading it. */
typedef struct gf_stb_bytes {
    const unsigned char *data;
    size_t size;
    size_t used;
    void *buffer; /* stb's buffer, known after its first read */
    bool past_end;
    bool loading, hdr; /* loading: pixels are being decoded; hdr: of an HDR file */
    /* Called while pixels are decoded, as soon as decoding is known to fail with TRUNCATED or
     * OVER_MEMORY. If it returns, stb continues with zeros for missing bytes. May be NULL. */
    void (*on_abort)(void *context, gf_stb_outcome reason);
    void *context;
} gf_stb_bytes;

/* The next two functions allocate only from the arena and make no system calls. */

/* Read the size and the number of channels from the header. */
bool gf_stb_info(gf_stb_bytes *bytes, gf_arena *arena, int *width, int *height, int *channels);
/* Decode into a block of the arena. Return NULL on failure. channels: 0 to keep those of the file;
 * their number is returned in *found. */
void *gf_stb_load(gf_stb_bytes *bytes, gf_arena *arena, gf_type type, int channels, int *width,
                  int *height, int *found);
/* Return why the last of these calls failed in this thread; never NULL. */
const char *gf_stb_reason(void);

typedef void gf_stb_write_func(void *context, void *data, int size);

/* Encode an image whose rows have no gaps as BMP, TGA or HDR. The encoded bytes are passed to
 * `write`. scratch: 4 * width bytes for HDR, otherwise NULL. */
bool gf_stb_write(gf_sink_kind kind, gf_stb_write_func *write, void *context, int width, int height,
                  int channels, const void *pixels, void *scratch);

/* Decoding of a BMP, TGA, PSD, GIF or HDR file inside the sandbox: memory comes from an
 * arena, no system calls, no messages. The caller must not trust the result. */

/* Integers only, so any byte pattern is a valid object. */
typedef struct gf_stb_result {
    uint32_t outcome; /* a gf_stb_outcome */
    uint32_t channels;
    uint32_t type; /* a gf_type */
    uint64_t width, height;
    uint64_t offset; /* DECODED: offset of the pixels in the arena; rows have no gaps */
    char reason[64]; /* REJECTED: message of stb */
} gf_stb_result;

typedef struct gf_stb_task {
    const unsigned char *data;
    size_t size;
    uint64_t file_bytes; /* size of the file; more than size if data is only its beginning */
    const gf_limits *limits;
    gf_arena *arena;
    gf_stb_result *result;
    bool header_only; /* read only the header; DECODED: it is within the limits */
    /* Called as soon as the result is known during decoding. If it returns, decoding continues
     * without effect. May be NULL. */
    void (*exit)(int code);
} gf_stb_task;

void gf_stb_decode(const gf_stb_task *task);

/* Size of the smallest header. stb's format detection reads that many bytes without a check. */
enum { GF_STB_MIN_BYTES = 19 };

/* Append the metadata of a BMP, PSD, GIF or TGA file in memory, at most one item of each kind, and
 * set bits of gf_dropped for kinds that are not read. `data` holds at least GF_STB_MIN_BYTES bytes
 * of any content. name: for messages. Return GF_FAILED if out of memory. */
gf_status gf_stb_metadata(const unsigned char *data, size_t size, gf_metadata *metadata,
                          uint32_t *dropped, const char *name, gf_error *error);

/* ---- sizes of files and memory; data holds at least GF_STB_MIN_BYTES bytes ------------------- */

bool gf_stb_is_hdr(const unsigned char *data);

/* Return the bits per pixel of a BMP; data holds at least 30 bytes. */
uint32_t gf_bmp_bits(const unsigned char *data);

/* Return the min size in bytes of a file with this format; 0 if unknown. A smaller file is
 * truncated and need not be decoded. */
uint64_t gf_stb_min_bytes(const gf_stb_bytes *bytes, const gf_format *format);

/* Return the peak memory of decoding in bytes, with the decoded image, without the file. */
uint64_t gf_stb_peak_bytes(const unsigned char *data, const gf_format *format);

/* ---- checks of formats that stb does not make ------------------------------------------------ */

/* Convert a BMP with a palette to one with 256 palette entries and the same pixels; added entries
 * are black. Other files stay unchanged. *file was allocated by malloc and may be reallocated; the
 * caller frees it. */
gf_status gf_bmp_fill_palette(unsigned char **file, size_t *size, const char *name,
                              gf_error *error);

/* Check a GIF up to the end of its first frame. stb_image checks it only after clearing memory for
 * all pixels. DECODED: stb decodes exactly these files. TRUNCATED: the frame does not end in the
 * file, or has more pixels than the file can hold. INVALID_HEADER: the frame exceeds the canvas, or
 * there is no frame or no colour table. INVALID_CODES: a code is undefined. */
gf_stb_outcome gf_gif_check(const unsigned char *data, size_t size);

#endif
