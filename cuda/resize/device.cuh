// The kernel of resize for both axes of u8.
#ifndef GF_RESIZE_DEVICE_CUH
#define GF_RESIZE_DEVICE_CUH

#include "cuda/vectors.cuh"

#include "resize/resize.h"

// Join the plan along x before it: gf_filter_cuda.join.
bool gf_resize_join(const gf_plan *before, gf_plan *plan);
// Queue the kernel of a joined plan.
void gf_resize_launch_both(const gf_strip *strip, const gf_resize_plan *plan, gf_queue *queue);

#endif
