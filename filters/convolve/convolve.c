/* convolve: descriptor, parameters, plan, and the parser of kernels. */
#include "convolve/convolve.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/c_locale.h"
#include "core/error.h"
#include "samples.h"

static const gf_param params[] = {
    GF_TEXT_PARAM(TEXT, "kernel", 'k', "KERNEL",
                  "weights: a matrix file as of vips, or a list of numbers", NULL),
    GF_EDGE_PARAM("mirror"),
};

#define ONES_5 "1,1,1,1,1,"
#define ONES_15 ONES_5 ONES_5 ONES_5
#define LARGE_7 "2147483647,-2147483647,2147483646,7,-2147483647,2147483647,2147483647,"
#define ONES_75 ONES_15 ONES_15 ONES_15 ONES_15 ONES_15

static const char *const cases[] = {
    "kernel=0,-1,0,-1,5,-1,0,-1,0",
    "kernel=1,",
    "kernel=1,2,1,0,0,0,-1,-2,-1 edge=reflect",
    "kernel=-3,0,3,-10,0,10,-3,0,3 edge=replicate",
    "kernel=1,4,7,4,1,4,16,26,16,4,7,26,41,26,7,4,16,26,16,4,1,4,7,4,1 edge=constant:1",
    "kernel=.0625,.125,.0625,.125,.25,.125,.0625,.125,.0625",
    "kernel=0.1,0.2,-0.1,0,0.7,0.1,-0.15,0.05,0.1 edge=reflect",
    "kernel=" ONES_75 ONES_75 ONES_75 " edge=replicate",
    "kernel=0,0,0,0,0,0,0,0,0",
    "kernel=-2000000000,2000000000,0,0,0,0,0,0,1 edge=constant:0",
    "kernel=" LARGE_7 LARGE_7 LARGE_7 LARGE_7 LARGE_7 LARGE_7 LARGE_7 " edge=replicate",
    "kernel=" ONES_15 ONES_5 "0.04,-0.3,1e-3,0,-20.5",
    NULL,
};

/* Nanoseconds per sample on one core of a 2023 server, per tap and for the rest: for `auto`. */
#define COST_TAP 0.03
#define COST_SAMPLE 0.3

#define FILE_BYTES 16384 /* maximum size of a kernel file: 72 characters per element */

/* ---- parser ---------------------------------------------------------------------------------- */

/* A number of a kernel in both precisions: the binary32 is rounded once, from the text. */
typedef struct convolve_number {
    double real;
    float single;
} convolve_number;

typedef struct convolve_kernel {
    uint32_t width, height;
    convolve_number scale, offset, elements[GF_CONVOLVE_TAPS];
} convolve_kernel;

/* Text of a kernel. */
typedef struct convolve_text {
    const char *at;        /* next character */
    const char *separator; /* characters between numbers */
    const char *name;      /* for messages: the file or the option */
    gf_status status;      /* of damaged text */
    gf_error *error;
} convolve_text;

/* Read numbers up to the end of the line, or of the text. Set *count to at most max. */
static gf_status convolve_line(convolve_text *text, convolve_number *numbers, uint32_t max,
                               uint32_t *count) {
    for (*count = 0;; (*count)++) {
        text->at += strspn(text->at, text->separator);
        const char *start = text->at;
        if (*start == 0 || *start == '\n')
            return GF_OK;
        if (*count == max)
            return gf_fail(text->error, text->status,
                           "%s: more than %u numbers where %u are allowed", text->name, max, max);
        char *end;
        const size_t length = strcspn(start, text->separator);
        const size_t line = strcspn(start, "\n"), size = length < line ? length : line;
        numbers[*count] = (convolve_number){strtod(start, NULL), strtof(start, &end)};
        /* The character set rejects hexadecimal, "inf" and "nan". */
        if (end != start + size || strspn(start, "+-.0123456789eE") < size ||
            !isfinite(numbers[*count].single))
            return gf_fail(text->error, text->status, "%s: '%.*s' is not a finite decimal number%s",
                           text->name, size < 40 ? (int)size : 40, start,
                           text->status == GF_USAGE
                               ? "; a kernel with a blank or a comma is a list of numbers"
                               : "");
        text->at = end;
    }
}

static gf_status convolve_parse_list(convolve_text *text, convolve_kernel *kernel) {
    uint32_t count;
    const gf_status status = convolve_line(text, kernel->elements, GF_CONVOLVE_TAPS, &count);
    uint32_t side = 1;
    while (side * side < count)
        side += 2;
    kernel->width = kernel->height = side;
    kernel->scale = (convolve_number){1, 1};
    kernel->offset = (convolve_number){0, 0};
    if (!status && side * side != count)
        return gf_fail(text->error, GF_USAGE,
                       "--kernel: a list of %u numbers; a square kernel has 1, 9, 25, 49, 81, 121, "
                       "169 or 225; use a file for other sizes",
                       count);
    return status;
}

static bool convolve_is_side(const convolve_number *number) {
    return number->real >= 1 && number->real <= GF_CONVOLVE_SIDE &&
           number->real == rint(number->real);
}

static gf_status convolve_parse_file(convolve_text *text, convolve_kernel *kernel) {
    convolve_number head[4] = {{0, 0}, {0, 0}, {1, 1}, {0, 0}};
    uint32_t count;
    gf_status status = convolve_line(text, head, 4, &count);
    if (status)
        return status;
    if (count < 2 || !convolve_is_side(&head[0]) || !convolve_is_side(&head[1]) ||
        head[2].single == 0)
        return gf_fail(text->error, text->status,
                       "%s: the first line must be WIDTH HEIGHT [SCALE [OFFSET]], with sizes from "
                       "1 to %d and a scale other than 0",
                       text->name, GF_CONVOLVE_SIDE);
    kernel->width = (uint32_t)head[0].real;
    kernel->height = (uint32_t)head[1].real;
    kernel->scale = head[2];
    kernel->offset = head[3];
    for (uint32_t y = 0; y < kernel->height && !status; y++) {
        text->at += *text->at == '\n';
        status = convolve_line(text, kernel->elements + y * kernel->width, kernel->width, &count);
        if (!status && count < kernel->width)
            status = gf_fail(text->error, text->status,
                             "%s: row %u of the kernel has %u numbers instead of %u", text->name,
                             y + 1, count, kernel->width);
    }
    if (!status && text->at[strspn(text->at, " \t\r\n")] != 0)
        return gf_fail(text->error, text->status,
                       "%s: text after row %u of the kernel, the last one by its first line",
                       text->name, kernel->height);
    return status;
}

/* Read a kernel from a file, or from a list of numbers. */
static gf_status convolve_read(const char *given, convolve_kernel *kernel, gf_error *error) {
    const char *const blanks = " \t\r\n\v\f,;\"";
    char content[FILE_BYTES + 1];
    convolve_text text = {given, blanks, "--kernel", GF_USAGE, error};
    if (!given || !*given)
        return gf_fail(error, GF_USAGE,
                       "--kernel: name a file, or list the numbers of a square kernel: --kernel "
                       "'0 -1 0  -1 5 -1  0 -1 0'");
    const bool list = strpbrk(given, blanks) != NULL;
    if (!list) {
        FILE *file = fopen(given, "re");
        const size_t size = file ? fread(content, 1, sizeof content, file) : 0;
        const int cause = !file || ferror(file) ? errno : 0;
        if (file)
            (void)fclose(file);
        if (cause)
            return gf_fail(error, gf_fail_cause(error, cause), "%s: cannot read the kernel: %s",
                           given, strerror(cause));
        if (size > FILE_BYTES)
            return gf_fail(error, GF_FAILED, "%s: a kernel has at most %d bytes", given,
                           FILE_BYTES);
        content[size] = 0;
        text = (convolve_text){content, " \t\r,;\"", given, GF_FAILED, error};
    }
    gf_c_locale scope = gf_c_locale_enter();
    const gf_status status = (list ? convolve_parse_list : convolve_parse_file)(&text, kernel);
    gf_c_locale_leave(&scope);
    return status;
}

/* ---- plan ------------------------------------------------------------------------------------ */

static bool convolve_is_integer(const convolve_number *number) {
    return number->real == rint(number->real) && fabs(number->real) < 2147483648.0;
}

static bool convolve_has_integers(const convolve_kernel *kernel) {
    bool integers = convolve_is_integer(&kernel->scale) && convolve_is_integer(&kernel->offset);
    for (uint32_t i = 0; i < kernel->width * kernel->height; i++)
        integers = integers && convolve_is_integer(&kernel->elements[i]);
    return integers;
}

static gf_convolve_form convolve_integer_form(const gf_convolve_plan *plan) {
    double bound = fabs(plan->offset * plan->scale);
    for (uint32_t i = 0; i < plan->count; i++)
        bound += fabs(plan->taps[i].weight) * gf_type_max(plan->head.in.type);
    return bound < 0x1p23 && fabs(plan->scale) < 0x1p23 ? GF_CONVOLVE_SINGLE
           : bound < 0x1p52                             ? GF_CONVOLVE_DOUBLE
                                                        : GF_CONVOLVE_WIDE;
}

static void convolve_set(gf_convolve_plan *plan, const convolve_kernel *kernel) {
    gf_plan *head = &plan->head;
    const bool real = head->in.type == GF_F32 || !convolve_has_integers(kernel);
    plan->width = kernel->width;
    plan->height = kernel->height;
    plan->scale = real ? (double)kernel->scale.single : kernel->scale.real;
    plan->offset = real ? (double)kernel->offset.single : kernel->offset.real;
    for (uint32_t i = 0; i < kernel->width * kernel->height; i++) {
        const convolve_number *number = &kernel->elements[i];
        const gf_convolve_tap tap = {real ? (double)number->single : number->real,
                                     (int32_t)(i % kernel->width) - (int32_t)(kernel->width / 2),
                                     (int32_t)(i / kernel->width) - (int32_t)(kernel->height / 2)};
        if (tap.weight != 0)
            plan->taps[plan->count++] = tap;
    }
    plan->form = real ? GF_CONVOLVE_REAL : convolve_integer_form(plan);
    head->constants = plan->taps;
    head->constant_bytes = sizeof plan->taps;
    /* A kernel of even height has one row less below the pixel, but a mirrored row may be there. */
    head->before = head->after = kernel->height / 2;
    head->cost = COST_SAMPLE + COST_TAP * plan->count * (plan->form == GF_CONVOLVE_DOUBLE ? 2 : 1) +
                 plan->count * (plan->form == GF_CONVOLVE_WIDE ? 5.0 : 0);
}

static size_t convolve_scratch_bytes(const gf_plan *head) {
    const gf_convolve_plan *plan = (const gf_convolve_plan *)head;
    return plan->height * gf_convolve_row_bytes(plan) + GF_CONVOLVE_ROW * sizeof(float);
}

static gf_status plan_convolve(const gf_settings *settings, gf_plan *head, gf_error *error) {
    gf_convolve_plan *plan = (gf_convolve_plan *)head;
    convolve_kernel kernel;
    gf_status status = convolve_read(gf_settings_text(settings, "kernel"), &kernel, error);
    if (!status)
        status = gf_edge_read(settings, head->in.type, &plan->edge, error);
    if (!status)
        convolve_set(plan, &kernel);
    return status;
}

const gf_filter gf_convolve_filter = {
    .info =
        {
            .name = "convolve",
            .summary = "filter an image with the weights of a kernel",
            .details =
                "Each sample becomes a weighted sum of its neighbours. The kernel gives the\n"
                "weights, at most 15 x 15. Its middle, rounded down, is placed on the sample. It\n"
                "is not turned: as in vips conv and cv2.filter2D, this is a correlation.\n"
                "\n"
                "A kernel with a blank or a comma is a list: the numbers of a square kernel with\n"
                "an odd side, row by row. Otherwise it is a file in the matrix format of vips:\n"
                "  WIDTH HEIGHT [SCALE [OFFSET]]\n"
                "  one line for each row, with WIDTH numbers separated by blanks or commas\n"
                "The sum is divided by SCALE (default: 1), and OFFSET (default: 0) is added.\n"
                "\n"
                "If all numbers are integers, results of integer images are exact, rounded once,\n"
                "and clamped.\n"
                "\n"
                "Alpha is copied unchanged. All backends produce the same bits.\n",
            .examples = "gpufilter convolve --kernel '0 -1 0 -1 5 -1 0 -1 0' in.png out.png\n"
                        "gpufilter convolve --kernel emboss.mat --edge replicate in.png out.png\n",
            GF_IMAGE_FILTER(params, cases),
        },
    .plan_bytes = sizeof(gf_convolve_plan),
    .plan = plan_convolve,
    .mixes_pixels = true,
    .golden = gf_convolve_golden,
    .cpu = {convolve_scratch_bytes, GF_LEVELS(gf_convolve_cpu)},
};
