// Arguments of the kernels of resize.
#ifndef GF_RESIZE_DEVICE_CUH
#define GF_RESIZE_DEVICE_CUH

#include "cuda/vectors.cuh"

#include "resize/resize.h"

struct gf_resize_args {
    const unsigned char *in; // row 0 of the image
    unsigned char *out;      // first row to compute
    size_t in_stride, out_stride;
    uint64_t first, rows; // rows to compute
    uint64_t samples;     // of an output row
    uint32_t channels;
    const gf_resize_span *spans;
    const void *taps;
    gf_images<2> images; // one per blockIdx.z
};

// Queue a kernel of tensor cores. Returns false, without side effects, if there is none for the
// plan or the device.
bool gf_resize_bytes(const gf_resize_args &args, const gf_resize_plan *plan, gf_queue *queue);

#endif
