/* Numbers as text: exact, and as short as that allows. */
#define _GNU_SOURCE /* newlocale, through c_locale.h */

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "c_locale.h"
#include "result.h"

static void format_wide(uint64_t high, uint64_t low, char *text, size_t size) {
    char digits[48];
    size_t at = sizeof digits;
    gf_u128 x = (gf_u128)high << 64 | low;
    digits[--at] = 0;
    do {
        digits[--at] = (char)('0' + (int)(x % 10));
        x /= 10;
    } while (x);
    snprintf(text, size, "%s", digits + at);
}

/* The fewest digits that read back as the same number. */
static void format_real(double x, bool is_float, char *text, size_t size) {
    if (isnan(x) || isinf(x)) {
        snprintf(text, size, "%s", isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
        return;
    }
    gf_c_locale scope = gf_c_locale_enter();
    /* Normal numbers give back any decimal of so many digits: fewer are found as zeros in the end.
     */
    const bool normal = fabs(x) >= (is_float ? (double)FLT_MIN : DBL_MIN);
    int digits = !normal ? 1 : is_float ? FLT_DIG : DBL_DIG;
    const int first = digits;
    for (; digits <= 17; digits++) {
        snprintf(text, size, "%.*e", digits - 1, x);
        if (is_float ? strtof(text, NULL) == (float)x : strtod(text, NULL) == x)
            break;
    }
    if (normal && digits == first) {
        const char *end = strchr(text, 'e');
        while (digits > 1 && *--end == '0')
            digits--;
        snprintf(text, size, "%.*e", digits - 1, x);
    }
    /* The same digits without an exponent, where that is readable. */
    const char *e = strchr(text, 'e');
    int exponent = e ? (int)strtol(e + 1, NULL, 10) : 0;
    if (x == 0 || (exponent >= -5 && exponent < 17)) {
        int decimals = digits - 1 - exponent;
        snprintf(text, size, "%.*f", decimals > 0 ? decimals : 0, x);
    }
    gf_c_locale_leave(&scope);
}

void gf_value_format(const gf_value *value, char *text, size_t size) {
    switch (value->type) {
    case GF_VALUE_UINT:
        format_wide(value->high, value->low, text, size);
        break;
    case GF_VALUE_FLOAT:
    case GF_VALUE_DOUBLE:
        format_real(value->real, value->type == GF_VALUE_FLOAT, text, size);
        break;
    case GF_VALUE_TEXT:
        snprintf(text, size, "%s", value->text);
        break;
    }
}
