/* resize: descriptor, parameters, sizes and plan. */
#include "resize/resize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/result.h"

static const char *const kernels[] = {"box", "bilinear", "hamming", "bicubic", "lanczos3", NULL};

#define MAX_SIDE 10000000 /* its tables take 1 GB */

static const gf_param params[] = {
    GF_NUMBER_PARAM(INT, "width", 'W', "N", "width; the height keeps the ratio", NULL, 1, MAX_SIDE),
    GF_NUMBER_PARAM(INT, "height", 'H', "N", "height; the width keeps the ratio", NULL, 1,
                    MAX_SIDE),
    GF_NUMBER_PARAM(FLOAT, "scale", 's', "F", "factor of both sides", NULL, 1e-6, 1e6),
    GF_TEXT_PARAM(TEXT, "fit", 0, "WxH", "largest size of the same ratio inside W x H", NULL),
    GF_TEXT_PARAM(TEXT, "cover", 0, "WxH", "W x H; sides of another ratio are cropped equally",
                  NULL),
    GF_TEXT_PARAM(TEXT, "exact", 0, "WxH", "W x H, of any ratio", NULL),
    GF_CHOICE_PARAM(CHOICE, "kernel", 'k', "NAME", "kernel, from soft to sharp", "bicubic",
                    kernels),
    GF_FLAG_PARAM("no-antialias", 0, "do not widen the kernel when the image becomes smaller"),
    GF_FLAG_PARAM("no-enlarge", 0, "limit W and H to the sides of the image"),
    GF_FLAG_PARAM("fast", 0, "let the decoder of a JPEG scale, if the image becomes smaller"),
};

/* The options that select a size. */
static const char *const sizes[] = {"width", "height", "scale", "fit", "cover", "exact"};
enum { WIDTH, HEIGHT, SCALE, FIT, COVER, EXACT, SIZES };

static const char *const cases[] = {
    "scale=0.5",
    "width=7 no-enlarge",
    "height=60 kernel=lanczos3 no-enlarge",
    "scale=2.3 kernel=bilinear",
    "scale=0.07 kernel=lanczos3",
    "fit=40x30 kernel=hamming",
    "fit=900x31 kernel=box no-enlarge",
    "cover=64x48 kernel=box",
    "cover=33x70 kernel=hamming",
    "exact=120x1 kernel=box",
    "exact=1x200 kernel=bilinear no-antialias",
    "exact=19x23 kernel=lanczos3 no-antialias",
    "exact=5000x64 no-enlarge",
    NULL,
};

/* Nanoseconds per tap, and per input sample, on one core of a 2023 server: for `auto`. */
#define COST_TAP 0.1
#define COST_SAMPLE 0.3

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Read WxH or, for lists of Python, W,H. Return false if the text is something else. */
static bool resize_read_size(const char *text, uint64_t side[2]) {
    for (int i = 0; i < 2; i++) {
        const size_t digits = strspn(text, "0123456789");
        side[i] = digits && digits < 11 ? strtoull(text, NULL, 10) : 0;
        if (side[i] < 1 || side[i] > MAX_SIDE || !memchr(i ? "" : "x,", text[digits], i ? 1 : 2))
            return false;
        text += digits + 1;
    }
    return true;
}

/* Return max(1, a * b / c), rounded to nearest, halves up; or a number above MAX_SIDE. */
static uint64_t resize_ratio(uint64_t a, uint64_t b, uint64_t c) {
    const gf_u128 side = (2 * (gf_u128)a * b + c) / (2 * (gf_u128)c);
    return side < 1 ? 1 : side > MAX_SIDE ? MAX_SIDE + 1 : (uint64_t)side;
}

/* Read the only option that selects a size, and its sides; 0: the side keeps the ratio. */
static gf_status resize_read(const gf_settings *settings, const gf_format *in, int *which,
                             uint64_t side[2], gf_error *error) {
    const uint64_t source[2] = {in->width, in->height};
    int given = 0;
    for (int i = 0; i < SIZES; i++)
        if (gf_settings_given(settings, sizes[i])) {
            *which = i;
            given++;
        }
    if (given != 1)
        return gf_fail(error, GF_USAGE,
                       "resize: %s; give one of --width, --height, --scale, --fit, --cover and "
                       "--exact",
                       given ? "more than one size" : "no size");
    const char *text = gf_settings_text(settings, sizes[*which]);
    if (*which >= FIT && !resize_read_size(text, side))
        return gf_fail(error, GF_USAGE,
                       "--%s '%s': must be two integers from 1 to %d, as in 800x600", sizes[*which],
                       text, MAX_SIDE);
    if (*which <= HEIGHT)
        side[*which] = (uint64_t)gf_settings_int(settings, sizes[*which]);
    const double scale = *which == SCALE ? gf_settings_number(settings, "scale") : 1;
    for (int i = 0; i < 2; i++) {
        if (*which == SCALE)
            side[i] = (uint64_t)fmax(fmin((double)source[i] * scale + 0.5, MAX_SIDE + 1), 1);
        if (gf_settings_flag(settings, "no-enlarge"))
            side[i] = gf_min(side[i], source[i]);
    }
    return GF_OK;
}

/* Set the sizes of the sides, and the part of the input that --cover keeps. */
static gf_status resize_set_sides(const gf_settings *settings, const gf_format *in,
                                  gf_resize_side side[2], gf_error *error) {
    const uint64_t source[2] = {in->width, in->height};
    const gf_resize_kernel kernel = (gf_resize_kernel)gf_settings_choice(settings, "kernel");
    const bool antialias = !gf_settings_flag(settings, "no-antialias");
    uint64_t out[2] = {0, 0};
    int which = 0;
    const gf_status status = resize_read(settings, in, &which, out, error);
    if (status)
        return status;
    const gf_u128 across = (gf_u128)out[0] * source[1], along = (gf_u128)out[1] * source[0];
    const bool wider = across > along; /* than the ratio of the image */
    if (which == FIT)
        out[!wider] = 0;
    for (int i = 0; i < 2; i++) {
        if (!out[i])
            out[i] = resize_ratio(source[i], out[!i], source[!i]);
        if (out[i] > MAX_SIDE)
            return gf_fail(error, GF_USAGE, "resize: a side would have more than %d pixels",
                           MAX_SIDE);
        side[i] = (gf_resize_side){source[i], out[i], 0, (double)source[i], kernel, antialias};
    }
    if (which != COVER || across == along)
        return GF_OK;
    /* As ImageOps.fit of Pillow, which rounds the borders of the part to binary32. */
    gf_resize_side *cut = &side[wider];
    const double ratio = (double)out[0] / (double)out[1];
    const double kept = wider ? side->length / ratio : ratio * side[1].length;
    const double from = (cut->length - kept) * 0.5, end = from + kept;
    cut->from = (double)(float)from;
    cut->length = (double)((float)end - (float)from);
    return GF_OK;
}

/* ---- plan ------------------------------------------------------------------------------------ */

/* With --fast, return the smallest scale that leaves twice the sides of the output. Resizing from
 * less would show the blocks of the decoder. */
static uint32_t resize_eighths(const gf_settings *settings, const gf_format *image) {
    gf_resize_side side[2];
    if (!gf_settings_flag(settings, "fast") || resize_set_sides(settings, image, side, NULL) ||
        !side->antialias)
        return 8;
    const double smaller =
        fmin(side[0].length / (double)side[0].out, side[1].length / (double)side[1].out);
    return smaller >= 16 ? 1 : smaller >= 8 ? 2 : smaller >= 4 ? 4 : 8;
}

static gf_status plan_resize(const gf_settings *settings, gf_plan *head, gf_error *error) {
    gf_resize_plan *plan = (gf_resize_plan *)head;
    const gf_scaled *scaled = &head->scaled;
    gf_resize_side sides[2];
    gf_format image = head->source;
    if (scaled->eighths) {
        image.width = scaled->width;
        image.height = scaled->height;
    }
    gf_status status = resize_set_sides(settings, &image, sides, error);
    if (status)
        return status;
    for (int i = 0; i < 2 && scaled->eighths; i++) { /* in samples of the scaled image */
        sides[i].in = i ? head->source.height : head->source.width;
        sides[i].from *= scaled->eighths / 8.0;
        sides[i].length *= scaled->eighths / 8.0;
    }
    /* As Pillow 13: y first if the height loses more than twice as many samples as the width. */
    const int64_t less_x = (int64_t)(sides[0].in - sides[0].out);
    const int64_t less_y = (int64_t)(sides[1].in - sides[1].out);
    plan->down = head->stage != (less_y > 0 && less_y > 2 * less_x);
    const gf_resize_side *side = &sides[plan->down];
    *(plan->down ? &head->out.height : &head->out.width) = side->out;
    if ((status = gf_format_check(&head->out, "resize", error)) ||
        (status = gf_resize_set_tables(plan, side, error)))
        return status;
    const double taps = (double)head->constant_bytes / (double)gf_resize_tap_bytes(plan->form);
    head->cost = COST_SAMPLE + COST_TAP * taps / (double)side->in;
    return GF_OK;
}

static size_t resize_scratch(const gf_plan *plan) {
    return GF_RESIZE_SCRATCH * gf_type_bytes(plan->in.type);
}

const gf_filter gf_resize_filter = {
    .info =
        {
            .name = "resize",
            .summary = "change the size of an image",
            .details =
                "Give one size. With --width, --height and --fit the other side keeps the ratio:\n"
                "it is rounded to the nearest integer, and at least 1. All of them may enlarge the\n"
                "image, unless --no-enlarge is given.\n"
                "\n"
                "When the image becomes smaller, the kernel is widened, so that all samples have\n"
                "a weight. A flat integer image stays flat.\n"
                "\n"
                "8-bit grey and RGB images become those of Pillow, bit for bit: resize, with\n"
                "--cover ImageOps.fit. By default, colours are weighed by alpha. All backends\n"
                "produce the same bits.\n"
                "\n"
                "--fast decodes JPEGs at 1/2, 1/4 or 1/8 if both sides stay twice those of the\n"
                "output; results differ slightly. It has no effect on other inputs, with --crop,\n"
                "--linear or --no-antialias, or if a step without it reads the input of a run.\n",
            .examples = "gpufilter resize --width 800 in.png out.png\n"
                        "gpufilter resize --fit 1920x1080 --no-enlarge *.png --out-dir small\n"
                        "gpufilter resize --cover 224x224 --kernel bilinear in.png out.png\n",
            GF_IMAGE_FILTER(params, cases),
        },
    .plan_bytes = sizeof(gf_resize_plan),
    .stages = 2,
    .plan = plan_resize,
    .mixes_pixels = true,
    .premultiplies = true,
    .eighths = resize_eighths,
    .golden = gf_resize_golden,
    .cpu = {resize_scratch, GF_LEVELS(gf_resize_cpu)},
};
