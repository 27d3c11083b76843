// PNG encoder on a device: data that the host and the kernels share.
//
// A strip, its filter, its codes and its blocks are those of the CPU encoder (io/png.h): the files
// are equal. A window is a list of strips of images of one format that are encoded together.
#ifndef GF_PNG_ENCODE_CUH
#define GF_PNG_ENCODE_CUH

#include "cuda/device.cuh"

extern "C" {
#include "io/png/png.h"
}

#define PNG_CHUNK 16384u                                // filtered bytes per thread block
#define PNG_BLOCK_CHUNKS (GF_DEFLATE_BLOCK / PNG_CHUNK) // chunks per deflate block
#define PNG_COUNTS (GF_DEFLATE_LITERALS + 1)            // symbols of a chunk, and its matches
#define PNG_MAX_STRIPS 1024u // per window: one thread each in png_lay_out

// A strip in device memory.
struct png_strip {
    const unsigned char *rows; // its first row
    size_t stride;
    uint64_t after;    // filtered bytes of the image after this strip
    uint32_t filtered; // filtered bytes
    uint32_t count;    // rows
    uint32_t image;    // index in the window
    bool first, last;  // of the image
};

// Whether LZ77 matches pay in a strip: the CPU encodes it then.
enum png_matches : uint32_t { PNG_NO_MATCHES, PNG_MATCHES, PNG_MATCHES_UNLESS_CHEAP };

// Results for a strip.
struct png_strip_state {
    uint64_t sum, weighted; // for Adler-32: of the bytes, and of their number of successors + 1
    uint64_t at, data;      // offsets of its first byte, and of its deflate data, in the output
    uint32_t size;          // bytes of deflate data; for a strip encoded by the CPU set by the host
    uint32_t filter;
    uint32_t matches;  // a png_matches
    uint32_t largest;  // samples with the maximum value, alpha excluded, if they are counted
    uint64_t external; // offset of the data that the CPU encoded
};

// A deflate block.
struct png_block {
    uint64_t start; // first bit, from the start of the data of the strip
    uint64_t bits;  // size of its dynamic form
    uint32_t stored;
};

// Positions of a chunk without equal predecessor, from its start; PNG_CHUNK: none.
struct png_edges {
    uint32_t first, last;
};

// A window, in device memory. Arrays have one entry per strip, or `blocks` or `chunks` per strip.
struct png_window {
    size_t row_bytes;
    uint32_t bpp;
    bool swap;         // u16: the file is big-endian
    gf_divider by_row; // divides by row_bytes + 1
    uint32_t strips, blocks, chunks;
    size_t filtered_stride; // bytes per strip
    const png_strip *strip;
    png_strip_state *state;
    unsigned char *filtered;
    png_edges *edges;
    uint16_t *counts;     // PNG_COUNTS per chunk
    uint32_t *chunk_bits; // first bit of a chunk, from the start of its block
    gf_deflate_codes *codes;
    png_block *block;
    const unsigned char *external;
    unsigned char *out;
    uint64_t (*adler)[2];      // per image: sums as in png_strip_state
    const unsigned char *head; // of the file, up to the first IDAT chunk
    uint32_t head_bytes;
    uint32_t *any_matches; // 1: a strip has PNG_MATCHES
    bool complete;         // the CPU has encoded those strips; if not, nothing is written
};

// Choose the filter of each strip, filter, and make the codes of all blocks. channels: of the
// image, to set `largest` of all strips; 0: do not.
void png_queue_plan(const png_window &window, uint32_t channels, gf_queue *queue);
// Write the files, after window.state was completed for strips encoded by the CPU.
void png_queue_write(const png_window &window, gf_queue *queue);

#endif
