// dot on CUDA: sums of products along rows. row_sums.cuh has the kernels.
#include "cuda/sums/row_sums.cuh"

#include "dot/dot.h"

static void dot_launch(const gf_plan *plan, const gf_strip *strip, void *, gf_queue *queue) {
    gf_launch_rows<2>(plan, strip, queue);
}

extern "C" const gf_filter_cuda gf_dot_cuda = {nullptr, dot_launch, nullptr, true};
