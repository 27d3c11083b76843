/* Template of dot_simd.c: sums of products of integer samples. Parameter: TYPE, u8 or u16.
 *
 * Written for auto-vectorisation: corresponding sums are whole pixels and whole vectors apart.
 * Products of u8 fit in 16 bits, and the sum of 2^16 of them in 32 bits. Products of u16 fit in 32
 * bits, and the sum of a row in 64 bits. */

static void GF_T(dot_row)(const GF_T(sample) * a, const GF_T(sample) * b, size_t n,
                          uint32_t channels, uint64_t *sums) {
    const size_t flush = sizeof *a == 1 ? 1u << 16 : SIZE_MAX;
    uint64_t all[GF_DOT_SSD][PERIOD] = {{0}};
    size_t i = 0;
    while (n - i >= PERIOD) {
        GF_T(sum) partial[GF_DOT_SSD][PERIOD] = {{0}};
        for (size_t k = 0; k < flush && n - i >= PERIOD; k++, i += PERIOD)
            for (size_t j = 0; j < PERIOD; j++) {
                const GF_T(wide) p = a[i + j], q = b[i + j];
                partial[GF_DOT_AB][j] += (GF_T(wide))(p * q);
                partial[GF_DOT_AA][j] += (GF_T(wide))(p * p);
                partial[GF_DOT_BB][j] += (GF_T(wide))(q * q);
            }
        for (size_t s = 0; s < GF_DOT_SSD; s++)
            for (size_t j = 0; j < PERIOD; j++)
                all[s][j] += partial[s][j];
    }
    for (size_t j = 0; j < n - i; j++) {
        const uint64_t p = a[i + j], q = b[i + j];
        all[GF_DOT_AB][j] += p * q;
        all[GF_DOT_AA][j] += p * p;
        all[GF_DOT_BB][j] += q * q;
    }
    for (uint32_t c = 0; c < channels; c++)
        for (uint32_t s = 0; s < GF_DOT_SSD; s++) {
            uint64_t sum = 0;
            for (uint32_t j = c; j < PERIOD; j += channels)
                sum += all[s][j];
            sums[c * GF_DOT_SSD + s] = sum;
        }
}

#undef TYPE
