/* Template of hist_simd.c, for one sample type: count the samples at or above each edge. Each
 * vector of samples is compared with up to 8 edges. Each edge has its own vector of counters.
 *
 * Parameters:
 *   NAME(x)         x with the suffix of the type
 *   TYPE, COUNT     a sample; an unsigned integer of its size
 *   VALUES, COUNTS  vectors of them */

#if VEC_FLOATS < 16
/* Return count + 1 in every lane where x >= edge. */
static inline COUNTS NAME(hist_count)(COUNTS count, VALUES x, VALUES edge) {
    return count - (COUNTS)(x >= edge);
}
#endif

/* Process `periods` whole periods with a constant number of edges. */
GF_INLINE void NAME(hist_above_n)(const TYPE *values, size_t periods, const TYPE *edges,
                                  const uint32_t n, uint32_t *lanes) {
    const size_t width = sizeof(VALUES) / sizeof(TYPE),
                 period = GF_HIST_PERIOD_BYTES / sizeof(TYPE);
    for (size_t phase = 0; phase < period; phase += width) {
        COUNTS counts[EDGES_PER_PASS] = {{0}};
        VALUES limits[EDGES_PER_PASS];
        for (uint32_t e = 0; e < n; e++)
            limits[e] = edges[e] - (VALUES){0};
        for (size_t t = 0; t < periods; t++) {
            VALUES x;
            __builtin_prefetch(values + t * period + phase + PREFETCH_BYTES / sizeof(TYPE));
            memcpy(&x, values + t * period + phase, sizeof x);
            _Pragma("GCC unroll 8") for (uint32_t e = 0; e < n; e++) counts[e] =
                NAME(hist_count)(counts[e], x, limits[e]);
        }
        for (uint32_t e = 0; e < n; e++) {
            COUNT partial[sizeof(VALUES) / sizeof(TYPE)];
            memcpy(partial, &counts[e], sizeof partial);
            for (size_t j = 0; j < width; j++)
                lanes[e * period + phase + j] += partial[j];
        }
    }
}

static void NAME(hist_above)(const void *samples, size_t n, const void *limits, uint32_t count,
                             uint32_t *lanes) {
    const TYPE *values = samples, *edges = limits;
    const size_t period = GF_HIST_PERIOD_BYTES / sizeof(TYPE), periods = n / period;
    uint32_t e = 0;
    for (; count - e >= 8; e += 8)
        NAME(hist_above_n)(values, periods, edges + e, 8, lanes + e * period);
    uint32_t *rest = lanes + e * period;
    if (count - e == 7)
        NAME(hist_above_n)(values, periods, edges + e, 7, rest);
    else if (count - e == 6)
        NAME(hist_above_n)(values, periods, edges + e, 6, rest);
    else if (count - e == 5)
        NAME(hist_above_n)(values, periods, edges + e, 5, rest);
    else if (count - e == 4)
        NAME(hist_above_n)(values, periods, edges + e, 4, rest);
    else if (count - e == 3)
        NAME(hist_above_n)(values, periods, edges + e, 3, rest);
    else if (count - e == 2)
        NAME(hist_above_n)(values, periods, edges + e, 2, rest);
    else if (count - e == 1)
        NAME(hist_above_n)(values, periods, edges + e, 1, rest);
    for (e = 0; e < count; e++)
        for (size_t j = 0; j < n - periods * period; j++)
            lanes[e * period + j] += values[periods * period + j] >= edges[e];
}

#undef NAME
#undef TYPE
#undef COUNT
#undef VALUES
#undef COUNTS
