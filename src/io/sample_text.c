/* Samples as text: a line each, in CSV and in JSON. */

#include <math.h>
#include <string.h>

#include "io/sample_kind.h"

/* Above it not every integer is a double, which is what most readers of JSON have. */
#define EXACT_IN_JSON (UINT64_C(1) << 53)

static char *put_uint(char *to, uint64_t x) {
    char digits[20];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + x % 10);
        x /= 10;
    } while (x != 0);
    memcpy(to, digits + at, sizeof digits - at);
    return to + sizeof digits - at;
}

static char *put_float(char *to, float x, bool quote) {
    const gf_value number = {.type = GF_VALUE_FLOAT, .real = (double)x};
    if (quote)
        *to++ = '"';
    gf_value_format(&number, to, 40);
    to += strlen(to);
    if (quote)
        *to++ = '"';
    return to;
}

static float get_float(const void *value) {
    float x;

    memcpy(&x, value, sizeof x);
    return x;
}

static uint16_t get_integer(gf_type type, const void *value) {
    uint16_t x;

    if (type == GF_U8)
        return *(const uint8_t *)value;
    memcpy(&x, value, sizeof x);
    return x;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static char *csv_head(char *to, const gf_sample_layout *layout, uint64_t count) {
    (void)count;
    return stpcpy(stpcpy(to, layout->with_bin ? "bin," : ""), "x,y,channel,value\n");
}

static char *csv_sample(char *to, const gf_sample_layout *layout, const gf_sample *sample) {
    if (layout->with_bin) {
        to = put_uint(to, sample->bin);
        *to++ = ',';
    }
    to = put_uint(to, sample->x);
    *to++ = ',';
    to = put_uint(to, sample->y);
    *to++ = ',';
    to = stpcpy(to, layout->names[sample->channel]);
    *to++ = ',';
    to = layout->type == GF_F32 ? put_float(to, get_float(sample->value), false)
                                : put_uint(to, get_integer(layout->type, sample->value));
    *to++ = '\n';
    return to;
}

static char *csv_tail(char *to, uint64_t count) {
    (void)count;
    return to;
}

const gf_sample_kind gf_sample_csv = {"csv", false, 0, csv_head, csv_sample, csv_tail};

/* ---- JSON ------------------------------------------------------------------------------------ */

static char *json_head(char *to, const gf_sample_layout *layout, uint64_t count) {
    (void)count;
    to = stpcpy(to, "{\"schema\":\"gpufilter-samples\",\"version\":1,\"fields\":[");
    to = stpcpy(to, layout->with_bin ? "\"bin\"," : "");
    return stpcpy(to, "\"x\",\"y\",\"channel\",\"value\"],\"samples\":[");
}

static char *json_uint(char *to, uint64_t x) {
    bool quote = x > EXACT_IN_JSON;

    if (quote)
        *to++ = '"';
    to = put_uint(to, x);
    if (quote)
        *to++ = '"';
    *to++ = ',';
    return to;
}

/* JSON has no infinities, and -0 is an integer to many readers: one without a sign. */
static char *json_float(char *to, float x) {
    if (x == 0 && signbit(x))
        return stpcpy(to, "-0.0");
    return put_float(to, x, !isfinite(x));
}

static char *json_sample(char *to, const gf_sample_layout *layout, const gf_sample *sample) {
    to = stpcpy(to, sample->index != 0 ? ",\n[" : "\n[");
    if (layout->with_bin)
        to = json_uint(to, sample->bin);
    to = json_uint(to, sample->x);
    to = json_uint(to, sample->y);
    *to++ = '"';
    to = stpcpy(to, layout->names[sample->channel]);
    to = stpcpy(to, "\",");
    to = layout->type == GF_F32 ? json_float(to, get_float(sample->value))
                                : put_uint(to, get_integer(layout->type, sample->value));
    *to++ = ']';
    return to;
}

static char *json_tail(char *to, uint64_t count) {
    return stpcpy(to, count != 0 ? "\n]}\n" : "]}\n");
}

const gf_sample_kind gf_sample_json = {"json", false, 1, json_head, json_sample, json_tail};
