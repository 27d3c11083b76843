// smooth along both axes of u8, in one pass over the image: window_bytes by the plan's integer form
// for both axes, and smooth_border.
#include "cuda/smooth/both.cuh"

struct both_args : gf_bytes_args {
    float scale, offset[2]; // see gf_both_round; SMALL: the offsets also subtract 2^23 * scale
};

// SMALL: sums are below 2^23. With 2^23 in the accumulators, they are the bits of 2^23 + T.
template <bool SMALL> struct both_bytes {
    typedef both_args Args;
    static constexpr bool WIDE = false, TIES = true;
    static constexpr uint32_t START = SMALL ? 0x4b000000 : 0;

    static __device__ __forceinline__ uint32_t word(const Args &a, const uint32_t (&s)[4],
                                                    uint32_t *ties) {
        const auto sum = [&](int i) {
            return SMALL ? __uint_as_float(s[i]) : static_cast<float>(s[i]);
        };
        return gf_both_round(sum, a.scale, a.offset, ties);
    }
};

// Set the taps and the scale. A value is rounded once, to a multiple of 2^-16 if it is below 256:
// its error is less than the margin for ties plus 2^-16. Taps are multiplied by powers of two as
// far as they fit: then offsets have more fraction bits. Sums along x stay below 2^16. Returns
// false if there is no such form.
static bool both_set(const gf_smooth_plan *plan, both_args *a, bool *small) {
    const gf_smooth_integer *integer = &plan->integer;
    const uint32_t reach = integer->reach, limit = (1 << 23) / 255;
    if (plan->head.in.type != GF_U8 || !(integer->xy_scale > 0))
        return false;
    uint32_t most = 0, sum = 0; // of the taps
    for (uint32_t k = 0; k <= 2 * reach; k++) {
        most = integer->tap[k] > most ? integer->tap[k] : most;
        sum += integer->tap[k];
    }
    uint32_t all = sum * sum;
    a->scale = integer->xy_scale;
    for (int axis = 0; axis < 2; axis++) {
        uint32_t times = 1;
        for (; 2 * times * most < 256 && 2 * all <= limit && (axis == 1 || 2 * times * sum <= 256);
             times *= 2, all *= 2)
            a->scale /= 2;
        a->radius[axis] = static_cast<int>(reach);
        for (uint32_t k = 0; k <= 2 * reach; k++)
            a->taps[axis][GF_BYTES_RADIUS - reach + k] =
                static_cast<uint16_t>(times * integer->tap[k]);
    }
    *small = all <= limit;
    const double start = *small ? static_cast<double>(a->scale) * (1 << 23) : 0;
    const double error = static_cast<double>(integer->xy_tie_margin) + 0x1p-16;
    a->offset[0] = nextafterf(static_cast<float>(-start - error), -INFINITY);
    a->offset[1] = nextafterf(static_cast<float>(-start + error), INFINITY);
    // The lists have room for one near-tie per 512 samples.
    return a->offset[1] - a->offset[0] < 0x1p-9f;
}

// The lists have room for one of 512 samples, and for 16,384 more. The size does not depend on the
// device: several may compute strips of an image.
size_t gf_smooth_both_bytes(const gf_plan *plan, uint64_t rows) {
    return (rows * gf_row_bytes(&plan->in) / 512 + (16 << 10)) * sizeof(uint64_t);
}

static void both_set_lists(const gf_smooth_job &job, void *scratch, gf_bytes_ties *ties) {
    const uint64_t blocks = static_cast<uint64_t>(gf_sm_count()) * gf_both_policy::BLOCKS;
    const uint64_t all = gf_smooth_both_bytes(&job.plan->head, job.strip.in[0].rows) / 8;
    ties->max = static_cast<uint32_t>(all / blocks - 1); // the last ones are the counts
    ties->at = static_cast<uint64_t *>(scratch);
    ties->counts = reinterpret_cast<uint32_t *>(ties->at + blocks * ties->max);
}

bool gf_smooth_both(const gf_smooth_job &job, void *scratch) {
    const gf_smooth_plan *plan = job.plan;
    both_args a = {};
    bool small, done = false;
    if (plan->axis != GF_SMOOTH_XY || plan->tile > 0 || plan->radius > 3 ||
        !both_set(plan, &a, &small))
        return false;
    if (job.queue)
        both_set_lists(job, scratch, &a.ties);
    gf_dispatch(
        [&](auto few) {
            done = gf_bytes_launch<3, 2, both_bytes<few>>(&a, &plan->head, &job.strip,
                                                          {GF_EDGE_REPLICATE, 0}, job.queue);
        },
        gf_flag{small});
    if (done && job.queue)
        gf_both_border(job, &a);
    return done;
}
