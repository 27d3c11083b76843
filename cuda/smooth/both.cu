// smooth along both axes of u8, in one pass over the image: window_bytes by the plan's integer form
// for both axes, and smooth_border.
#include "cuda/smooth/both.cuh"

// A sum T becomes value = T * scale in fixed point with 48 fraction bits, plus half and 1/2048. Of
// its upper word, byte 2 is the rounded value. The bits TIES are 0 for values less than 1/2048 away
// from the midpoint of two integers, the near-ties. Sums above max, whose value is 255.25, are
// replaced by it.
struct both_args : gf_bytes_args {
    uint32_t max, factor;
    uint64_t half; // a constant with 32 zero bits would take another instruction per sample
};

struct both_bytes {
    typedef both_args Args;
    static constexpr bool WIDE = false;
    static constexpr uint32_t BYTE = 2, TIES = 0xffc0;
    static __device__ __forceinline__ uint32_t value(const Args &a, uint32_t sum) {
        const uint64_t x = static_cast<uint64_t>(sum < a.max ? sum : a.max) * a.factor + a.half;
        return static_cast<uint32_t>(x >> 32);
    }
};

// Set the taps and the scale. Multiples of the taps that fit into bytes allow a scale below 2^-16,
// so that the factor has 32 bits. Sums along x stay below 2^16. The error of the factor and the
// margin for ties must be less than 1/2048. Returns false if there is no such form.
static bool both_set(const gf_smooth_plan *plan, both_args *a) {
    const gf_smooth_integer *integer = &plan->integer;
    const uint32_t reach = integer->reach;
    if (plan->head.in.type != GF_U8 || !(integer->xy_scale > 0) ||
        integer->xy_tie_margin + 0x1p-15f > 0x1p-11f)
        return false;
    uint32_t most = 0, sum = 0, times[2] = {1, 1}; // of the taps; of x and y
    for (uint32_t k = 0; k <= 2 * reach; k++) {
        most = integer->tap[k] > most ? integer->tap[k] : most;
        sum += integer->tap[k];
    }
    double scale = integer->xy_scale;
    const auto enlarge = [&](int axis, uint32_t limit) {
        for (; scale >= 0x1p-16 && 2 * times[axis] * most < 256 && 2 * times[axis] * sum <= limit;
             times[axis] *= 2)
            scale /= 2;
    };
    enlarge(0, 256);
    enlarge(1, 1 << 15);
    if (scale >= 0x1p-16)
        return false;
    for (int axis = 0; axis < 2; axis++) {
        a->radius[axis] = static_cast<int>(reach);
        for (uint32_t k = 0; k <= 2 * reach; k++)
            a->taps[axis][GF_BYTES_RADIUS - reach + k] =
                static_cast<uint16_t>(times[axis] * integer->tap[k]);
    }
    a->factor = static_cast<uint32_t>(scale * 0x1p48 + 0.5);
    a->half = (UINT64_C(1) << 47) + (UINT64_C(1) << 37);
    a->max = static_cast<uint32_t>(fmin(255.25 / scale, 0xffffffffu));
    return true;
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
    if (plan->axis != GF_SMOOTH_XY || plan->tile > 0 || plan->radius > 3 || !both_set(plan, &a))
        return false;
    if (job.queue)
        both_set_lists(job, scratch, &a.ties);
    if (!gf_bytes_launch<3, 2, both_bytes>(&a, &plan->head, &job.strip, {GF_EDGE_REPLICATE, 0},
                                           job.queue))
        return false;
    if (job.queue)
        gf_both_border(job, &a);
    return true;
}
