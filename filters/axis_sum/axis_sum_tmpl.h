/* Template of axis_sum_simd.c: sums of integer samples. Parameter: TYPE, u8 or u16.
 *
 * Samples are added in lanes of twice their width. A mask and a shift separate samples at even and
 * odd indices. Before a lane can overflow, the lanes are added to wider sums. */

typedef GF_T(wide) GF_T(vec_wide) __attribute__((vector_size(sizeof(vec))));

GF_INLINE void GF_T(sum_add)(const void *p, GF_T(vec_wide) * even, GF_T(vec_wide) * odd) {
    GF_T(vec_wide) x;
    memcpy(&x, p, sizeof x);
    const GF_T(vec_wide) low = x & (GF_T(sample)) - 1, high = x >> 8 * sizeof(GF_T(sample));
    *even += gf_host_is_little() ? low : high;
    *odd += gf_host_is_little() ? high : low;
}

/* Add `periods` periods to their lanes. The sums must fit in the wide lanes. */
static inline void GF_T(sum_periods)(const GF_T(sample) * samples, size_t periods,
                                     uint32_t *lanes) {
    const unsigned char *p = (const unsigned char *)samples;
    GF_T(vec_wide) even[PERIOD_VECTORS] = {{0}}, odd[PERIOD_VECTORS] = {{0}};
    for (size_t t = 0; t < periods; t++, p += PERIOD_BYTES) {
        for (size_t l = 0; l < PERIOD_BYTES; l += LINE_BYTES)
            __builtin_prefetch(p + PREFETCH_BYTES + l);
        _Pragma("GCC unroll 12") for (size_t v = 0; v < PERIOD_VECTORS; v++)
            GF_T(sum_add)(p + v * sizeof(vec), &even[v], &odd[v]);
    }
    GF_T(wide) all[2][PERIOD_BYTES / sizeof(GF_T(wide))];
    memcpy(all[0], even, sizeof even);
    memcpy(all[1], odd, sizeof odd);
    for (size_t j = 0; j < PERIOD_BYTES / sizeof(GF_T(wide)); j++) {
        lanes[2 * j] += all[0][j];
        lanes[2 * j + 1] += all[1][j];
    }
}

/* Sum each channel of n interleaved samples. n is a multiple of channels.
 *
 * The sums of `max` periods fit in the wide lanes: 257 * 255 = 65535. `flush` times `max` periods
 * plus a partial period fit in the 32-bit lanes: 65537 * 65535 = 2^32 - 1. */
static void GF_T(sum_row)(const GF_T(sample) * row, size_t n, uint32_t channels, uint64_t *sums) {
    enum { PERIOD = PERIOD_BYTES / sizeof(GF_T(sample)), IS_U8 = sizeof(GF_T(sample)) == 1 };
    const size_t max = IS_U8 ? 257 : 65536, flush = IS_U8 ? 65536 : 1;
    memset(sums, 0, channels * sizeof *sums);
    do {
        uint32_t lanes[PERIOD] = {0};
        for (size_t k = 0; k < flush && n >= PERIOD; k++) {
            const size_t periods = n / PERIOD < max ? n / PERIOD : max;
            GF_T(sum_periods)(row, periods, lanes);
            row += periods * PERIOD;
            n -= periods * PERIOD;
        }
        if (n < PERIOD) {
            for (size_t j = 0; j < n; j++)
                lanes[j] += row[j];
            n = 0;
        }
        sum_lanes(lanes, PERIOD, channels, sums);
    } while (n > 0);
}

/* Add `count` rows to `vectors` wide lanes. count is a compile-time constant. */
GF_INLINE void GF_T(sum_down_rows)(const unsigned char *rows, size_t stride, const size_t count,
                                   size_t vectors, GF_T(vec_wide) * even, GF_T(vec_wide) * odd) {
    for (size_t v = 0; v < vectors; v++) {
        GF_T(vec_wide) low = even[v], high = odd[v];
        for (size_t r = 0; r < count; r++) {
            if (v * sizeof(vec) % LINE_BYTES == 0)
                __builtin_prefetch(rows + (count + r) * stride + v * sizeof(vec));
            GF_T(sum_add)(rows + r * stride + v * sizeof(vec), &low, &high);
        }
        even[v] = low;
        odd[v] = high;
    }
}

/* Add sample i < n of each row to sums[i]: to the wide lanes until these could overflow, then the
 * lanes to the sums. Samples after the last whole vector are added to the sums directly. */
static void GF_T(sum_down)(uint64_t *sums, const unsigned char *rows, size_t stride, uint64_t count,
                           size_t n) {
    enum { LANES = sizeof(vec) / sizeof(GF_T(sample)) };
    const uint64_t max = (GF_T(wide)) - 1 / (GF_T(sample)) - 1; /* rows in a wide lane */
    const size_t vectors = n / LANES, whole = vectors * LANES;
    for (uint64_t r = 0; r < count && whole < n; r++)
        for (size_t i = whole; i < n; i++)
            sums[i] += ((const GF_T(sample) *)(const void *)(rows + r * stride))[i];
    while (count > 0 && vectors > 0) {
        GF_T(vec_wide) even[TILE / LANES], odd[TILE / LANES];
        memset(even, 0, vectors * sizeof *even);
        memset(odd, 0, vectors * sizeof *odd);
        const uint64_t chunk = count < max ? count : max;
        uint64_t r = 0;
        for (; chunk - r >= 4; r += 4)
            GF_T(sum_down_rows)(rows + r * stride, stride, 4, vectors, even, odd);
        for (; r < chunk; r++)
            GF_T(sum_down_rows)(rows + r * stride, stride, 1, vectors, even, odd);
        const GF_T(wide) *evens = (const GF_T(wide) *)even, *odds = (const GF_T(wide) *)odd;
        for (size_t i = 0; i < whole / 2; i++) {
            sums[2 * i] += evens[i];
            sums[2 * i + 1] += odds[i];
        }
        rows += chunk * stride;
        count -= chunk;
    }
}

#undef TYPE
