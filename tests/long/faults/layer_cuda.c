/* The CUDA runtime's calls. One that fails is remembered, as the runtime does, until it is asked
 * for. */
#ifdef GF_WITH_CUDA

#include "layer_inside.h"

#include <cuda_runtime_api.h>

static _Thread_local cudaError_t last;

#define SPECIAL(...)
#define CALL(symbol, parameters, arguments)                                                        \
    cudaError_t __real_##symbol parameters;                                                        \
    cudaError_t __wrap_##symbol parameters;                                                        \
    cudaError_t __wrap_##symbol parameters {                                                       \
        const gf_fault_meeting met = gf_fault_meet(CALL_##symbol, 0, SITE);                        \
        if (met.act == FAULT_FAIL)                                                                 \
            return last = (cudaError_t)met.cause;                                                  \
        const cudaError_t result = __real_##symbol arguments;                                      \
        if (met.act == FAULT_DIE)                                                                  \
            gf_fault_die();                                                                        \
        return result;                                                                             \
    }
#include "calls_cuda.def"

cudaError_t __real_cudaGetLastError(void);
cudaError_t __wrap_cudaGetLastError(void);
cudaError_t __real_cudaPeekAtLastError(void);
cudaError_t __wrap_cudaPeekAtLastError(void);

cudaError_t __wrap_cudaGetLastError(void) {
    const gf_fault_meeting met = gf_fault_meet(CALL_cudaGetLastError, 0, SITE);
    const cudaError_t found = __real_cudaGetLastError(), mine = last;
    if (met.act == FAULT_DIE)
        gf_fault_die();
    last = cudaSuccess;
    return met.act == FAULT_FAIL ? (cudaError_t)met.cause : mine ? mine : found;
}

cudaError_t __wrap_cudaPeekAtLastError(void) {
    const gf_fault_meeting met = gf_fault_meet(CALL_cudaPeekAtLastError, 0, SITE);
    if (met.act == FAULT_DIE)
        gf_fault_die();
    if (met.act == FAULT_FAIL)
        return last = (cudaError_t)met.cause;
    return last ? last : __real_cudaPeekAtLastError();
}

#else
typedef int gf_no_cuda; /* a file may not be empty */
#endif
