/* Pipelines: parsing of text and words, canonical text, and error messages. */

#include "testing.h"

static gf_status parse(const char *text, gf_pipeline **pipeline) {
    return gf_pipeline_parse(text, NULL, NULL, pipeline, &why);
}

/* Check the canonical text of a text, and that it parses to itself. */
static void assert_text(const char *text, const char *expected) {
    gf_pipeline *one, *other;
    assert_ok(parse(text, &one));
    AUTO(free) char *lines = gf_pipeline_text(one, true), *joined = gf_pipeline_text(one, false);
    assert_string_equal(joined, expected);
    const char *const texts[] = {lines, joined};
    for (size_t i = 0; i < 2; i++) {
        assert_ok(parse(texts[i], &other));
        AUTO(free) char *again = gf_pipeline_text(other, false);
        assert_string_equal(again, expected);
        gf_pipeline_free(other);
    }
    gf_pipeline_free(one);
}

static void assert_wrong(const char *text, uint32_t step, const char *message) {
    gf_pipeline *pipeline = NULL;
    assert_error(parse(text, &pipeline), GF_USAGE, message);
    assert_int_equal(why.step, step);
    assert_null(pipeline);
}

TEST(options_have_four_forms) {
    static const char *const forms[] = {"sigma=2", "--sigma=2", "--sigma 2", "-s 2", "-s2"};
    assert_text("gaussian sigma=2 ! hist", "gaussian sigma=2 ! hist");
    for (size_t i = 1; i < sizeof forms / sizeof *forms; i++) {
        char text[64];
        snprintf(text, sizeof text, "gaussian %s ! hist", forms[i]);
        assert_text(text, "gaussian sigma=2 ! hist");
    }
    assert_text("smooth keep-brightness ! write a.png", "smooth keep-brightness ! write a.png");
    assert_text("smooth --keep-brightness ! write a.png", "smooth keep-brightness ! write a.png");
}

TEST(words_besides_filters) {
    assert_text("depth f32 ! write a", "depth f32 ! write a");
    assert_text("linear ! hist", "linear ! hist");
    assert_text("open radius=2 ! hist", "erode radius=2 ! dilate radius=2 ! hist");
    assert_text("close -r 2 ! hist", "dilate radius=2 ! erode radius=2 ! hist");
    assert_text("median ! hist ! input ! axis-sum", "median ! hist ! input ! axis-sum");
    assert_text("compare tolerance=1 b.png", "compare b.png tolerance=1");
    assert_text("dot 'a b.png'", "dot 'a b.png'");
    assert_text("hist ! write a.png depth=8 -c small strip",
                "hist ! write a.png compression=small strip depth=8");
    assert_text("hist ! write -", "hist ! write -");
    assert_text("hist ! write a=b.png", "hist ! write a=b.png");
}

TEST(text_is_cut_as_in_a_shell) {
    assert_text("  # a comment\n\nmedian radius=2 # another\n\thist\r\n", "median radius=2 ! hist");
    assert_text("! median !\n! hist !", "median ! hist");
    assert_text("hist ! write a#b.png", "hist ! write a#b.png");
    assert_text("hist ! write '#b.png'", "hist ! write '#b.png'");
    assert_text("hist ! write '!'", "hist ! write '!'");
    assert_text("hist ! write \"it's\"", "hist ! write 'it'\"'\"'s'");
    assert_text("convolve kernel='1 2 1' ! hist", "convolve kernel='1 2 1' ! hist");
    assert_text("convolve \"kernel=1 2 1\" ! hist", "convolve kernel='1 2 1' ! hist");
    assert_wrong("median 'x", 0, "a quote has no end");
}

TEST(steps_have_settings_paths_and_options) {
    const gf_write_options common = {.quality = 90, .strip = true};
    gf_pipeline *pipeline;
    uint32_t count;
    assert_ok(gf_pipeline_parse("compare b.png ! write a.jpg format=png ! input ! median radius=3",
                                "out.jpg", &common, &pipeline, &why));
    const gf_step *steps = gf_pipeline_steps(pipeline, &count);
    assert_int_equal(count, 4);
    assert_ptr_equal(steps[0].filter, gf_filter_find("compare"));
    assert_string_equal(steps[0].in_path, "b.png");
    assert_null(steps[1].filter);
    assert_string_equal(steps[1].out_path, "a.jpg");
    assert_string_equal(steps[1].write->format, "png");
    assert_int_equal(steps[1].write->quality, 90);
    assert_true(steps[1].write->strip);
    assert_int_equal(steps[2].from, GF_FROM_INPUT);
    assert_string_equal(gf_settings_text(steps[2].settings, "radius"), "3");
    assert_int_equal(steps[3].from, 0);
    assert_string_equal(steps[3].out_path, "out.jpg");
    assert_null(steps[3].write);
    gf_pipeline_free(pipeline);
    gf_pipeline_free(NULL);
}

TEST(words_are_not_cut) {
    static const char *const words[] = {"median", "radius=2", "!", "write", "a # b.png"};
    gf_pipeline *pipeline;
    assert_ok(gf_pipeline_parse_words(words, 5, NULL, NULL, &pipeline, &why));
    AUTO(free) char *text = gf_pipeline_text(pipeline, false);
    assert_string_equal(text, "median radius=2 ! write 'a # b.png'");
    gf_pipeline_free(pipeline);
    assert_ok(gf_pipeline_parse_words(words, 1, "a.png", NULL, &pipeline, &why));
    gf_pipeline_free(pipeline);
}

TEST(errors_name_the_step) {
    assert_wrong("", 0, "pipeline: no filter; add one");
    assert_wrong("median ! hist ! input", 0, "input: no step follows");
    assert_wrong("median ! gausian ! hist", 2,
                 "step 2, gausian: no such step; did you mean gaussian?");
    assert_wrong("xyz", 1, "step 1, xyz: no such step; a step is a filter, write, ");
    assert_wrong("open ! gaussian sigma=-1", 3,
                 "step 3, gaussian: --sigma '-1': must be a number from ");
    assert_wrong("gaussian sigm=1", 1,
                 "step 1, gaussian: sigm: unknown option; did you mean --sigma?");
    assert_wrong(
        "gaussian --xyz", 1,
        "step 1, gaussian: --xyz: unknown option of a step; see 'gpufilter gaussian --help'; "
        "options of the whole run are given before the input");
    assert_wrong("gaussian =2", 1, "step 1, gaussian: =2: unknown option of a step; see ");
    assert_wrong("gaussian -x1", 1, "step 1, gaussian: -x: unknown option of a step; see ");
    assert_wrong("write a.png xyz=1", 1, "step 1, write: xyz: unknown option; see 'gpufilter run ");
    assert_wrong("open xyz=1 ! hist", 1,
                 "step 1, open: xyz: unknown option of a step; see 'gpufilter");
    assert_wrong("gaussian --sigma", 1, "step 1, gaussian: --sigma: requires a value (");
    assert_wrong("gaussian sigma 2", 1, "step 1, gaussian: --sigma: requires a value (");
    assert_wrong("smooth keep-brightness=1", 1, "step 1, smooth: --keep-brightness '1': takes no");
    assert_wrong("median hist", 1, "step 1, median: 'hist' is superfluous; write options as ");
    assert_wrong("write a.png b.png", 1, "step 1, write: 'b.png' is superfluous");
    assert_wrong("input median", 1, "step 1, input: 'median' is superfluous; write ! between");
    assert_wrong("linear f32", 1, "step 1, linear: 'f32' is superfluous");
    assert_wrong("depth", 1, "step 1, depth: expected depth TYPE");
    assert_wrong("depth 12", 1, "step 1, depth: --depth '12': must be ");
    assert_wrong("write", 1, "step 1, write: expected write OUT");
    assert_wrong("write ''", 1, "step 1, write: expected write OUT");
    assert_wrong("compare", 1, "step 1, compare: expected compare FILE");
    assert_wrong("write a ! median ! write a", 3, "step 3, write: a: step 1 writes it, too; use ");
    assert_wrong("write a", 0, "pipeline: no filter; add one, such as median, or depth keep to ");
}

TEST(a_pipeline_has_at_most_32_steps) {
    char text[33 * 7 + 1] = "";
    for (int i = 0; i < 32; i++)
        strcat(text, "hist ! ");
    gf_pipeline *pipeline;
    uint32_t count;
    assert_ok(parse(text, &pipeline));
    gf_pipeline_steps(pipeline, &count);
    assert_int_equal(count, GF_PIPELINE_STEPS);
    gf_pipeline_free(pipeline);
    strcat(text, "hist");
    assert_wrong(text, 33, "step 33, hist: a pipeline has at most 32 steps; write the image, and ");
}

int main(void) {
    return test_main(NULL);
}
