/* Template of hist_simd.c: count the samples at or above each edge. Parameter: TYPE, u8, u16 or
 * f32.
 *
 * Each vector of samples is compared with up to 8 edges. Each edge has its own vector of counters.
 */

#if VEC_FLOATS < 16
/* Return count + 1 in every lane where x >= edge. */
static inline GF_T(counts) GF_T(hist_count)(GF_T(counts) count, GF_T(values) x, GF_T(values) edge) {
    return count - (GF_T(counts))(x >= edge);
}
#endif

/* Process `periods` whole periods with a constant number of edges. */
GF_INLINE void GF_T(hist_above_n)(const GF_T(sample) * values, size_t periods,
                                  const GF_T(sample) * edges, const uint32_t n, uint32_t *lanes) {
    const size_t width = sizeof(GF_T(values)) / sizeof(GF_T(sample)),
                 period = GF_HIST_PERIOD_BYTES / sizeof(GF_T(sample));
    for (size_t phase = 0; phase < period; phase += width) {
        GF_T(counts) counts[EDGES_PER_PASS] = {{0}};
        GF_T(values) limits[EDGES_PER_PASS];
        for (uint32_t e = 0; e < n; e++)
            limits[e] = edges[e] - (GF_T(values)){0};
        for (size_t t = 0; t < periods; t++) {
            GF_T(values) x;
            __builtin_prefetch(values + t * period + phase + PREFETCH_BYTES / sizeof(GF_T(sample)));
            memcpy(&x, values + t * period + phase, sizeof x);
            _Pragma("GCC unroll 8") for (uint32_t e = 0; e < n; e++) counts[e] =
                GF_T(hist_count)(counts[e], x, limits[e]);
        }
        for (uint32_t e = 0; e < n; e++) {
            GF_T(count) partial[sizeof(GF_T(values)) / sizeof(GF_T(sample))];
            memcpy(partial, &counts[e], sizeof partial);
            for (size_t j = 0; j < width; j++)
                lanes[e * period + phase + j] += partial[j];
        }
    }
}

static void GF_T(hist_above)(const void *samples, size_t n, const void *limits, uint32_t count,
                             uint32_t *lanes) {
    const GF_T(sample) *values = samples, *edges = limits;
    const size_t period = GF_HIST_PERIOD_BYTES / sizeof(GF_T(sample)), periods = n / period;
    uint32_t e = 0;
    for (; count - e >= 8; e += 8)
        GF_T(hist_above_n)(values, periods, edges + e, 8, lanes + e * period);
    uint32_t *rest = lanes + e * period;
    if (count - e == 7)
        GF_T(hist_above_n)(values, periods, edges + e, 7, rest);
    else if (count - e == 6)
        GF_T(hist_above_n)(values, periods, edges + e, 6, rest);
    else if (count - e == 5)
        GF_T(hist_above_n)(values, periods, edges + e, 5, rest);
    else if (count - e == 4)
        GF_T(hist_above_n)(values, periods, edges + e, 4, rest);
    else if (count - e == 3)
        GF_T(hist_above_n)(values, periods, edges + e, 3, rest);
    else if (count - e == 2)
        GF_T(hist_above_n)(values, periods, edges + e, 2, rest);
    else if (count - e == 1)
        GF_T(hist_above_n)(values, periods, edges + e, 1, rest);
    for (e = 0; e < count; e++)
        for (size_t j = 0; j < n - periods * period; j++)
            lanes[e * period + j] += values[periods * period + j] >= edges[e];
}

#undef TYPE
