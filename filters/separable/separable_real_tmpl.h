/* SINGLE (TYPE f32) and DOUBLE (f64): four sums at a time, because fma has a latency of 4. */

_Static_assert(GF_SEPARABLE_GROUP == 4, "real_down computes the sums of a group");

#define REAL GF_T(real)
#define REALS GF_T(reals)
#define LANES (sizeof(REALS) / sizeof(REAL))
#define BLOCK (4 * LANES)

/* Add the values at a and b, on both sides of a window. */
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

GF_INLINE void GF_T(real_along_r)(REAL *restrict to, const REAL *restrict from, const REAL *t,
                                  size_t step, size_t n, const size_t r) {
    for (size_t i = 0; i < n; i += BLOCK) {
        const REAL *mid = from + r * step + i;
        REALS s[4];
        GF_T(real_clear)(s);
        for (size_t k = r; k > 0; k--)
            GF_T(real_add)(s, t[k], mid - k * step, mid + k * step);
        for (size_t j = 0; j < 4; j++) {
            const REALS v = GF_T(reals_load)(mid + j * LANES);
            const REALS sum = GF_T(reals_fma)(GF_T(reals_set)(t[0]), v, s[j]);
            GF_T(reals_store)(to + i + j * LANES, sum);
        }
    }
}

static void GF_T(real_along)(void *to, const void *from, const gf_separable_plan *plan, size_t n) {
    const size_t r = plan->radius[0], step = plan->head.in.channels;
    if (r == 4) /* sigma 1: unrolled, both passes take 0.93 times as long */
        GF_T(real_along_r)(to, from, plan->head.constants, step, n, 4);
    else
        GF_T(real_along_r)(to, from, plan->head.constants, step, n, r);
}

/* Compute the sums of four rows. Neighbouring windows share rows: going from distance k to k - 1
 * loads one vector above and one below. One row at a time takes 1.1 times as long at radius 20, and
 * 1.3 times at radius 240. */
GF_INLINE void GF_T(real_down)(REALS s[4], const REAL *t, uint32_t r, const void *const *window,
                               size_t i) {
    REALS a[4], b[4];
    GF_T(real_clear)(s);
    for (size_t y = 0; y < 4 && r > 0; y++) {
        a[y] = GF_T(reals_load)((const REAL *)window[y] + i);
        b[y] = GF_T(reals_load)((const REAL *)window[2 * r + y] + i);
    }
    for (size_t k = r; k > 0; k--) {
        const REALS tap = GF_T(reals_set)(t[k]);
        for (size_t y = 0; y < 4; y++)
            s[y] = GF_T(reals_fma)(tap, a[y] + b[y], s[y]);
        for (size_t y = 0; y < 3; y++) {
            a[y] = a[y + 1];
            b[3 - y] = b[2 - y];
        }
        a[3] = GF_T(reals_load)((const REAL *)window[r - k + 4] + i);
        b[0] = GF_T(reals_load)((const REAL *)window[r + k - 1] + i);
    }
    for (size_t y = 0; y < 4; y++)
        s[y] = GF_T(reals_fma)(GF_T(reals_set)(t[0]),
                               GF_T(reals_load)((const REAL *)window[r + y] + i), s[y]);
}

/* Store a vector of results. in: the samples at the centers. The type is a constant. */
GF_INLINE void GF_T(real_put)(const gf_type type, const gf_separable_plan *plan, void *out,
                              const void *in, REALS s) {
    if (plan->count > 1)
        s = GF_T(reals_over)(s, plan->count);
    if (plan->sharpen) {
        const REALS v = GF_T(reals_from)(type, in, 0), d = v - s;
        const REALS threshold = GF_T(reals_set)((REAL)plan->threshold);
        const REALS far = GF_T(reals_fma)(GF_T(reals_set)((REAL)plan->amount), d, v);
        s = GF_T(reals_choose)((d < threshold) & (d > -threshold), v, far);
    }
    GF_T(reals_to)(type, out, 0, s);
}

/* plan, group: copies, which the compiler knows that stores do not change. r: the radius. */
GF_INLINE void GF_T(real_rows_r)(const gf_type type, const gf_separable_plan plan,
                                 const gf_separable_group group, const uint32_t r) {
    const REAL *t = (const REAL *)plan.head.constants + plan.radius[0] + 1;
    const size_t bytes = gf_type_bytes(type);
    for (size_t i = 0; i < group.n; i += LANES) {
        REALS s[4];
        GF_T(real_down)(s, t, r, group.window, i);
        for (size_t y = 0; y < 4 && y < group.rows; y++) {
            const unsigned char *in = group.in + y * group.in_stride + i * bytes;
            unsigned char *out = group.out + y * group.out_stride + i * bytes;
            if (i * bytes % 64 == 0)
                separable_prefetch(&group, y, i * bytes, 64);
            if (i + LANES <= group.n) {
                GF_T(real_put)(type, &plan, out, in, s[y]);
                continue;
            }
            REAL from[LANES] = {0}, to[LANES];
            memcpy(from, in, (group.n - i) * bytes);
            GF_T(real_put)(type, &plan, to, from, s[y]);
            memcpy(out, to, (group.n - i) * bytes);
        }
    }
}

GF_INLINE void GF_T(real_rows)(const gf_type type, const gf_separable_plan *plan,
                               const gf_separable_group *group) {
    if (plan->radius[1] == 4)
        GF_T(real_rows_r)(type, *plan, *group, 4);
    else
        GF_T(real_rows_r)(type, *plan, *group, plan->radius[1]);
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

static void GF_T(real_load)(gf_type type, void *to, const void *from, size_t n) {
    GF_T(reals_by_type)(type, GF_T(real_convert), to, from, n);
}

static void GF_T(real_across)(const gf_separable_plan *plan, const gf_separable_group *group) {
    GF_T(reals_by_type)(plan->head.in.type, GF_T(real_rows), plan, group);
}

#undef REAL
#undef REALS
#undef LANES
#undef BLOCK
#undef TYPE
