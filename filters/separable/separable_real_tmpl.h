/* SINGLE (TYPE f32) and DOUBLE (f64): four vectors at a time, because fma has a latency of 4. */

#define REAL GF_T(real)
#define REALS GF_T(reals)
#define LANES (sizeof(REALS) / sizeof(REAL))
#define BLOCK (4 * LANES)

/* Add the values of a pair of rows, or of columns, to the sums: a and b are at distance k. */
GF_INLINE void GF_T(real_add)(REALS s[4], REAL tap, const REAL *a, const REAL *b) {
    const REALS t = GF_T(reals_set)(tap);
    for (size_t j = 0; j < 4; j++)
        s[j] = GF_T(reals_fma)(t, GF_T(reals_load)(a + j * LANES) + GF_T(reals_load)(b + j * LANES),
                               s[j]);
}

/* Start with -0: fma(t, v, -0) is t * v. */
GF_INLINE void GF_T(real_clear)(REALS s[4]) {
    for (size_t j = 0; j < 4; j++)
        s[j] = GF_T(reals_set)(-(REAL)0);
}

GF_INLINE void GF_T(real_finish)(REALS s[4], REAL tap, const REAL *mid) {
    for (size_t j = 0; j < 4; j++)
        s[j] = GF_T(reals_fma)(GF_T(reals_set)(tap), GF_T(reals_load)(mid + j * LANES), s[j]);
}

static void GF_T(real_along)(void *to, const void *from, const gf_separable_plan *plan, size_t n) {
    const REAL *t = plan->head.constants;
    const size_t r = plan->radius[0], step = plan->head.in.channels;
    for (size_t i = 0; i < n; i += BLOCK) {
        const REAL *mid = (const REAL *)from + r * step + i;
        REALS s[4];
        GF_T(real_clear)(s);
        for (size_t k = r; k > 0; k--)
            GF_T(real_add)(s, t[k], mid - k * step, mid + k * step);
        GF_T(real_finish)(s, t[0], mid);
        for (size_t j = 0; j < 4; j++)
            GF_T(reals_store)((REAL *)to + i + j * LANES, s[j]);
    }
}

/* Compute a block of results. The type is a constant at every call. */
GF_INLINE void GF_T(real_block)(const gf_type type, const gf_separable_plan *plan, void *out,
                                const void *in, const void *const *window, size_t i) {
    const REAL *t = (const REAL *)plan->head.constants + plan->radius[0] + 1;
    const size_t r = plan->radius[1];
    REALS s[4];
    GF_T(real_clear)(s);
    for (size_t k = r; k > 0; k--)
        GF_T(real_add)(s, t[k], (const REAL *)window[r - k] + i, (const REAL *)window[r + k] + i);
    GF_T(real_finish)(s, t[0], (const REAL *)window[r] + i);
    if (plan->count > 1)
        for (size_t j = 0; j < 4; j++)
            s[j] = GF_T(reals_over)(s[j], plan->count);
    for (size_t j = 0; j < 4 && plan->sharpen; j++) {
        const REALS v = GF_T(reals_from)(type, in, j * LANES), d = v - s[j];
        const REALS threshold = GF_T(reals_set)((REAL)plan->threshold);
        const REALS far = GF_T(reals_fma)(GF_T(reals_set)((REAL)plan->amount), d, v);
        s[j] = GF_T(reals_choose)((d < threshold) & (d > -threshold), v, far);
    }
    for (size_t j = 0; j < 4; j++)
        GF_T(reals_to)(type, out, j * LANES, s[j]);
}

GF_INLINE void GF_T(real_rows)(const gf_type type, const gf_separable_plan *plan,
                               const gf_separable_group *group) {
    const size_t bytes = gf_type_bytes(type);
    for (size_t i = 0; i < group->n; i += BLOCK)
        for (size_t y = 0; y < group->rows; y++) {
            const unsigned char *in = group->in + y * group->in_stride + i * bytes;
            unsigned char *out = group->out + y * group->out_stride + i * bytes;
            separable_prefetch(group, y, i * bytes, BLOCK * bytes);
            if (i + BLOCK <= group->n) {
                GF_T(real_block)(type, plan, out, in, group->window + y, i);
                continue;
            }
            REAL from[BLOCK] = {0}, to[BLOCK];
            memcpy(from, in, (group->n - i) * bytes);
            GF_T(real_block)(type, plan, to, from, group->window + y, i);
            memcpy(out, to, (group->n - i) * bytes);
        }
}

GF_INLINE void GF_T(real_convert)(const gf_type type, REAL *to, const void *from, size_t n) {
    const size_t bytes = gf_type_bytes(type);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        GF_T(reals_store)(to + i, GF_T(reals_from)(type, from, i));
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
