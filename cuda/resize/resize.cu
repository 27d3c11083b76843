// resize has no kernels yet: its strips fail, and `auto` computes them on the CPU.
#include "queue.cuh"

extern "C" {
#include "resize/resize.h"
}

static void resize_launch(const gf_plan *, const gf_strip *, void *, gf_queue *queue) {
    gf_queue_fail(queue, GF_FAILED, "cuda: resize: no kernels; use --backend cpu");
}

extern "C" const gf_filter_cuda gf_resize_cuda = {nullptr, resize_launch, nullptr, false};
