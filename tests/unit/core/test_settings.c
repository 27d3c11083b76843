/* Parsing of settings: accepted text, rejected text and error messages. */

#include "testing.h"

static const char *const colours[] = {"red", "green", "blue", NULL};
static const char *const edges[] = {"mirror", "constant:V", NULL};

static const gf_param params[] = {
    {.name = "flag", .type = GF_PARAM_FLAG, .help = "h"},
    {.name = "count", .type = GF_PARAM_INT, .fallback = "3", .min = 0, .max = 10},
    {.name = "signed", .type = GF_PARAM_INT, .min = -5, .max = 5},
    {.name = "ratio", .type = GF_PARAM_FLOAT, .fallback = "0.1", .min = 0, .max = 2},
    {.name = "colour", .type = GF_PARAM_CHOICE, .fallback = "green", .choices = colours},
    {.name = "some", .type = GF_PARAM_LIST, .fallback = "red,blue", .choices = colours},
    {.name = "size", .type = GF_PARAM_SIZE, .fallback = "2K", .min = 1, .max = 1e18},
    {.name = "text", .type = GF_PARAM_TEXT},
    {.name = "sigma", .type = GF_PARAM_PAIR, .fallback = "1", .min = 0.2, .max = 120},
    {.name = "radius", .type = GF_PARAM_INT_PAIR, .fallback = "2,3", .min = 1, .max = 511},
    {.name = "edge", .type = GF_PARAM_CHOICE, .fallback = "mirror", .choices = edges},
};
#define COUNT (sizeof params / sizeof params[0])

static void assert_pair(const gf_settings *settings, const char *name, double x, double y) {
    double pair[2] = {-1, -1};
    gf_settings_pair(settings, name, pair);
    if (pair[0] != x || pair[1] != y)
        fail_msg("--%s %s: %g,%g", name, gf_settings_text(settings, name), pair[0], pair[1]);
}

TEST(defaults_are_parsed_but_not_given) {
    AUTO(settings) gf_settings *s = gf_settings_new(params, COUNT);
    assert_non_null(s);
    assert_false(gf_settings_flag(s, "flag"));
    assert_int_equal(gf_settings_int(s, "count"), 3);
    assert_true(gf_settings_float(s, "ratio") == 0.1f);
    assert_int_equal(gf_settings_choice(s, "colour"), 1);
    assert_int_equal(gf_settings_list(s, "some"), 5);
    assert_int_equal(gf_settings_size(s, "size"), 2048);
    assert_null(gf_settings_text(s, "text"));
    assert_pair(s, "sigma", 1, 1);
    assert_pair(s, "radius", 2, 3);
    assert_int_equal(gf_settings_choice(s, "edge"), 0);
    assert_true(gf_settings_number(s, "edge") == 0);
    for (size_t i = 0; i < COUNT; i++)
        assert_false(gf_settings_given(s, params[i].name));
}

TEST(valid_text_is_parsed) {
    AUTO(settings) gf_settings *s = gf_settings_new(params, COUNT);
    static const char *const given[][2] = {{"flag", ""},      {"count", "10"},   {"signed", "-5"},
                                           {"ratio", "1e-1"}, {"colour", "red"}, {"some", "blue"},
                                           {"size", "3m"},    {"text", "a, b"},  {"sigma", "0.2"},
                                           {"radius", "511"}, {"edge", "mirror"}};
    for (size_t i = 0; i < COUNT; i++) {
        assert_ok(gf_settings_set(s, given[i][0], given[i][1], NULL));
        assert_true(gf_settings_given(s, given[i][0]));
    }
    assert_true(gf_settings_flag(s, "flag"));
    assert_int_equal(gf_settings_int(s, "count"), 10);
    assert_int_equal(gf_settings_int(s, "signed"), -5);
    assert_true(gf_settings_float(s, "ratio") == 0.1f);
    assert_int_equal(gf_settings_choice(s, "colour"), 0);
    assert_int_equal(gf_settings_list(s, "some"), 4);
    assert_int_equal(gf_settings_size(s, "size"), 3 << 20);
    assert_string_equal(gf_settings_text(s, "text"), "a, b");
    assert_pair(s, "sigma", 0.2, 0.2);
    assert_pair(s, "radius", 511, 511);
    assert_int_equal(gf_settings_choice(s, "edge"), 0);
}

/* One number is that of both axes; of two, one may be 0. Numbers are parsed as binary64. */
TEST(pairs_and_choices_with_a_number) {
    AUTO(settings) gf_settings *s = gf_settings_new(params, COUNT);
    static const struct {
        const char *name, *text;
        double x, y;
    } pairs[] = {{"sigma", "120", 120, 120}, {"sigma", "2,0.3", 2, 0.3},
                 {"sigma", "0,1e1", 0, 10},  {"sigma", "+.5,0.0", 0.5, 0},
                 {"radius", "7", 7, 7},      {"radius", "0,1", 0, 1},
                 {"radius", "9,0", 9, 0}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_ok(gf_settings_set(s, pairs[i].name, pairs[i].text, &why));
        assert_pair(s, pairs[i].name, pairs[i].x, pairs[i].y);
    }
    assert_ok(gf_settings_set(s, "edge", "constant:-2.5e1", &why));
    assert_ok(gf_settings_set(s, "edge", "constant:0.1", &why));
    assert_true(gf_settings_choice(s, "edge") == 1 && gf_settings_number(s, "edge") == 0.1);
    assert_ok(gf_settings_set(s, "edge", "mirror", &why));
    assert_true(gf_settings_choice(s, "edge") == 0 && gf_settings_number(s, "edge") == 0);
    assert_pair(s, "ratio", 0, 0); /* another type */
    assert_true(gf_settings_number(s, "colour") == 0);
}

/* 1 + 2^-24 + 2^-54 is just above a tie of binary32. Rounding to double first yields the tie and
 * then 1. A single rounding yields 1 + 2^-23. */
TEST(floats_are_rounded_once) {
    AUTO(settings) gf_settings *s = gf_settings_new(params, COUNT);
    const char *above_tie = "1.00000005960464483090229800154202";
    assert_ok(gf_settings_set(s, "ratio", above_tie, NULL));
    assert_true(gf_settings_float(s, "ratio") == 0x1.000002p0f);
}

TEST(invalid_text_is_rejected_and_changes_nothing) {
    AUTO(settings) gf_settings *s = gf_settings_new(params, COUNT);
    static const char *const invalid[][2] = {
        {"flag", "yes"},    {"count", ""},        {"count", "-1"},
        {"count", "11"},    {"count", "3x"},      {"count", " 3"},
        {"count", "0x3"},   {"count", "3.5"},     {"count", "99999999999999999999"},
        {"ratio", ""},      {"ratio", "nan"},     {"ratio", "inf"},
        {"ratio", "0x1p0"}, {"ratio", "2.1"},     {"ratio", "-0.5"},
        {"ratio", "1,5"},   {"ratio", "1e99"},    {"colour", "Red"},
        {"colour", ""},     {"colour", "re"},     {"some", ""},
        {"some", "red,"},   {"some", "blue,red"}, {"some", "red,red"},
        {"some", "pink"},   {"size", "-1"},       {"size", "K"},
        {"size", "1KB"},    {"size", "0"},        {"size", "99999999T"},
        {"absent", "1"}};
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++) {
        if (gf_settings_set(s, invalid[i][0], invalid[i][1], &why) != GF_USAGE)
            fail_msg("--%s '%s' was accepted", invalid[i][0], invalid[i][1]);
        assert_int_equal(why.status, GF_USAGE);
        assert_int_equal(strncmp(why.message, "--", 2), 0);
        assert_null(strchr(why.message, '\n'));
    }
    assert_int_equal(gf_settings_int(s, "count"), 3);
    assert_int_equal(gf_settings_size(s, "size"), 2048);
    assert_false(gf_settings_given(s, "ratio"));
}

static void assert_rejected(gf_settings *settings, const char *name, const char *const *texts) {
    for (; *texts; texts++)
        if (gf_settings_set(settings, name, *texts, &why) != GF_USAGE)
            fail_msg("--%s '%s' was accepted", name, *texts);
}

TEST(invalid_pairs_and_numbers_of_choices_are_rejected) {
    AUTO(settings) gf_settings *s = gf_settings_new(params, COUNT);
    assert_rejected(s, "sigma", (const char *const[]){"",      "0",   "0,0",  "0.1",  "1,0.1",
                                                      "0.1,1", "121", "-1,1", "1,",   "1,121",
                                                      "1,2,3", "1;2", "nan",  ",1",   "0x1",
                                                      "1,inf", " 1",  "1, 2", "-0,0", NULL});
    assert_rejected(s, "radius", (const char *const[]){"1.5", "1,2.0", "1e1", "512", "-1,1", NULL});
    assert_rejected(s, "edge",
                    (const char *const[]){"constant", "const:1", "constant:", "constant:V",
                                          "constant:1x", "constant:nan", "constant:1e999",
                                          "mirror:1", ":1", NULL});
    assert_pair(s, "sigma", 1, 1);
    assert_pair(s, "radius", 2, 3);
    assert_int_equal(gf_settings_choice(s, "edge"), 0);
}

TEST(messages_name_the_range) {
    AUTO(settings) gf_settings *s = gf_settings_new(params, COUNT);
    gf_settings_set(s, "count", "11", &why);
    assert_string_equal(why.message, "--count '11': must be an integer from 0 to 10");
    gf_settings_set(s, "colour", "pink", &why);
    assert_string_equal(why.message, "--colour 'pink': must be red, green or blue");
    gf_settings_set(s, "sigma", "0.1", &why);
    assert_string_equal(
        why.message,
        "--sigma '0.1': must be a number from 0.2 to 120, or two as X,Y, of which one may be 0");
    gf_settings_set(s, "radius", "1.5", &why);
    assert_string_equal(
        why.message,
        "--radius '1.5': must be an integer from 1 to 511, or two as X,Y, of which one may be 0");
    gf_settings_set(s, "edge", "constant", &why);
    assert_string_equal(why.message, "--edge 'constant': must be mirror or constant:V");
    gf_settings_set(s, "ratio", "\n\033[2J", &why);
    assert_string_equal(why.message, "--ratio '??[2J': must be a number from 0 to 2");
}

/* Check properties of the descriptors on which the parser, the help and the tests rely. */
TEST(descriptors_are_consistent) {
    for (size_t f = 0; f < test_filter_count(); f++) {
        const gf_filter *filter = gf_filter_at(f);
        assert_ptr_equal(gf_filter_find(filter->info.name), filter);
        for (size_t i = 0; i < filter->info.param_count; i++) {
            const gf_param *p = &filter->info.params[i];
            assert_non_null(p->help);
            assert_true(p->type == GF_PARAM_FLAG || p->metavar);
            for (size_t k = 0; k < i; k++) {
                assert_string_not_equal(p->name, filter->info.params[k].name);
                assert_true(!p->letter || p->letter != filter->info.params[k].letter);
            }
        }
        for (size_t c = 0; filter->info.cases[c]; c++)
            gf_settings_free(test_settings(filter, filter->info.cases[c]));
    }
    assert_null(gf_filter_at(test_filter_count()));
    assert_null(gf_filter_find("no such filter"));
}

/* ---- effective values ------------------------------------------------------------------------ */

/* Derived values are set, all others stay, and the original settings do not change. */
TEST(derived_values_are_set) {
    static const struct {
        const char *filter, *text;
        gf_type type;
        const char *name, *value;
    } cases[] = {{"smooth", "", GF_U8, "gain", "1.1"},
                 {"smooth", "keep-brightness", GF_U8, "gain", "1"},
                 {"smooth", "gain=1.25 radius=9", GF_U8, "gain", "1.25"},
                 {"smooth", "gain=1.25 radius=9", GF_U8, "radius", "9"},
                 {"smooth", "stages=blur gain=3", GF_U8, "gain", "1"},
                 {"hist", "", GF_U8, "range", "0,255"},
                 {"hist", "", GF_U16, "range", "0,65535"},
                 {"hist", "", GF_F32, "range", "0,1"},
                 {"hist", "range=-1,2.5", GF_F32, "range", "-1,2.5"},
                 {"hist", "", GF_U8, "channel", "luma"},
                 {"hist", "channel=all", GF_U8, "channel", "all"},
                 {"hist", "", GF_U8, "extract", NULL},
                 {"axis-sum", "axis=y", GF_U8, "axis", "y"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gf_filter *filter = gf_filter_find(cases[i].filter);
        const gf_format format = {5, 4, 3, cases[i].type, false};
        AUTO(settings) gf_settings *settings = test_settings(filter, cases[i].text), *effective;
        const char *before = gf_settings_text(settings, cases[i].name);
        assert_ok(test_effective(filter, settings, &format, &effective));
        const char *value = gf_settings_text(effective, cases[i].name);
        if (!cases[i].value)
            assert_null(value);
        else
            assert_string_equal(value, cases[i].value);
        assert_ptr_equal(gf_settings_text(settings, cases[i].name), before);
    }
}

TEST(effective_values_need_a_valid_format) {
    const gf_filter *hist = gf_filter_find("hist");
    const gf_format format = {5, 4, 1, GF_U8, false}, none = {0};
    gf_settings *settings = test_settings(hist, "channel=r"), *effective;
    assert_int_equal(test_effective(hist, settings, &format, &effective), GF_USAGE);
    assert_null(effective);
    assert_int_equal(test_effective(hist, settings, &none, &effective), GF_FAILED);
    assert_null(effective);
    gf_settings_free(settings);
}

int main(void) {
    return test_main(NULL);
}
