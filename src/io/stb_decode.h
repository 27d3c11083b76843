/* Decoding the bytes of a JPEG, BMP, TGA, PSD, GIF or HDR file, as it is done in the sandbox: with
 * no memory but an arena, no system call, no message. What comes out is for somebody who believes
 * none of it. */
#ifndef GF_STB_DECODE_H
#define GF_STB_DECODE_H

#include "io/arena.h"
#include "io/io.h"

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
    void (*leave)(void);
} gf_stb_task;

void gf_stb_decode(const gf_stb_task *task);

/* No image is shorter than the least header, and stb's guessing reads that much without asking. */
enum { GF_STB_LEAST_BYTES = 19 };

#endif
