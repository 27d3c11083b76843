/* Numbers as text: the fewest digits that read back as the same number, in a buffer of any size. */

#include <float.h>
#include <math.h>

#include "testing.h"

/* A buffer of any size receives truncated, NUL-terminated text. Bytes after it stay unchanged. */
TEST(truncates_values) {
    static const struct {
        gf_value value;
        const char *text;
    } examples[] = {
        {{.type = GF_VALUE_UINT, .low = UINT64_MAX, .high = UINT64_MAX},
         "340282366920938463463374607431768211455"},
        {{.type = GF_VALUE_UINT}, "0"},
        {{.type = GF_VALUE_DOUBLE, .real = -DBL_MAX}, "-1.7976931348623157e+308"},
        {{.type = GF_VALUE_DOUBLE, .real = 5e-324}, "5e-324"},
        {{.type = GF_VALUE_DOUBLE, .real = 12345678901234567.0}, "12345678901234568"},
        {{.type = GF_VALUE_FLOAT, .real = (double)0.1f}, "0.1"},
        {{.type = GF_VALUE_TEXT, .text = "channel"}, "channel"},
        {{.type = GF_VALUE_TEXT, .text = NULL}, ""},
    };
    char buffer[64];
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const size_t length = strlen(examples[i].text);
        for (size_t size = 0; size <= 48; size++) {
            const size_t kept = size == 0 ? 0 : length < size ? length : size - 1;
            memset(buffer, 0xa5, sizeof buffer);
            gf_value_format(&examples[i].value, buffer, size);
            assert_memory_equal(buffer, examples[i].text, kept);
            if (size > 0)
                assert_int_equal(buffer[kept], 0);
            for (size_t k = size; k < sizeof buffer; k++)
                assert_int_equal((unsigned char)buffer[k], 0xa5);
        }
    }
    gf_value_format(&examples[0].value, NULL, 0);
}

/* ---- binary32 -------------------------------------------------------------------------------- */

/* Format by the definition in the public header, digit by digit, with the C library. */
static void format_as_defined(float x, char text[64]) {
    int digits = 0;
    do {
        digits++;
        (void)snprintf(text, 64, "%.*e", digits - 1, (double)x);
    } while (strtof(text, NULL) != x);
    const int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (x == 0 || (exponent >= -5 && exponent < 17)) {
        const int decimals = digits - 1 - exponent;
        (void)snprintf(text, 64, "%.*f", decimals > 0 ? decimals : 0, (double)x);
    }
}

static void assert_as_defined(float x) {
    const gf_value value = {.type = GF_VALUE_FLOAT, .real = (double)x};
    char got[64], want[64];
    format_as_defined(x, want);
    gf_value_format(&value, got, sizeof got);
    assert_string_equal(got, want);
}

static float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Random bits, values of common magnitude, decimals with few digits, and their neighbours. */
TEST(floats_are_as_defined) {
    test_random random = {test_environment("GF_TEST_SEED", 1)};
    const uint64_t rounds = 40000;
    for (uint64_t i = 0; i < rounds; i++) {
        const uint32_t any = (uint32_t)test_next(&random);
        float x = i % 3 == 0   ? from_bits(any)
                  : i % 3 == 1 ? from_bits((any & 0x807fffff) | (105 + any % 47) << 23)
                               : (float)((double)(any % 20000000) / (any % 2 ? 1000 : 65536));
        if (!isfinite(x))
            continue;
        assert_as_defined(x);
        assert_as_defined(nextafterf(x, 0));
    }
}

TEST(powers_are_as_defined) {
    for (int e = -149; e <= 127; e++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const float x = ldexpf((float)sign, e);
            assert_as_defined(x);
            assert_as_defined(nextafterf(x, 0));
            if (e < 127)
                assert_as_defined(nextafterf(x, 2 * x));
        }
    for (int e = -44; e <= 38; e++) {
        char text[16];
        (void)snprintf(text, sizeof text, "1e%d", e);
        const float x = strtof(text, NULL);
        assert_as_defined(x);
        assert_as_defined(nextafterf(x, 0));
        assert_as_defined(nextafterf(x, FLT_MAX));
    }
    assert_as_defined(0.0f);
    assert_as_defined(-0.0f);
    assert_as_defined(FLT_MAX);
}

int main(void) {
    return test_main(NULL);
}
