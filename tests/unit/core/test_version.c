/* Versions: the header's numbers, its text and the library agree. Programs and libraries of
 * different versions are compatible within a series. */
#include "testing.h"

#include "core/machine.h"
#include "gpufilter.h"

#if GF_VERSION < GF_VERSION_NUMBER(0, 1, 0) || GF_VERSION >= GF_VERSION_NUMBER(100, 0, 0)
#error "GF_VERSION is a number that #if can compare"
#endif

/* Minor and patch versions have two decimal digits each. */
_Static_assert(GF_VERSION_MINOR < 100 && GF_VERSION_PATCH < 100, "GF_VERSION has two digits each");

TEST(versions_agree) {
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", GF_VERSION_MAJOR, GF_VERSION_MINOR, GF_VERSION_PATCH);
    assert_string_equal(GF_VERSION_STRING, text);
    assert_string_equal(gf_version(), text);
    assert_int_equal(GF_VERSION,
                     GF_VERSION / 10000 * 10000 + GF_VERSION_MINOR * 100 + GF_VERSION_PATCH);
    assert_int_equal(GF_VERSION / 10000, GF_VERSION_MAJOR);
    assert_true(gf_version_fits(GF_VERSION));
    assert_false(gf_version_fits(GF_VERSION + 100));
    assert_false(gf_version_fits(GF_VERSION + 10000));
}

TEST(accepts_programs_of_its_series) {
    static const struct {
        int running, header;
        bool compatible;
    } examples[] = {
        {GF_VERSION_NUMBER(0, 1, 0), GF_VERSION_NUMBER(0, 1, 0), true},
        {GF_VERSION_NUMBER(0, 1, 0), GF_VERSION_NUMBER(0, 1, 7), true},
        {GF_VERSION_NUMBER(0, 1, 7), GF_VERSION_NUMBER(0, 1, 0), true},
        {GF_VERSION_NUMBER(0, 2, 0), GF_VERSION_NUMBER(0, 1, 99), false},
        {GF_VERSION_NUMBER(0, 1, 0), GF_VERSION_NUMBER(0, 2, 0), false},
        {GF_VERSION_NUMBER(1, 0, 0), GF_VERSION_NUMBER(0, 99, 99), false},
        {GF_VERSION_NUMBER(0, 99, 0), GF_VERSION_NUMBER(1, 0, 0), false},
        {GF_VERSION_NUMBER(1, 3, 0), GF_VERSION_NUMBER(1, 0, 5), true},
        {GF_VERSION_NUMBER(1, 3, 0), GF_VERSION_NUMBER(1, 3, 1), true},
        {GF_VERSION_NUMBER(1, 3, 9), GF_VERSION_NUMBER(1, 4, 0), false},
        {GF_VERSION_NUMBER(2, 0, 0), GF_VERSION_NUMBER(1, 4, 0), false},
    };
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        assert_int_equal(gf_version_compatible(examples[i].running, examples[i].header),
                         examples[i].compatible);
}

int main(void) {
    return test_main(NULL);
}
