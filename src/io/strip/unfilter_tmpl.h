/* Template of row_filter_simd.c: unfiltering with a constant pixel size. Parameter: BPP, bytes per
 * pixel. */

static void UNFILTER_T(unfilter_sub)(unsigned char *out, const unsigned char *in, size_t from,
                                     size_t to) {
#ifdef __AVX2__
    /* Process the whole pixels of a vector per iteration. Byte 15 belongs to the next iteration for
     * 3-byte pixels, which overwrites it. */
    enum { STEP = 16 / BPP * BPP, LAST = STEP - BPP };
    char indices[16];
    for (int j = 0; j < 16; j++)
        indices[j] = (char)(j % BPP);
    const __m128i pixel = _mm_loadu_si128((const __m128i *)(const void *)indices),
                  last = _mm_add_epi8(pixel, _mm_set1_epi8(LAST));
    __m128i carry = _mm_shuffle_epi8(unfilter_left(out, from, BPP), pixel);
    size_t i = from;
    for (; i + 16 <= to; i += STEP) {
        __m128i x = unfilter_load(in + i, 16);
        x = _mm_add_epi8(x, _mm_slli_si128(x, BPP));
        if (2 * BPP < 16)
            x = _mm_add_epi8(x, _mm_slli_si128(x, 2 * BPP));
        if (4 * BPP < 16)
            x = _mm_add_epi8(x, _mm_slli_si128(x, 4 * BPP));
        if (8 * BPP < 16)
            x = _mm_add_epi8(x, _mm_slli_si128(x, 8 * BPP));
        _mm_storeu_si128((__m128i *)(void *)(out + i), _mm_add_epi8(x, carry));
        carry = _mm_add_epi8(carry, _mm_shuffle_epi8(x, last));
    }
    sub_pixels(out, in, i, to, BPP, carry);
#else
    sub_pixels(out, in, from, to, BPP, unfilter_left(out, from, BPP));
#endif
}

static void UNFILTER_T(unfilter_pixels)(unsigned char *out, const unsigned char *in,
                                        const unsigned char *above, size_t from, size_t to,
                                        uint32_t filter) {
    if (filter == GF_PNG_SUB)
        UNFILTER_T(unfilter_sub)(out, in, from, to);
    else if (filter == GF_PNG_AVERAGE)
        unfilter_average(out, in, above, from, to, BPP);
    else
        unfilter_paeth(out, in, above, from, to, BPP);
}

#ifdef __AVX2__
static void UNFILTER_T(unfilter_diagonal)(const diagonal_rows *rows, size_t from, size_t to,
                                          bool mixed) {
    mixed ? diagonal(rows, from, to, BPP, true) : diagonal(rows, from, to, BPP, false);
}
#endif

#undef BPP
