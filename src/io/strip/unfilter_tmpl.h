/* Template of row_filter_simd.c: unfiltering with a constant pixel size. Parameter: BPP, bytes per
 * pixel. */

/* As unfilter_average. */
static size_t UNFILTER_T(unfilter_sub)(unsigned char *out, const unsigned char *in, size_t from,
                                       size_t to) {
    const size_t wide = unfilter_wide(BPP);
    __m128i left = unfilter_left(out, from, BPP);
    size_t i = from;
#ifdef __AVX2__
    /* Process the whole pixels of a vector per iteration. Byte 15 belongs to the next iteration for
     * 3-byte pixels, which overwrites it. */
    enum { STEP = 16 / BPP * BPP, LAST = STEP - BPP };
    char indices[16];
    for (int j = 0; j < 16; j++)
        indices[j] = (char)(j % BPP);
    const __m128i pixel = _mm_loadu_si128((const __m128i *)(const void *)indices),
                  last = _mm_add_epi8(pixel, _mm_set1_epi8(LAST));
    left = _mm_shuffle_epi8(left, pixel);
    for (; i + 16 <= to; i += STEP) {
        __m128i x = unfilter_load(in + i, 16);
        x = _mm_add_epi8(x, _mm_slli_si128(x, BPP));
        if (2 * BPP < 16)
            x = _mm_add_epi8(x, _mm_slli_si128(x, 2 * BPP));
        if (4 * BPP < 16)
            x = _mm_add_epi8(x, _mm_slli_si128(x, 4 * BPP));
        if (8 * BPP < 16)
            x = _mm_add_epi8(x, _mm_slli_si128(x, 8 * BPP));
        _mm_storeu_si128((__m128i *)(void *)(out + i), _mm_add_epi8(x, left));
        left = _mm_add_epi8(left, _mm_shuffle_epi8(x, last));
    }
#endif
    for (; i + wide <= to; i += BPP) {
        left = _mm_add_epi8(left, unfilter_load(in + i, wide));
        unfilter_store(out + i, left, wide);
    }
    return i;
}

static void UNFILTER_T(unfilter_pixels)(unsigned char *out, const unsigned char *in,
                                        const unsigned char *above, size_t from, size_t to,
                                        uint32_t filter) {
    const size_t end = filter == GF_PNG_SUB       ? UNFILTER_T(unfilter_sub)(out, in, from, to)
                       : filter == GF_PNG_AVERAGE ? unfilter_average(out, in, above, from, to, BPP)
                                                  : unfilter_paeth(out, in, above, from, to, BPP);
    gf_png_unfilter_golden(out, in, above, end, to, BPP, filter);
}

#ifdef __AVX2__
static void UNFILTER_T(unfilter_diagonal)(const diagonal_rows *rows, size_t from, size_t to,
                                          bool mixed) {
    mixed ? diagonal(rows, from, to, BPP, true) : diagonal(rows, from, to, BPP, false);
}
#endif

#undef BPP
