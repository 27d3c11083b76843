// PNG decoder on a device: data that the host and the kernels share.
//
// The kernels accept only what the CPU decoder accepts, with the same result. If they find anything
// else in a file, they stop: the CPU decodes the file again and reports the error.
#ifndef GF_PNG_DECODE_CUH
#define GF_PNG_DECODE_CUH

#include "cuda/device.cuh"

extern "C" {
#include "io/strip/row_filter.h"
}

// A deflate stream, or a part of one that does not refer to the bytes before it.
struct png_stream {
    const uint32_t *data;
    uint32_t bytes;     // of data
    uint32_t skip;      // bytes before the first block
    unsigned char *out; // aligned to 16 bytes
    uint32_t out_bytes; // exact size of the output
    bool last;          // ends with a final block and Adler-32; if not, at the end of a byte
};

// Result of a stream.
struct png_stream_end {
    uint64_t sum, moment; // of the output bytes, and of each byte times its position modulo 65521
    uint32_t adler;       // stored after the last block
    uint32_t failed;
};

// An image whose filtered rows are in device memory.
struct png_rows {
    const unsigned char *filtered;
    uint32_t part_rows; // rows without gaps
    uint32_t row_bytes; // without the filter type byte
    size_t part_stride; // bytes from one part to the next
    unsigned char *out;
    size_t stride; // of out
    uint32_t height;
    uint32_t first_group; // number of groups of all images before this one
    uint32_t bpp;
    bool swap; // u16: the file is big-endian
};

// Rows of an image that a warp unfilters together.
#define PNG_GROUP 32u

void png_queue_inflate(const png_stream *streams, png_stream_end *ends, uint32_t count,
                       gf_queue *queue);
// Unfilter images of any format. groups: of all images. progress: one word per group and one more,
// zero. failed: one word per image, set to 1 for an invalid filter type.
void png_queue_unfilter(const png_rows *images, uint32_t count, uint32_t groups, uint32_t *progress,
                        uint32_t *failed, gf_queue *queue);

#endif
