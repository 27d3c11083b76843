/* Positions of samples outside an image, and the values that --edge constant:V accepts. */

#include "testing.h"
#include "window/edge.h"

/* Walk |i| steps from position 0, to the right or to the left, as the drawings in edge.h show. */
static int walk(gf_edge_mode mode, int i, int n) {
    int at = 0, direction = i < 0 ? -1 : 1;
    for (int left = abs(i); left > 0; left--) {
        const bool inside = at + direction >= 0 && at + direction < n;
        if (!inside && mode == GF_EDGE_CONSTANT)
            return -1; /* does not come back */
        if (!inside && mode != GF_EDGE_REPLICATE)
            direction = -direction;
        if (inside || (mode == GF_EDGE_MIRROR && n > 1))
            at += direction;
    }
    return at;
}

TEST(positions_are_those_of_a_walk) {
    for (int mode = GF_EDGE_REPLICATE; mode <= GF_EDGE_CONSTANT; mode++)
        for (int n = 1; n <= 9; n++)
            for (int i = -30; i <= 30; i++)
                if (gf_edge_index((gf_edge_mode)mode, i, n) != walk((gf_edge_mode)mode, i, n))
                    fail_msg("%s: position %d of %d samples: %d, want %d", gf_edge_names[mode], i,
                             n, (int)gf_edge_index((gf_edge_mode)mode, i, n),
                             walk((gf_edge_mode)mode, i, n));
}

TEST(drawn_continuations) {
    static const char *const drawn[] = {[GF_EDGE_REPLICATE] =
                                            "aaaaaa"
                                            "abcd"
                                            "dddddd",
                                        [GF_EDGE_REFLECT] =
                                            "cddcba"
                                            "abcd"
                                            "dcbaab",
                                        [GF_EDGE_MIRROR] =
                                            "abcdcb"
                                            "abcd"
                                            "cbabcd",
                                        [GF_EDGE_CONSTANT] =
                                            "vvvvvv"
                                            "abcd"
                                            "vvvvvv"};
    for (int mode = GF_EDGE_REPLICATE; mode <= GF_EDGE_CONSTANT; mode++)
        for (int i = -6; i < 10; i++)
            assert_int_equal("vabcd"[1 + gf_edge_index((gf_edge_mode)mode, i, 4)],
                             drawn[mode][i + 6]);
    /* One sample, and positions far outside. */
    assert_int_equal(gf_edge_index(GF_EDGE_MIRROR, -511, 1), 0);
    assert_int_equal(gf_edge_index(GF_EDGE_REFLECT, 511, 1), 0);
    assert_int_equal(gf_edge_index(GF_EDGE_MIRROR, INT64_C(6000000000001), 4), 1);
    assert_int_equal(gf_edge_index(GF_EDGE_REFLECT, INT64_C(-8000000000001), 4), 0);
}

TEST(values_are_samples_of_the_image) {
    static const struct {
        const char *text, *error; /* NULL: accepted */
        gf_type type;
    } cases[] = {
        {"edge=constant:255", NULL, GF_U8},
        {"edge=constant:65535", NULL, GF_U16},
        {"edge=constant:-3.5e38", "--edge 'constant:-3.5e+38': the value must be finite", GF_F32},
        {"edge=constant:-2.5", NULL, GF_F32},
        {"edge=constant:256", "an integer from 0 to 255, as the samples", GF_U8},
        {"edge=constant:65536", "an integer from 0 to 65535", GF_U16},
        {"edge=constant:-1", "an integer from 0 to 255", GF_U8},
        {"edge=constant:0.5", "an integer from 0 to 65535", GF_U16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO(settings) gf_settings *s = test_settings(gf_filter_find("box"), cases[i].text);
        gf_edge edge;
        if (cases[i].error)
            assert_error(gf_edge_read(s, cases[i].type, &edge, &why), GF_USAGE, cases[i].error);
        else
            assert_ok(gf_edge_read(s, cases[i].type, &edge, &why));
        assert_int_equal(edge.mode, GF_EDGE_CONSTANT);
    }
}

int main(void) {
    return test_main(NULL);
}
