/* SINGLE (TYPE f32) and DOUBLE (f64): four vectors at a time, because fma has a latency of 4. */

#define REAL GF_T(real)
#define REALS GF_T(reals)
#define LANES (sizeof(REALS) / sizeof(REAL))
#define BLOCK (4 * LANES)

/* fma(t, v, -0) is t * v: the sums start at -0. */
GF_INLINE void GF_T(real_sum)(REALS s[4], const void *const *window, const REAL *t, uint32_t r,
                              size_t i) {
    const REAL *mid = (const REAL *)window[r] + i;
    for (size_t j = 0; j < 4; j++)
        s[j] = GF_T(reals_set)(-(REAL)0);
    for (uint32_t k = r; k > 0; k--) {
        const REAL *a = (const REAL *)window[r - k] + i, *b = (const REAL *)window[r + k] + i;
        const REALS tap = GF_T(reals_set)(t[k]);
        for (size_t j = 0; j < 4; j++)
            s[j] = GF_T(reals_fma)(
                tap, GF_T(reals_load)(a + j * LANES) + GF_T(reals_load)(b + j * LANES), s[j]);
    }
    for (size_t j = 0; j < 4; j++)
        s[j] = GF_T(reals_fma)(GF_T(reals_set)(t[0]), GF_T(reals_load)(mid + j * LANES), s[j]);
}

static void GF_T(real_along)(void *to, const void *const *window, const void *t, uint32_t r,
                             size_t n) {
    for (size_t i = 0; i < n; i += BLOCK) {
        REALS s[4];
        GF_T(real_sum)(s, window, t, r, i);
        for (size_t j = 0; j < 4; j++)
            GF_T(reals_store)((REAL *)to + i + j * LANES, s[j]);
    }
}

/* Compute a block of results. The type is a constant at every call. */
GF_INLINE void GF_T(real_block)(const gf_type type, const gf_separable_plan *plan, void *out,
                                const void *in, const void *const *window, size_t i) {
    const REAL *t = (const REAL *)plan->head.constants + plan->radius[0] + 1;
    REALS s[4];
    GF_T(real_sum)(s, window, t, plan->radius[1], i);
    for (size_t j = 0; j < 4; j++) {
        if (plan->count > 1)
            s[j] = GF_T(reals_over)(s[j], plan->count);
        if (plan->sharpen) {
            const REALS v = GF_T(reals_from)(type, in, j * LANES), d = v - s[j];
            const REALS threshold = GF_T(reals_set)((REAL)plan->threshold);
            const REALS far = GF_T(reals_fma)(GF_T(reals_set)((REAL)plan->amount), d, v);
            s[j] = GF_T(reals_choose)((d < threshold) & (d > -threshold), v, far);
        }
        GF_T(reals_to)(type, out, j * LANES, s[j]);
    }
}

GF_INLINE void GF_T(real_blocks)(const gf_type type, const gf_separable_plan *plan, void *out,
                                 const void *in, const void *const *window, size_t n,
                                 size_t ahead) {
    const size_t bytes = gf_type_bytes(type);
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        char *to = (char *)out + i * bytes;
        for (size_t line = 0; line < BLOCK * bytes; line += 64)
            __builtin_prefetch(to + line + ahead, 1);
        GF_T(real_block)(type, plan, to, (const char *)in + i * bytes, window, i);
    }
    if (i < n) {
        REAL from[BLOCK] = {0}, to[BLOCK];
        memcpy(from, (const char *)in + i * bytes, (n - i) * bytes);
        GF_T(real_block)(type, plan, to, from, window, i);
        memcpy((char *)out + i * bytes, to, (n - i) * bytes);
    }
}

GF_INLINE void GF_T(real_convert)(const gf_type type, REAL *to, const void *from, size_t n,
                                  size_t ahead) {
    const size_t bytes = gf_type_bytes(type);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        __builtin_prefetch((const char *)from + i * bytes + ahead);
        GF_T(reals_store)(to + i, GF_T(reals_from)(type, from, i));
    }
    if (i < n) {
        REAL tail[LANES] = {0};
        memcpy(tail, (const char *)from + i * bytes, (n - i) * bytes);
        GF_T(reals_store)(to + i, GF_T(reals_from)(type, tail, 0));
    }
}

#undef REAL
#undef REALS
#undef LANES
#undef BLOCK
#undef TYPE
