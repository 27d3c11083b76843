/* Plans of separable filters: the choice of the arithmetic, and the taps. */
#include "separable/separable.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"

/* Nanoseconds per sample on one core of a 2023 server, per tap and for the rest: for `auto`. */
#define COST_TAP 0.03
#define COST_SAMPLE 0.3

/* Return exp(-x) for x >= 0 by operations that IEEE 754 defines: exp of a C library may differ in
 * the last bit. The relative error is below 2^-51; results below 1e-304 are 0. */
static double separable_exp(double x) {
    const double log2e = 0x1.71547652b82fep+0, ln2_high = 0x1.62e42feep-1,
                 ln2_low = 0x1.a39ef35793c76p-33;
    if (x > 700)
        return 0;
    const int n = (int)(x * log2e + 0.5);
    const double f = (n * ln2_high - x) + n * ln2_low; /* n * ln2_high is exact */
    double sum = 1;
    for (int k = 18; k > 0; k--) /* |f| <= 0.35: f^19 / 19! < 2^-80 */
        sum = 1 + sum * f / k;
    return ldexp(sum, -n);
}

void gf_separable_gaussian(double sigma, uint32_t radius, double *t) {
    double sum = 0;
    for (uint32_t k = radius; k > 0; k--) {
        const double x = k / sigma;
        t[k] = separable_exp(x * x / 2);
        sum += 2 * t[k];
    }
    sum += 1;
    for (uint32_t k = radius; k > 0; k--)
        t[k] /= sum;
    t[0] = 1 / sum;
}

void gf_separable_fixed(const double *t, uint32_t radius, uint32_t *fixed) {
    const double one = 65536;
    bool up[GF_SEPARABLE_NARROW + 1] = {false};
    uint32_t rest = 65536; /* units not yet given to a tap */
    for (uint32_t k = 0; k <= radius; k++) {
        fixed[k] = (uint32_t)(t[k] * one);
        rest -= (k ? 2 : 1) * fixed[k];
    }
    /* A pair of taps takes two units. The center takes an odd one. */
    for (; rest > 1; rest -= 2) {
        uint32_t best = 0;
        for (uint32_t k = 1; k <= radius; k++)
            if (!up[k] && (!best || t[k] * one - fixed[k] > t[best] * one - fixed[best]))
                best = k;
        up[best] = true;
    }
    for (uint32_t k = 1; k <= radius; k++)
        fixed[k] += up[k];
    fixed[0] += rest;
}

/* Set the radius of a Gaussian, floor(truncate * sigma + 0.5), of both axes. */
static gf_status separable_set_radius(gf_separable_plan *plan, const double sigma[2],
                                      double truncate, gf_error *error) {
    for (int axis = 0; axis < 2; axis++) {
        const double radius = floor(truncate * sigma[axis] + 0.5);
        if (radius > GF_SEPARABLE_MAX_RADIUS)
            return gf_fail(
                error, GF_USAGE,
                "--sigma '%g': the radius %.0f, %g times sigma, is above %d; use a smaller "
                "--sigma or --truncate",
                sigma[axis], radius, truncate, GF_SEPARABLE_MAX_RADIUS);
        plan->radius[axis] = (uint32_t)radius;
    }
    return GF_OK;
}

static gf_separable_form separable_form(const gf_separable_plan *plan, bool box) {
    const gf_type type = plan->head.in.type;
    const bool narrow =
        plan->radius[0] <= GF_SEPARABLE_NARROW && plan->radius[1] <= GF_SEPARABLE_NARROW;
    if (type == GF_F32)
        return GF_SEPARABLE_SINGLE;
    if (box)
        return GF_SEPARABLE_SUMS;
    if (type == GF_U8)
        return narrow && !plan->sharpen ? GF_SEPARABLE_FIXED : GF_SEPARABLE_SINGLE;
    return narrow && !plan->sharpen ? GF_SEPARABLE_SINGLE : GF_SEPARABLE_DOUBLE;
}

/* Store the taps of one axis in the plan's form. */
static void separable_set_taps(const gf_separable_plan *plan, int axis, const double *sigma,
                               void *to) {
    const uint32_t radius = plan->radius[axis];
    double t[GF_SEPARABLE_MAX_RADIUS + 1];
    for (uint32_t k = 0; k <= radius; k++)
        t[k] = 1;
    if (sigma && radius > 0)
        gf_separable_gaussian(sigma[axis], radius, t);
    if (plan->form == GF_SEPARABLE_FIXED)
        gf_separable_fixed(t, radius, to);
    for (uint32_t k = 0; k <= radius; k++) {
        if (plan->form == GF_SEPARABLE_SUMS)
            ((uint32_t *)to)[k] = 1;
        if (plan->form == GF_SEPARABLE_SINGLE)
            ((float *)to)[k] = (float)t[k];
        if (plan->form == GF_SEPARABLE_DOUBLE)
            ((double *)to)[k] = t[k];
    }
}

gf_status gf_separable_set(gf_plan *head, const gf_settings *settings, double truncate,
                           gf_error *error) {
    gf_separable_plan *plan = (gf_separable_plan *)head;
    const uint32_t *radius = plan->radius;
    const bool box = truncate == 0;
    double size[2];
    gf_settings_pair(settings, box ? "radius" : "sigma", size);
    gf_status status = gf_edge_read(settings, head->in.type, &plan->edge, error);
    if (!status)
        status = separable_set_radius(plan, size, box ? 1 : truncate, error);
    if (status)
        return status;
    const double *sigma = box ? NULL : size;
    plan->form = separable_form(plan, box);
    plan->count = box ? (2 * radius[0] + 1) * (2 * radius[1] + 1) : 1;
    const size_t tap = gf_separable_tap_bytes(plan->form);
    head->constant_bytes = (radius[0] + radius[1] + 2) * tap;
    head->constants = head->owned = malloc(head->constant_bytes);
    if (!head->owned)
        return gf_fail_memory(error, head->filter->info.name, head->constant_bytes, "its taps");
    separable_set_taps(plan, 0, sigma, head->owned);
    separable_set_taps(plan, 1, sigma, (unsigned char *)head->owned + (radius[0] + 1) * tap);
    head->before = head->after = radius[1];
    head->brightness = 1;
    const uint64_t line = head->in.width + head->in.height + 2 * GF_SEPARABLE_MAX_RADIUS;
    head->golden_bytes = (head->in.width * (head->in.height + 1) + line) * sizeof(double);
    const double taps = plan->form == GF_SEPARABLE_SUMS ? 4 : radius[0] + radius[1];
    head->cost = COST_SAMPLE + COST_TAP * taps * (plan->form == GF_SEPARABLE_DOUBLE ? 2 : 1);
    return GF_OK;
}
