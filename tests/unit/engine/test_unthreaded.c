/* An engine with the option `unthreaded` starts no threads and produces the same result. */
#include "io_util.h"
#include "png_util.h"
#include "testing.h"

static int count_threads(void) {
    DIR *directory = opendir("/proc/self/task");
    int count = 0;
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

typedef struct thread_counts {
    int before, max;
} thread_counts;

/* Count threads when all rows are written. The pool and the encoder still hold their threads. */
static gf_status count_when_ready(void *context, const gf_ready *ready, gf_error *error) {
    thread_counts *counted = context;
    const int now = count_threads() - counted->before;
    counted->max = now > counted->max ? now : counted->max;
    return GF_OK;
}

/* An image of many strips, and a PNG of many pieces. */
TEST(unthreaded_engines_start_none) {
    const gf_filter *filter = gf_filter_find("smooth");
    const png_spec spec = {.width = 1500, .height = 1503, .color = 2, .depth = 8, .seed = 46500};
    AUTO(free) png_bytes file = {0};
    const char *in = in_directory("large.png"), *out = in_directory("large-out.png"),
               *other = in_directory("large-other.png");
    png_make(&spec, &file, NULL, NULL);
    put_bytes(in, file.data, file.size);
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    for (int unthreaded = 0; unthreaded < 2; unthreaded++) {
        const gf_engine_options options = {
            .backend = "cpu", .threads = 4, .unthreaded = unthreaded != 0};
        thread_counts counted = {.before = count_threads()};
        const gf_file_options files = {
            .force = true, .ready = count_when_ready, .ready_context = &counted};
        gf_engine *engine = NULL;
        gf_report report;
        assert_ok(gf_engine_open(&options, &engine, NULL));
        assert_ok(test_run_files(&(test_files){
            engine, filter, settings, &in, unthreaded ? other : out, &files, .report = &report}));
        gf_engine_close(engine);
        assert_true(report.strips > 1);
        assert_true(unthreaded ? counted.max == 0 : counted.max > 1);
        for (int i = 0; i < GF_STAGE_COUNT && unthreaded; i++)
            assert_true(report.busy[i].workers <= 1);
    }
    size_t size;
    AUTO(free) unsigned char *data = test_bytes(out, &size);
    assert_bytes(other, data, size);
}

int main(void) {
    return test_main_in_directory();
}
