// Declarations of the kernels of separable filters.
#ifndef GF_SEPARABLE_DEVICE_CUH
#define GF_SEPARABLE_DEVICE_CUH

#include "cuda/window/load.cuh"

#include "separable/separable.h"

struct gf_separable_job {
    const gf_separable_plan *plan;
    const gf_strip *strip;
    void *scratch;
    gf_queue *queue; // NULL: only test whether a kernel supports the plan
};

// Queue a kernel for all rows of a strip. Returns false, without side effects, if the kernel does
// not support the plan or the image. separable.cu lists when each is used.
typedef bool gf_separable_kernel(const gf_separable_job &job);
gf_separable_kernel gf_separable_fixed, gf_separable_single;

// Return the taps of an axis on the host.
template <typename T>
static inline const T *gf_separable_taps(const gf_separable_plan *plan, int axis) {
    return static_cast<const T *>(plan->head.constants) + (axis ? plan->radius[0] + 1 : 0);
}

#endif
