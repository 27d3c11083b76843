/* Values of parameters: parse text and check ranges. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/c_locale.h"
#include "core/error.h"
#include "core/settings.h"
#include "core/thread.h"

typedef struct gf_setting {
    bool given;
    char *text; /* copy of the text set or of the default; NULL for none */
    union {
        bool flag;
        int64_t integer;
        uint64_t bits; /* SIZE, LIST, CHOICE (an index) */
        float real;
        double range[2];
    } as;
    double number; /* FLOAT, and CHOICE: of NAME:V */
} gf_setting;

struct gf_settings {
    const gf_param *params;
    size_t count;
    gf_setting values[];
};

const gf_param *gf_param_find(const gf_param *params, size_t count, const char *name, size_t length,
                              char letter) {
    for (size_t i = 0; i < count; i++)
        if (letter ? params[i].letter == letter
                   : strlen(params[i].name) == length && memcmp(params[i].name, name, length) == 0)
            return &params[i];
    return NULL;
}

bool gf_settings_fit(const gf_settings *settings, const gf_param *params) {
    return settings->params == params;
}

/* Return the index of a parameter; settings->count if there is none of this name. */
static size_t settings_find(const gf_settings *settings, const char *name) {
    size_t i = 0;
    while (i < settings->count && strcmp(settings->params[i].name, name) != 0)
        i++;
    return i;
}

static gf_settings *settings_alloc(const gf_param *params, size_t count) {
    gf_settings *settings = calloc(1, sizeof *settings + count * sizeof settings->values[0]);
    if (settings)
        *settings = (gf_settings){params, count};
    return settings;
}

void gf_join_choices(const char *const *choices, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; choices[i] && used < size; i++) {
        const char *gap = i == 0 ? "" : choices[i + 1] ? ", " : " or ";
        int n = snprintf(text + used, size - used, "%s%s", gap, choices[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}

size_t gf_choice_index(const char *const *choices, const char *text, size_t length) {
    size_t i = 0;
    while (choices[i] && (strlen(choices[i]) != length || strncmp(choices[i], text, length) != 0))
        i++;
    return i;
}

static bool settings_parse_int(const gf_param *param, const char *text, gf_setting *value) {
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    value->as.integer = n;
    return end != text && *end == 0 && errno == 0 && text[strspn(text, "+-0123456789")] == 0 &&
           (double)n >= param->min && (double)n <= param->max;
}

/* Parse a decimal number as binary64. Return the end of its text; NULL: it is none. */
static const char *settings_parse_real(const char *text, double *x) {
    gf_c_locale scope = gf_c_locale_enter();
    char *end;
    *x = strtod(text, &end);
    gf_c_locale_leave(&scope);
    const size_t length = strspn(text, "+-.0123456789eE"); /* no hexadecimal, "inf" or spaces */
    return end != text && (size_t)(end - text) == length && *x - *x == 0 ? end : NULL;
}

/* Parse binary32 directly: parsing a double first would round twice. */
static bool settings_parse_float(const gf_param *param, const char *text, gf_setting *value) {
    gf_c_locale scope = gf_c_locale_enter();
    char *end;
    float x = strtof(text, &end);
    gf_c_locale_leave(&scope);
    value->as.real = x;
    (void)settings_parse_real(text, &value->number);
    /* The comparisons reject NaN; the character set rejects hexadecimal, "inf" and spaces. */
    return end != text && *end == 0 && text[strspn(text, "+-.0123456789eE")] == 0 &&
           (double)x >= param->min && (double)x <= param->max;
}

static bool settings_parse_range(const gf_param *param, const char *text, gf_setting *value) {
    double *range = value->as.range;
    if (param->choices && param->choices[gf_choice_index(param->choices, text, strlen(text))])
        return true;
    const char *end = settings_parse_real(text, &range[0]);
    if (!end || *end != ',')
        return false;
    end = settings_parse_real(end + 1, &range[1]);
    /* The limit leaves exponents to multiply by a number of bins. */
    return end && *end == 0 && range[0] < range[1] && range[1] - range[0] <= 1e303;
}

static bool settings_parse_pair(const gf_param *param, const char *text, gf_setting *value) {
    double *pair = value->as.range;
    const char *end = settings_parse_real(text, &pair[0]);
    pair[1] = pair[0];
    const bool two = end && *end == ',';
    if (two)
        end = settings_parse_real(end + 1, &pair[1]);
    bool inside = end && *end == 0 && (pair[0] > 0 || pair[1] > 0);
    for (int i = 0; inside && i < 2; i++)
        inside = (pair[i] >= param->min && pair[i] <= param->max) || (two && pair[i] == 0);
    return inside;
}

static bool settings_parse_int_pair(const gf_param *param, const char *text, gf_setting *value) {
    return text[strspn(text, "+0123456789,")] == 0 && settings_parse_pair(param, text, value);
}

static bool settings_parse_size(const gf_param *param, const char *text, gf_setting *value) {
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    const uint64_t n = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end >= 'a' ? *end - 'a' + 'A' : *end) : NULL;
    const unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    value->as.bits = n << shift;
    return *text >= '0' && *text <= '9' && errno == 0 && (unit ? end[1] == 0 : *end == 0) &&
           n <= UINT64_MAX >> shift && (double)(n << shift) >= param->min &&
           (double)(n << shift) <= param->max;
}

static bool settings_parse_list(const gf_param *param, const char *text, gf_setting *value) {
    size_t next = 0; /* next index allowed: ascending order also excludes duplicates */
    for (const char *item = text, *end;; item = end + 1) {
        end = item + strcspn(item, ",");
        const size_t i = gf_choice_index(param->choices, item, (size_t)(end - item));
        if (!param->choices[i] || i < next)
            return false;
        value->as.bits |= UINT64_C(1) << i;
        next = i + 1;
        if (*end == 0)
            return true;
    }
}

static bool settings_parse_flag(const gf_param *param, const char *text, gf_setting *value) {
    (void)param;
    value->as.flag = true;
    return *text == 0;
}

static bool settings_parse_choice(const gf_param *param, const char *text, gf_setting *value) {
    const char *const *choices = param->choices, *colon = strchr(text, ':');
    value->as.bits = gf_choice_index(choices, text, strlen(text));
    if (choices[value->as.bits])
        return !strchr(choices[value->as.bits], ':');
    for (size_t i = 0; colon && choices[i]; i++)
        if (strchr(choices[i], ':') && strncmp(choices[i], text, (size_t)(colon + 1 - text)) == 0) {
            const char *end = settings_parse_real(colon + 1, &value->number);
            value->as.bits = i;
            return end && *end == 0;
        }
    return false;
}

static bool settings_parse_path(const gf_param *param, const char *text, gf_setting *value) {
    (void)param, (void)value;
    return *text != 0;
}

/* Types of parameters: how they are parsed, and the requirement that a rejected text violates. */
typedef struct settings_type {
    bool (*parse)(const gf_param *param, const char *text, gf_setting *value); /* NULL: all texts */
    const char *must, *rest; /* the range or the choices are between them */
    int digits;              /* of the bounds of the range; 0: there is none */
} settings_type;

static const settings_type settings_types[] = {
    [GF_PARAM_FLAG] = {settings_parse_flag, "takes no value", "", 0},
    [GF_PARAM_INT] = {settings_parse_int, "must be an integer from ", "", 20},
    [GF_PARAM_FLOAT] = {settings_parse_float, "must be a number from ", "", 10},
    [GF_PARAM_SIZE] = {settings_parse_size, "must be an integer from ",
                       "; suffixes K, M, G and T are powers of 1024", 20},
    [GF_PARAM_PAIR] = {settings_parse_pair, "must be a number from ",
                       ", or two as X,Y, of which one may be 0", 10},
    [GF_PARAM_INT_PAIR] = {settings_parse_int_pair, "must be an integer from ",
                           ", or two as X,Y, of which one may be 0", 10},
    [GF_PARAM_CHOICE] = {settings_parse_choice, "must be ", "", 0},
    [GF_PARAM_LIST] = {settings_parse_list, "must be a comma-separated list of ",
                       ", each once, in this order", 0},
    [GF_PARAM_RANGE] = {settings_parse_range,
                        "must be two numbers LO,HI with LO below HI and at most 1e303 apart", "",
                        0},
    [GF_PARAM_IMAGE] = {settings_parse_path, "must name a file", "", 0},
    [GF_PARAM_SAMPLES] = {settings_parse_path, "must name a file", "", 0},
    [GF_PARAM_TEXT] = {NULL, "", "", 0},
};

static gf_status settings_assign(gf_settings *settings, size_t i, const char *text,
                                 gf_error *error) {
    const gf_param *param = &settings->params[i];
    const settings_type *type = &settings_types[param->type];
    gf_setting value = {0};
    if (type->parse && !type->parse(param, text, &value)) {
        const char *gap = param->type == GF_PARAM_RANGE && param->choices ? ", or " : "";
        char values[384] = "";
        if (type->digits)
            snprintf(values, sizeof values, "%.*g to %.*g", type->digits, param->min, type->digits,
                     param->max);
        else if (param->choices)
            gf_join_choices(param->choices, values, sizeof values);
        return gf_fail(error, GF_USAGE, "--%s '%s': %s%s%s%s", param->name, text, type->must, gap,
                       values, type->rest);
    }
    value.text = strdup(text);
    if (!value.text)
        return gf_fail(error, GF_FAILED, "--%s: out of memory for its value", param->name);
    free(settings->values[i].text);
    settings->values[i] = value;
    return GF_OK;
}

gf_settings *gf_settings_new(const gf_param *params, size_t count) {
    GF_FLOAT_ENV_SCOPE();
    gf_settings *settings = settings_alloc(params, count);
    for (size_t i = 0; settings && i < count; i++)
        if (params[i].fallback && settings_assign(settings, i, params[i].fallback, NULL)) {
            gf_settings_free(settings);
            return NULL;
        }
    return settings;
}

gf_settings *gf_settings_copy(const gf_settings *settings) {
    gf_settings *copy = settings_alloc(settings->params, settings->count);
    for (size_t i = 0; copy && i < settings->count; i++) {
        const char *text = settings->values[i].text;
        copy->values[i] = settings->values[i];
        copy->values[i].text = text ? strdup(text) : NULL;
        if (text && !copy->values[i].text) {
            gf_settings_free(copy);
            return NULL;
        }
    }
    return copy;
}

bool gf_settings_same(const gf_settings *a, const gf_settings *b) {
    if (a->params != b->params)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const gf_setting *x = &a->values[i], *y = &b->values[i];
        if (x->given != y->given || !x->text != !y->text ||
            (x->text && strcmp(x->text, y->text) != 0))
            return false;
    }
    return true;
}

void gf_settings_free(gf_settings *settings) {
    if (!settings)
        return;
    for (size_t i = 0; i < settings->count; i++)
        free(settings->values[i].text);
    free(settings);
}

gf_status gf_settings_set(gf_settings *settings, const char *name, const char *text,
                          gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const size_t i = settings_find(settings, name);
    if (i == settings->count)
        return gf_fail(error, GF_USAGE, "--%s: no such option", name);
    const gf_status status = settings_assign(settings, i, text ? text : "", error);
    settings->values[i].given = settings->values[i].given || !status;
    return status;
}

/* Return a zero value for an unknown name or a wrong type: both are caller errors. */
static const gf_setting *settings_lookup(const gf_settings *settings, const char *name,
                                         unsigned types) {
    static const gf_setting nothing;
    const size_t i = settings_find(settings, name);
    const bool found = i < settings->count && types >> settings->params[i].type & 1u;
    return found ? &settings->values[i] : &nothing;
}

bool gf_settings_given(const gf_settings *settings, const char *name) {
    return settings_lookup(settings, name, ~0u)->given;
}

bool gf_settings_flag(const gf_settings *settings, const char *name) {
    return settings_lookup(settings, name, 1u << GF_PARAM_FLAG)->as.flag;
}

int64_t gf_settings_int(const gf_settings *settings, const char *name) {
    return settings_lookup(settings, name, 1u << GF_PARAM_INT)->as.integer;
}

uint64_t gf_settings_size(const gf_settings *settings, const char *name) {
    return settings_lookup(settings, name, 1u << GF_PARAM_SIZE)->as.bits;
}

float gf_settings_float(const gf_settings *settings, const char *name) {
    return settings_lookup(settings, name, 1u << GF_PARAM_FLOAT)->as.real;
}

size_t gf_settings_choice(const gf_settings *settings, const char *name) {
    return (size_t)settings_lookup(settings, name, 1u << GF_PARAM_CHOICE)->as.bits;
}

double gf_settings_number(const gf_settings *settings, const char *name) {
    return settings_lookup(settings, name, 1u << GF_PARAM_FLOAT | 1u << GF_PARAM_CHOICE)->number;
}

void gf_settings_pair(const gf_settings *settings, const char *name, double pair[2]) {
    const gf_setting *value =
        settings_lookup(settings, name, 1u << GF_PARAM_PAIR | 1u << GF_PARAM_INT_PAIR);
    memcpy(pair, value->as.range, sizeof value->as.range);
}

uint64_t gf_settings_list(const gf_settings *settings, const char *name) {
    return settings_lookup(settings, name, 1u << GF_PARAM_LIST)->as.bits;
}

bool gf_settings_range(const gf_settings *settings, const char *name, double *lo, double *hi) {
    const gf_setting *value = settings_lookup(settings, name, 1u << GF_PARAM_RANGE);
    *lo = value->as.range[0];
    *hi = value->as.range[1];
    return *lo < *hi;
}

const char *gf_settings_text(const gf_settings *settings, const char *name) {
    return settings_lookup(settings, name, ~0u)->text;
}

gf_status gf_settings_apply_case(gf_settings *settings, const char *text, gf_error *error) {
    char copy[1024], *rest = copy, *name;
    gf_status status = GF_OK;
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return gf_fail(error, GF_USAGE, "%s: the case is too long", text);
    while (!status && (name = strtok_r(rest, " ", &rest))) {
        char *value = strchr(name, '=');
        if (value)
            *value++ = 0;
        status = gf_settings_set(settings, name, value, error);
    }
    return status;
}
