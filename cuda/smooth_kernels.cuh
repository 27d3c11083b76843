// The kernels that smooth has for rows. Each returns false, having done nothing, for a plan or an
// image that it is not made for.
#ifndef GF_SMOOTH_KERNELS_CUH
#define GF_SMOOTH_KERNELS_CUH

#include "device.cuh"

#include "smooth/smooth.h"

// u8 by tensor cores: radius up to 8, where weights are small whole numbers.
bool gf_smooth_mma_rows(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                        cudaStream_t stream);

// u8 by integers: radius up to 8.
bool gf_smooth_integer_rows(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                            cudaStream_t stream);

// By the chain itself, in registers: radius 0 to 3.
bool gf_smooth_chain_rows(const gf_smooth_plan *plan, bool to_float, const gf_rows *in,
                          const gf_rows *out, cudaStream_t stream);

#endif
