/* The calls of the CUDA runtime. The last error is stored until the program reads it, as in the
 * runtime. */
#ifdef GF_WITH_CUDA

#include "layer_inside.h"

#include <cuda_runtime_api.h>

static _Thread_local cudaError_t last;

#define SPECIAL(...)
#define CALL(symbol, parameters, arguments)                                                        \
    cudaError_t __real_##symbol parameters;                                                        \
    cudaError_t __wrap_##symbol parameters;                                                        \
    cudaError_t __wrap_##symbol parameters {                                                       \
        const gf_fault_decision decision = gf_fault_decide(CALL_##symbol, 0, SITE);                \
        if (decision.action == FAULT_FAIL)                                                         \
            return last = (cudaError_t)decision.cause;                                             \
        const cudaError_t result = __real_##symbol arguments;                                      \
        if (decision.action == FAULT_DIE)                                                          \
            gf_fault_die();                                                                        \
        return result;                                                                             \
    }
#include "calls_cuda.def"

cudaError_t __real_cudaGetLastError(void);
cudaError_t __wrap_cudaGetLastError(void);
cudaError_t __real_cudaPeekAtLastError(void);
cudaError_t __wrap_cudaPeekAtLastError(void);

cudaError_t __wrap_cudaGetLastError(void) {
    const gf_fault_decision decision = gf_fault_decide(CALL_cudaGetLastError, 0, SITE);
    const cudaError_t found = __real_cudaGetLastError(), mine = last;
    if (decision.action == FAULT_DIE)
        gf_fault_die();
    last = cudaSuccess;
    return decision.action == FAULT_FAIL ? (cudaError_t)decision.cause : mine ? mine : found;
}

cudaError_t __wrap_cudaPeekAtLastError(void) {
    const gf_fault_decision decision = gf_fault_decide(CALL_cudaPeekAtLastError, 0, SITE);
    if (decision.action == FAULT_DIE)
        gf_fault_die();
    if (decision.action == FAULT_FAIL)
        return last = (cudaError_t)decision.cause;
    return last ? last : __real_cudaPeekAtLastError();
}

#else
typedef int gf_no_cuda; /* an empty translation unit is invalid */
#endif
