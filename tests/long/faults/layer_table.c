/* calls.def as a table, for the layer and the runner. */
#define _GNU_SOURCE

#include "layer_inside.h"

const gf_fault_call gf_fault_calls[] = {
#define SPECIAL(symbol, class, usual, other, lacking, interrupted, partial)                        \
    {#symbol, FAULT_##class, usual, other, lacking, interrupted, partial},
#define CALL(symbol, class, usual, other, lacking, interrupted, partial, ...)                      \
    SPECIAL(symbol, class, usual, other, lacking, interrupted, partial)
#define CLOSING CALL
#include "calls.def"
#undef SPECIAL
#undef CALL
#undef CLOSING
#ifdef GF_WITH_CUDA
/* 2: cudaErrorMemoryAllocation; 46: cudaErrorDevicesUnavailable. */
#define CALL(symbol, ...) {#symbol, FAULT_CUDA, 2, 46, 0, 0, 0},
#define SPECIAL CALL
#include "calls_cuda.def"
#undef SPECIAL
#undef CALL
#endif
};
const unsigned gf_fault_call_count = CALLS;
