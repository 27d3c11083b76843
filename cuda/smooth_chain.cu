// Which kernel smooths rows by the chain.
#include "smooth_chain.cuh"

#include "smooth_kernels.cuh"

// Smaller gains bring the products near binary32's least numbers, where dividing takes a division.
#define LEAST_GAIN 1e-6f

template <typename Tin, typename Tout, int C, int RADIUS>
static bool launch(const gf_walk &walk, uint64_t rows, const gf_chain_args &args,
                   cudaStream_t stream) {
    if constexpr (sizeof(Tin) == sizeof(Tout))
        if (gf_strips_launch<gf_strip_chain<Tin, C, RADIUS>>(walk, rows, args, stream))
            return true;
    return gf_staged_launch<gf_chain_work<Tin, Tout, C, RADIUS>>(walk, rows, args, stream);
}

template <typename Tin, typename Tout, int C>
static bool by_radius(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                      cudaStream_t stream) {
    const gf_walk walk = gf_walk_of(plan, in, out);
    const gf_chain_args args = {plan->gain, -8388608.0f * plan->gain};
    switch (plan->radius) {
    case 0:
        return launch<Tin, Tout, C, 0>(walk, out->rows, args, stream);
    case 1:
        return launch<Tin, Tout, C, 1>(walk, out->rows, args, stream);
    case 2:
        return launch<Tin, Tout, C, 2>(walk, out->rows, args, stream);
    case 3:
        return launch<Tin, Tout, C, 3>(walk, out->rows, args, stream);
    default:
        return false;
    }
}

template <typename Tin, typename Tout>
static bool by_channels(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                        cudaStream_t stream) {
    switch (plan->head.in.channels) {
    case 1:
        return by_radius<Tin, Tout, 1>(plan, in, out, stream);
    case 2:
        return by_radius<Tin, Tout, 2>(plan, in, out, stream);
    case 3:
        return by_radius<Tin, Tout, 3>(plan, in, out, stream);
    default:
        return by_radius<Tin, Tout, 4>(plan, in, out, stream);
    }
}

bool gf_smooth_chain_rows(const gf_smooth_plan *plan, bool to_float, const gf_rows *in,
                          const gf_rows *out, cudaStream_t stream) {
    const gf_type type = plan->head.in.type;
    if (plan->tile != 0 || (type != GF_F32 && plan->gain != 0 && plan->gain < LEAST_GAIN))
        return false;
    if (type == GF_F32)
        return by_channels<float, float>(plan, in, out, stream);
    if (type == GF_U16)
        return to_float ? by_channels<uint16_t, float>(plan, in, out, stream)
                        : by_channels<uint16_t, uint16_t>(plan, in, out, stream);
    return to_float ? by_channels<uint8_t, float>(plan, in, out, stream)
                    : by_channels<uint8_t, uint8_t>(plan, in, out, stream);
}
