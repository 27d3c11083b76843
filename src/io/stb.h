/* The stb libraries, and what makes them safe to use. */
#ifndef GF_STB_H
#define GF_STB_H

#include "io/formats.h"

/* Memory for a decoder that may ask nobody for any: blocks one behind the other in a piece that is
 * there already, all given back at once with it. */

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

/* What is used of the stb libraries, which are compiled in files of their own. */

/* How decoding went. */
typedef enum gf_stb_outcome {
    GF_STB_NOTHING, /* nothing was said */
    GF_STB_DECODED,
    GF_STB_CUT_OFF,      /* the file ends too early */
    GF_STB_REFUSED,      /* by stb, with a reason */
    GF_STB_BAD_HEADER,   /* sizes that cannot be */
    GF_STB_BAD_TABLE,    /* a JPEG's Huffman table with too many codes */
    GF_STB_BAD_CODES,    /* of a GIF, one of which stands for nothing */
    GF_STB_PSD_CHANNELS, /* not those of RGB */
    GF_STB_PSD_PACKED,   /* 16 bits and compressed */
    GF_STB_OVER_LIMIT,   /* the format, which is there, is more than the limits allow */
    GF_STB_OVER_MEMORY   /* the arena was too small */
} gf_stb_outcome;

/* The bytes of a file, and whether the decoder wanted more than there are. */
typedef struct gf_stb_bytes {
    const unsigned char *data;
    size_t size;
    size_t used;
    void *buffer; /* the decoder's, known from its first read */
    bool past_end;
    bool loading, hdr; /* the decoder is at work on the pixels, on such */
    /* Called while an image is decoded, as soon as it is known to be in vain: CUT_OFF or
     * OVER_MEMORY. If it returns, stb goes on, with zeros for the bytes that are not there. NULL
     * for none. */
    void (*give_up)(void *context, gf_stb_outcome why);
    void *context;
} gf_stb_bytes;

/* Both take all their memory from the arena, and print, open and wait for nothing. */

/* The size that the header gives, without decoding. */
bool gf_stb_info(gf_stb_bytes *bytes, gf_arena *arena, int *width, int *height, int *channels);
/* Decodes into a block of the arena; NULL on failure. channels: 0 for as many as there are, which
 * *found then is. */
void *gf_stb_load(gf_stb_bytes *bytes, gf_arena *arena, gf_type type, int channels, int *width,
                  int *height, int *found);
/* Why the last of these calls in this thread failed; never NULL. */
const char *gf_stb_reason(void);

typedef void gf_stb_write_func(void *context, void *data, int size);

/* Encodes a whole JPEG, BMP, TGA or HDR image without gaps between rows through write. scratch: for
 * HDR 4 * width bytes, else NULL. */
bool gf_stb_write(gf_sink_kind kind, gf_stb_write_func *write, void *context, int width, int height,
                  int channels, const void *pixels, void *scratch);

/* Decoding the bytes of a JPEG, BMP, TGA, PSD, GIF or HDR file, as it is done in the sandbox: with
 * no memory but an arena, no system call, no message. What comes out is for somebody who believes
 * none of it. */

/* Plain numbers, so that any bytes here are some of them. */
typedef struct gf_stb_result {
    uint32_t outcome; /* gf_stb_outcome */
    uint32_t channels;
    uint32_t type; /* gf_type */
    uint64_t width, height;
    uint64_t offset; /* DECODED: of the pixels in the arena, rows without gaps */
    char reason[64]; /* REFUSED: why */
} gf_stb_result;

typedef struct gf_stb_task {
    const unsigned char *data;
    size_t size;
    uint64_t file_bytes; /* of which size may be the beginning, to look at the header */
    const gf_limits *limits;
    gf_arena *arena;
    gf_stb_result *result;
    bool look; /* at the header only: then DECODED says that it is within the limits */
    /* Called when all is said in the middle of decoding; if it returns, decoding goes on in vain.
     * NULL for none. */
    void (*leave)(int code);
} gf_stb_task;

void gf_stb_decode(const gf_stb_task *task);

/* No image is shorter than the least header, and stb's guessing reads that much without asking. */
enum { GF_STB_MIN_BYTES = 19 };

/* How large files and memory are of what stb decodes, from a file's first bytes: as many as the
 * least header at least. */

/* Not so is a TGA, whose first byte may be any: the second is 0 or 1. */
bool gf_stb_is_jpeg(const unsigned char *data);
bool gf_stb_is_hdr(const unsigned char *data);

/* Bits of a pixel of a BMP. */
uint32_t gf_bmp_bits(const unsigned char *data);

/* A file with so many pixels has at least so many bytes. What has fewer is cut short, and need not
 * be decoded to know it. 0 where nothing can be said. */
uint64_t gf_stb_min_bytes(const gf_stb_bytes *bytes, const gf_format *format);

/* Bytes that decoding takes at its height, the result included, the file not. */
uint64_t gf_stb_peak_bytes(const unsigned char *data, const gf_format *format);

/* BMPs with a palette, as stb can be trusted to read them. */

/* Of a BMP with a palette, *file becomes one with the same pixels, whose palette has all of 256
 * colours; those that were not there are black. All else is left as it is. *file was allocated by
 * malloc, and stays the caller's to free. */
gf_status gf_bmp_fill_palette(unsigned char **file, size_t *size, const char *name,
                              gf_error *error);

/* Looks at everything as far as a GIF's first frame's end, which stb_image does only after it has
 * cleared memory for all pixels. DECODED: stb decodes it, and only such files. CUT_OFF: the frame
 * does not end in the file, or is more than that can hold. BAD_HEADER: it is not in the picture, or
 * there is none, or no colours. BAD_CODES: one of its codes stands for nothing. */
gf_stb_outcome gf_gif_check(const unsigned char *data, size_t size);

/* What stb_image does not look at in a JPEG: tables that are too large for it, and metadata. */

/* Has every Huffman table that a decoder may come across at most 256 codes? Nothing else is
 * checked. */
bool gf_jpeg_tables_fit(const unsigned char *data, size_t size);

/* The metadata before the pixels, as bits of gf_dropped. Damaged segments count as none. */
uint32_t gf_jpeg_metadata(const unsigned char *data, size_t size);

#endif
