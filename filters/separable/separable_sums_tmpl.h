/* Exact sums of columns and of windows, in words of TYPE: u16, u32 or u64. Written for
 * auto-vectorisation. */

#define WORD GF_T(word)

/* The sample type is a constant at every call. */
GF_INLINE void GF_T(sums_slide_samples)(const gf_type type, WORD *restrict columns,
                                        const void *restrict add, const void *restrict subtract,
                                        size_t n) {
    for (size_t i = 0; i < n; i++)
        columns[i] = (WORD)(columns[i] + SAMPLE_OF(WORD, type, add, i) -
                            (subtract ? SAMPLE_OF(WORD, type, subtract, i) : (WORD)0));
}

GF_INLINE void GF_T(sums_slide_row)(const gf_type type, const gf_separable_slide *slide, size_t n) {
    const size_t bytes = gf_type_bytes(type);
    WORD *columns = slide->columns;
    const char *add = slide->add, *subtract = slide->subtract, *next = slide->next;
    for (size_t i = 0; i < n; i += 64) {
        const char *old = subtract ? subtract + i * bytes : NULL;
        for (size_t line = 0; line < 64 * bytes; line += 64)
            __builtin_prefetch(next + i * bytes + line, 1);
        if (n - i >= 64)
            GF_T(sums_slide_samples)(type, columns + i, add + i * bytes, old, 64);
        else
            GF_T(sums_slide_samples)(type, columns + i, add + i * bytes, old, n - i);
    }
}

static void GF_T(sums_slide)(const gf_separable_slide *slide, gf_type type, size_t n) {
    if (type == GF_U8)
        GF_T(sums_slide_row)(GF_U8, slide, n);
    else
        GF_T(sums_slide_row)(GF_U16, slide, n);
}

/* Divide sums of windows. With X = s + count / 2 < 2^37, floor(X / count) is the integer part of
 * (X + 0.5) / count. That is at least 2^-21 from an integer, and the error below 2^-34. */
GF_INLINE void GF_T(sums_divide)(const gf_type type, const gf_separable_line *line,
                                 const WORD *restrict first, const WORD *restrict end, size_t n) {
    const double half = (double)line->mean->half + 0.5, inverse = line->mean->inverse;
    uint8_t *restrict bytes = line->out;
    uint16_t *restrict words = line->out;
    for (size_t i = 0; i < n; i++) {
        const double x = (double)(GF_T(signed_word))(end[i] - first[i]);
        const int32_t mean = (int32_t)((x + half) * inverse);
        if (type == GF_U8)
            bytes[i] = (uint8_t)mean;
        else
            words[i] = (uint16_t)mean;
    }
}

/* Compute samples from the sums of each channel up to each column, after `channels` zeros. */
GF_INLINE void GF_T(sums_means)(const gf_separable_line *line, const WORD *sums, size_t n) {
    const size_t window = (2 * (size_t)line->radius + 1) * line->channels;
    if (line->type == GF_U8)
        GF_T(sums_divide)(GF_U8, line, sums, sums + window, n);
    else
        GF_T(sums_divide)(GF_U16, line, sums, sums + window, n);
}

#undef WORD
#undef TYPE
