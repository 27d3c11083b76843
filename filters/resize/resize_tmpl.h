/* Sums along x and y, for one type of samples, and of sums and taps. */

#define SUM GF_T(sum)
#define SAMPLE GF_T(sample)

static inline SAMPLE GF_T(resize_sample)(SUM sum) {
    return (SAMPLE)OF_SUM(sum, resize_round)(sum, sizeof(SAMPLE) == 1 ? 255 : 65535);
}

/* channels is a constant at every call. */
GF_INLINE void GF_T(resize_row)(const resize_work *work, uint64_t y, const uint32_t channels) {
    const SAMPLE *in = (const SAMPLE *)(const void *)gf_row(work->in, y);
    SAMPLE *restrict out = (SAMPLE *)(void *)gf_row(work->out, y);
    for (uint64_t x = 0; x < work->plan->spans; x++, out += channels) {
        const gf_resize_span *span = &work->spans[x];
        const SUM *taps = (const SUM *)work->taps + span->taps;
        const SAMPLE *from = in + span->first * channels;
        SUM sums[GF_MAX_CHANNELS];
        for (uint32_t c = 0; c < channels; c++)
            sums[c] = taps[0] * (SUM)from[c];
        for (uint64_t k = 1; k < span->count; k++)
            for (uint32_t c = 0; c < channels; c++)
                sums[c] =
                    OF_SUM(sums[c], resize_add)(sums[c], taps[k], (SUM)from[k * channels + c]);
        for (uint32_t c = 0; c < channels; c++)
            out[c] = GF_T(resize_sample)(sums[c]);
    }
}

static void GF_T(resize_along)(const resize_work *work) {
    const uint32_t channels = work->plan->head.in.channels;
    for (uint64_t y = work->part.first; y < work->part.end; y++)
        if (channels == 1)
            GF_T(resize_row)(work, y, 1);
        else if (channels == 2)
            GF_T(resize_row)(work, y, 2);
        else if (channels == 3)
            GF_T(resize_row)(work, y, 3);
        else
            GF_T(resize_row)(work, y, 4);
}

/* Compute columns [i, i + n) of row y. n is a constant at every call but the last. */
GF_INLINE void GF_T(resize_block)(const resize_work *work, uint64_t y, uint64_t i, const size_t n) {
    const gf_resize_span *span = &work->spans[y];
    const SUM *taps = (const SUM *)work->taps + span->taps;
    SAMPLE *restrict out = (SAMPLE *)(void *)gf_row(work->out, y) + i;
    SUM sums[BLOCK];
    for (uint64_t k = 0; k < span->count; k++) {
        const SAMPLE *from = (const SAMPLE *)(const void *)gf_row(work->in, span->first + k) + i;
        for (size_t j = 0; j < n; j++)
            sums[j] = k == 0 ? taps[k] * (SUM)from[j]
                             : OF_SUM(sums[j], resize_add)(sums[j], taps[k], (SUM)from[j]);
    }
    for (size_t j = 0; j < n; j++)
        out[j] = GF_T(resize_sample)(sums[j]);
}

static void GF_T(resize_down)(const resize_work *work) {
    for (uint64_t y = work->out->y0; y < work->out->y0 + work->out->rows; y++) {
        uint64_t i = work->part.first;
        for (; work->part.end - i >= BLOCK; i += BLOCK)
            GF_T(resize_block)(work, y, i, BLOCK);
        GF_T(resize_block)(work, y, i, work->part.end - i);
    }
}

#undef SUM
#undef SAMPLE
#undef TYPE
