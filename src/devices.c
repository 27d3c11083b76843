/* What this machine has to compute with. */
#include <stdio.h>

#include "error.h"
#include "gpufilter_tools.h"
#include "isa.h"
#include "pool.h"

uint32_t gf_cores(void) {
    return gf_cpu_count();
}

void gf_processor(char *text, size_t size) {
    const uint32_t cores = gf_cpu_count();
    snprintf(text, size, "%u core%s, %s", cores, cores == 1 ? "" : "s",
             gf_simd_names()[1 + gf_isa_best()]);
}

static gf_turn process_turn = {0, 1};

void gf_set_turn(uint32_t turn, uint32_t turns) {
    process_turn = (gf_turn){turn, turns ? turns : 1};
}

gf_turn gf_process_turn(void) {
    return process_turn;
}

#define TEXT(macro) #macro
#define TEXT_OF(macro) TEXT(macro)

const char *gf_cuda_architectures(void) {
#ifdef GF_WITH_CUDA
    return TEXT_OF(GF_CUDA_ARCHITECTURES);
#else
    return "";
#endif
}

#ifndef GF_WITH_CUDA
/* Otherwise in cuda/devices.cu. */
gf_status gf_devices(gf_device *devices, size_t capacity, size_t *count, gf_error *error) {
    (void)devices;
    (void)capacity;
    *count = 0;
    return gf_fail(error, GF_NO_BACKEND,
                   "cuda: this gpufilter was built without it; build it where nvcc is");
}
#endif
