// Which kernel smooths u8 rows by integers.
#include "smooth_integer.cuh"

#include "smooth_kernels.cuh"

template <int C, int WORDS, gf_integer_way WAY>
static bool launch(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                   cudaStream_t stream) {
    typedef gf_integer_work<C, WORDS, WAY> Work;
    const gf_walk walk = gf_walk_of(plan, in, out);
    const gf_integer_args args = gf_integer_args_of(&plan->integer, WORDS);
    if constexpr (C != 3)
        if (gf_direct_launch<Work>(walk, out->rows, args, stream))
            return true;
    return gf_staged_launch<Work>(walk, out->rows, args, stream);
}

template <int C>
static bool by_channels(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                        cudaStream_t stream) {
    const uint32_t reach = plan->integer.reach;
    // 9 pixels of 2 bytes reach beyond the next run, which is loaded only together with what
    // follows.
    if (C == 2 && reach > 8)
        return false;
    if (plan->integer.form == GF_SMOOTH_SUMS)
        return reach <= 4   ? launch<C, 1, GF_BY_SUMS>(plan, in, out, stream)
               : reach <= 8 ? launch<C, 2, GF_BY_SUMS>(plan, in, out, stream)
                            : launch<C, 3, GF_BY_SUMS>(plan, in, out, stream);
    return reach <= 4   ? launch<C, 1, GF_BY_TAPS>(plan, in, out, stream)
           : reach <= 8 ? launch<C, 2, GF_BY_TAPS>(plan, in, out, stream)
                        : launch<C, 3, GF_BY_TAPS>(plan, in, out, stream);
}

bool gf_smooth_integer_rows(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                            cudaStream_t stream) {
    if (plan->integer.form == GF_SMOOTH_CHAIN_ONLY || plan->tile != 0)
        return false;
    // Small weights make many ties, all of which are done twice: the chain alone is faster.
    if (plan->integer.form == GF_SMOOTH_TAPS && plan->radius <= 3)
        return false;
    switch (plan->head.in.channels) {
    case 1:
        return by_channels<1>(plan, in, out, stream);
    case 2:
        return by_channels<2>(plan, in, out, stream);
    case 3:
        return by_channels<3>(plan, in, out, stream);
    default:
        return by_channels<4>(plan, in, out, stream);
    }
}
