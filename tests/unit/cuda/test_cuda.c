/* The CUDA functions alone, on painted device memory. Strips from the middle of an image are exact
 * with only the rows of their halo, and nothing is written outside the output rows. */

#include "job.h"
#include "strip.h"

static bool strip_on_device(void *context, const gf_filter *filter, const char *text,
                            uint64_t seed) {
    test_random random = test_seeded(seed);
    return test_strip_on_device(filter, text, seed, test_format(&random), false, 64);
}

TEST(strips_stay_inside) {
    test_needs_gpu();
    test_each_case(strip_on_device, NULL, test_rounds(12), true);
}

/* Every block of the general kernel processes several pieces and alternates between its two
 * buffers. Small images do not reach this path. */
TEST(blocks_work_through_many_pieces) {
    test_needs_gpu();
    static const char *const cases[] = {"radius=8", "radius=40 keep-brightness",
                                        "tile=100 radius=2", "axis=y radius=5",
                                        "axis=xy radius=20"};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        gf_format format = {1500 + 77 * c, 1600, (uint32_t)(1 + c % 4), (gf_type)(c % 3),
                            ((uint32_t)(1 + c % 4)) % 2 == 0};
        assert_true(
            test_strip_on_device(gf_filter_find("smooth"), cases[c], 12345 + c, format, true, 64));
    }
}

/* Images that overflow counters that are too narrow, and images higher than a grid. */
static const struct {
    const char *filter, *parameters;
    gf_format format;
} wide_images[] = {
    {"smooth", "", {3000017, 3, 1, GF_U8, false}},
    {"smooth", "keep-brightness", {1000003, 2, 3, GF_U16, false}},
    {"smooth", "radius=100", {2000001, 2, 1, GF_U16, false}},
    {"smooth", "tile=1000 radius=9", {700001, 2, 4, GF_U8, true}},
    {"smooth", "axis=xy radius=3", {400009, 9, 2, GF_F32, true}},
    {"smooth", "", {5, 70001, 3, GF_U8, false}},
    {"smooth", "axis=y", {3, 200003, 1, GF_U16, false}},
    {"smooth", "axis=xy radius=30", {7, 131101, 1, GF_U8, false}},
    /* Rows that fill a warp, and many of them. */
    {"smooth", "", {401, 20011, 1, GF_F32, false}},
    {"smooth", "radius=1", {203, 15013, 2, GF_F32, true}},
    {"smooth", "", {131, 20011, 3, GF_F32, false}},
    {"smooth", "radius=3", {129, 15013, 4, GF_F32, true}},
    {"smooth", "", {777, 20011, 1, GF_U16, false}},
    {"smooth", "radius=3 keep-brightness", {513, 15013, 2, GF_U16, true}},
    {"smooth", "stages=enhance,blur", {257, 20011, 3, GF_U16, false}},
    {"smooth", "radius=1", {257, 15013, 4, GF_U16, true}},
    /* u8 windows in several rows and columns of tiles, inside and at the edges. */
    {"gaussian", "", {1201, 330, 3, GF_U8, false}},
    {"gaussian", "edge=constant:7", {401, 330, 4, GF_U8, true}},
    {"gaussian", "sigma=2", {701, 330, 4, GF_U8, true}},
    {"gaussian", "sigma=5", {1201, 330, 3, GF_U8, false}},
    {"gaussian", "sigma=10 truncate=2", {701, 330, 4, GF_U8, false}},
    {"box", "radius=2", {3001, 330, 1, GF_U8, false}},
    {"box", "radius=1,4 edge=reflect", {1201, 330, 3, GF_U8, false}},
    {"smooth", "axis=xy radius=3", {1201, 330, 3, GF_U8, false}},
    {"smooth", "axis=y", {1201, 330, 3, GF_U8, false}},
    {"smooth", "axis=y radius=3", {701, 330, 4, GF_U8, true}},
    {"smooth", "axis=y stages=blur", {130, 1100, 2, GF_U8, true}},
    {"normalize", "", {1048577, 3, 4, GF_U16, true}},
    {"normalize", "", {3, 300007, 2, GF_F32, true}},
    {"normalize", "", {6007, 1100, 3, GF_U8, false}}, /* one block per row */
    {"normalize", "", {1031, 4300, 2, GF_U16, true}},
    {"axis-sum", "", {1048577, 3, 1, GF_U8, false}},
    {"axis-sum", "", {1048577, 2, 3, GF_F32, false}},
    {"axis-sum", "", {2, 300007, 3, GF_U16, false}},
    {"axis-sum", "", {6007, 1100, 3, GF_U8, false}}, /* one block per row */
    {"axis-sum", "", {3001, 4300, 1, GF_U8, false}}, /* half a warp per row */
    {"axis-sum", "", {1031, 4300, 4, GF_U16, false}},
    {"axis-sum", "", {5003, 70, 4, GF_F32, false}},
    {"axis-sum", "", {1999, 70, 1, GF_F32, false}},         /* one warp per row */
    {"axis-sum", "", {5003, 1100, 1, GF_F32, false}},       /* many rows, one block per row */
    {"axis-sum", "axis=y", {18001, 300, 1, GF_F32, false}}, /* strips of four warps */
    {"axis-sum", "axis=y", {1048577, 3, 3, GF_U16, false}},
    {"axis-sum", "axis=y", {5003, 5001, 1, GF_U8, false}}, /* several loads per thread */
    /* One row less than two blocks, or one more. */
    {"axis-sum", "axis=y", {97, 127, 3, GF_U8, false}},
    {"axis-sum", "axis=y", {31, 129, 1, GF_U16, false}},
    {"axis-sum", "axis=y", {3, 300007, 2, GF_U8, true}},
    {"axis-sum", "axis=y", {3, 300007, 1, GF_F32, false}},
    {"hist", "", {1048577, 3, 1, GF_U8, false}},
    {"hist", "bins=65536 channel=all", {262145, 3, 3, GF_U16, false}},
    {"hist", "bins=8 extract=3", {1048577, 3, 1, GF_U8, false}},
    {"hist", "bins=8 extract=3 channel=all mask=-", {3, 300007, 3, GF_U8, false}},
    {"hist", "bins=9 extract=0,3,8", {1048577, 2, 1, GF_F32, false}},
    {"hist", "bins=4 per-row", {3, 300007, 1, GF_U8, false}},
    {"hist", "channel=all", {400001, 5, 3, GF_U8, false}},
    {"hist", "bins=16 channel=luma", {300007, 5, 4, GF_U8, true}},
    {"hist", "bins=65536", {3000017, 3, 1, GF_U16, false}},
    {"hist", "bins=60000 channel=all", {300007, 3, 4, GF_F32, true}},
    {"hist", "range=0.1,0.7 bins=1000 extract=300", {1000003, 3, 1, GF_F32, false}},
    {"hist", "bins=65536 extract=5,1000,40000", {700001, 3, 3, GF_U16, false}},
    {"hist", "bins=9 extract=0,3,8 channel=all", {400001, 3, 4, GF_U8, true}},
    {"hist", "bins=60 extract=all", {300007, 3, 3, GF_U16, false}},
    {"hist", "bins=200 extract=all", {300007, 3, 1, GF_U16, false}},
    {"hist", "bins=8 extract=3", {1, 300007, 1, GF_U8, false}},
    {"hist", "bins=8 extract=3", {17, 100003, 1, GF_U16, false}},
    {"hist", "per-row", {1048577, 3, 1, GF_U8, false}},
    {"hist", "bins=60000 per-row channel=all", {70001, 3, 3, GF_U16, false}},
    {"hist", "per-row", {40001, 7, 1, GF_U8, false}}, /* two blocks per row */
    {"hist", "bins=100 per-row", {20001, 5, 1, GF_U16, false}},
    {"hist", "bins=64 extract=all", {300007, 3, 1, GF_U8, false}},
    {"hist", "bins=9 range=-1,1 extract=0", {400001, 3, 1, GF_F32, false}},
    {"hist", "bins=9 statistics", {3000017, 2, 1, GF_U8, false}},
    {"hist", "statistics", {400001, 3, 3, GF_U16, false}},
    {"hist", "statistics", {1048577, 3, 3, GF_F32, false}},
    {"hist", "bins=8 statistics channel=all", {3, 300007, 4, GF_F32, true}},
    {"hist", "bins=8 statistics per-row", {3001, 1001, 1, GF_F32, false}},
    {"dot", "", {1048577, 2, 3, GF_U16, false}},
    {"dot", "", {3, 300007, 1, GF_F32, false}},
    {"dot", "", {1048577, 3, 1, GF_U8, false}},
    {"dot", "", {1031, 4300, 4, GF_U8, false}},
    {"dot", "", {6007, 1100, 3, GF_U8, false}},
    {"dot", "", {5003, 70, 3, GF_F32, false}},
    {"dot", "", {1999, 70, 1, GF_F32, false}},
    {"dot", "", {1031, 600, 4, GF_F32, false}},
    {"compare", "diff=-", {1048577, 3, 1, GF_F32, false}},
    {"compare", "", {6007, 1100, 3, GF_U8, false}},
    {"compare", "", {1031, 4300, 1, GF_U16, false}},
    {"compare", "diff=-", {3, 300007, 4, GF_U8, true}},
    {"resize", "exact=1000x2", {3000017, 3, 1, GF_U8, false}},
    {"resize", "exact=400009x5", {4003, 3, 3, GF_U16, false}},
    {"resize", "exact=2x1000", {3, 300007, 3, GF_U8, false}},
    {"resize", "exact=9x200003", {7, 1009, 1, GF_F32, false}}, /* more rows than a grid */
    {"resize", "scale=0.25 kernel=lanczos3", {2401, 1330, 3, GF_U8, false}},
    {"resize", "exact=224x224", {1921, 1080, 3, GF_U8, false}},
    {"resize", "scale=0.5", {1201, 330, 4, GF_U8, true}},
    {"resize", "scale=2 kernel=bilinear", {1201, 330, 3, GF_U16, false}},
};

TEST(wide_and_tall) {
    test_needs_gpu();
    for (size_t i = 0; i < sizeof wide_images / sizeof wide_images[0]; i++) {
        const gf_filter *filter = gf_filter_find(wide_images[i].filter);
        const uint64_t rounds = filter->stages ? 4 : 1; /* each of a random stage */
        for (uint64_t k = 0; k < rounds; k++)
            assert_true(test_strip_on_device(filter, wide_images[i].parameters, 777 + i + 1000 * k,
                                             wide_images[i].format, true, 64));
    }
}

static bool compare_engines(void *engines, const gf_filter *filter, const char *text,
                            uint64_t seed) {
    gf_engine *const *golden_and_cuda = engines;
    test_random random = test_seeded(seed);
    test_job job;
    if (!test_job_new(&job, filter, text, test_format(&random), NULL))
        return false;
    test_job_fill(&job, &random);
    test_outcome want = test_run(&job, golden_and_cuda[0], 0);
    test_outcome got = test_run(&job, golden_and_cuda[1], 0);
    assert_string_equal(got.report.backend, "cuda");
    test_check_outcome(&want, &got, text);
    test_outcome_free(&want);
    test_outcome_free(&got);
    test_job_free(&job);
    return true;
}

/* One engine with all devices runs every case of every filter. Buffers are reused and grow, states
 * are reset, and several devices share each image. */
TEST(one_engine_many_images) {
    test_needs_gpu();
    const gf_engine_options options = {.backend = "cuda", .devices = "all", .rows_per_strip = 5};
    gf_engine *engines[2] = {test_engine(&(gf_engine_options){.backend = "golden"}),
                             test_engine(&options)};
    test_each_case(compare_engines, engines, 3, true);
    gf_engine_close(engines[0]);
    gf_engine_close(engines[1]);
}

/* Without a device, requesting one fails with a reason. No other backend replaces it. */
TEST(no_silent_substitute) {
    if (test_has_cuda())
        test_skip("there is a device");
    gf_engine_options options = {.backend = "cuda"};
    gf_engine *engine = NULL;
    assert_int_equal(gf_engine_open(&options, &engine, &why), GF_NO_BACKEND);
    assert_null(engine);
    assert_non_null(strstr(why.message, "cuda: "));
}

int main(void) {
    return test_main(NULL);
}
