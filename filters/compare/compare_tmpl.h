/* Template of compare_simd.c: count differences of integer samples. Parameter: TYPE, u8 or u16. */

static uint32_t GF_T(compare_count)(const gf_compare_plan *plan, const GF_T(sample) * a,
                                    const GF_T(sample) * b, size_t n, uint64_t *largest) {
    const GF_T(sample) tolerance = (GF_T(sample))(plan->limit - 1);
    GF_T(sample) max = 0;
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const GF_T(sample) d = (GF_T(sample))(a[i] > b[i] ? a[i] - b[i] : b[i] - a[i]);
        count += d > tolerance;
        max = d > max ? d : max;
    }
    *largest = gf_max(*largest, max);
    return count;
}

#undef TYPE
