/* CPU implementation of resize. Along x, parts of a strip are rows; along y, they are columns. The
 * loops are written for auto-vectorisation. */
#include "core/convert.h"
#include "core/vec.h"
#include "resize/resize.h"
#include "samples.h"

enum { BLOCK = 256 }; /* columns that are summed up together along y */

/* A strip, its tables, and the rows or columns of a part. */
typedef struct resize_work {
    const gf_resize_plan *plan;
    const gf_rows *in, *out;
    const gf_resize_span *spans;
    const void *taps;
    gf_range part;
} resize_work;

static inline int32_t resize_add_i32(int32_t sum, int32_t tap, int32_t v) {
    return sum + tap * v;
}

static inline double resize_add_f64(double sum, double tap, double v) {
    return sum + tap * v;
}

static inline float resize_add_f32(float sum, float tap, float v) {
    return fmaf(tap, v, sum);
}

/* Convert a sum to a sample: see gf_resize_form. max: of the type; constant at every call. */
static inline int32_t resize_round_i32(int32_t sum, int32_t max) {
    const int32_t v = (sum + (1 << (GF_RESIZE_FIXED_BITS - 1))) >> GF_RESIZE_FIXED_BITS;
    return v < 0 ? 0 : v < max ? v : max;
}

static inline int32_t resize_round_f64(double sum, int32_t max) {
    const double v = sum * (1.0 / (double)(UINT64_C(1) << GF_RESIZE_WIDE_BITS)) + 0.5;
    return (int32_t)(v < 0 ? 0 : v < max ? v : max);
}

static inline float resize_round_f32(float sum, int32_t max) {
    (void)max;
    return sum == sum ? sum : gf_float_of_bits(0x7fc00000);
}

#define OF_SUM(x, name) _Generic(x, int32_t : name##_i32, double : name##_f64, float : name##_f32)

typedef int32_t sum_u8;
#define TYPE u8
#include "resize/resize_tmpl.h"
typedef double sum_u16;
#define TYPE u16
#include "resize/resize_tmpl.h"
typedef float sum_f32;
#define TYPE f32
#include "resize/resize_tmpl.h"

void GF_SIMD_NAME(gf_resize_cpu)(const gf_plan *head, const gf_strip *strip, uint32_t part,
                                 uint32_t parts, void *scratch) {
    static void (*const functions[][2])(const resize_work *) = {
        {resize_along_u8, resize_down_u8},
        {resize_along_u16, resize_down_u16},
        {resize_along_f32, resize_down_f32}};
    const gf_resize_plan *plan = (const gf_resize_plan *)head;
    const gf_rows *out = &strip->out;
    const uint64_t unit = plan->down ? 64 : 1, first = plan->down ? 0 : out->y0;
    const uint64_t count = plan->down ? gf_row_samples(&head->out) : out->rows;
    const uint64_t units = (count + unit - 1) / unit;
    const gf_range share = {first + gf_min(unit * gf_share(units, part, parts), count),
                            first + gf_min(unit * gf_share(units, part + 1, parts), count)};
    functions[head->in.type][plan->down](&(resize_work){
        plan, &strip->in[0], out, strip->constants, gf_resize_taps(plan, strip->constants), share});
}
