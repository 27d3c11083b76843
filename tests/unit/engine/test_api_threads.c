/* Thread safety as documented in docs/library.md: engines in parallel with shared settings, a
 * result read by several threads, and one engine used from different threads. */
#include "io_util.h"

#include <pthread.h>

#include "testing.h"

enum { THREADS = 4, WIDTH = 61, HEIGHT = 47 };

static const gf_format format = {.width = WIDTH, .height = HEIGHT, .channels = 1, .type = GF_U8};
static unsigned char image[HEIGHT][WIDTH];

static int fill(void **state) {
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            image[y][x] = (unsigned char)(x * y % 251);
    return 0;
}

static gf_engine *open_engine(void) {
    const gf_engine_options options = {.backend = "cpu", .threads = 2, .rows_per_strip = 5};
    return test_engine(&options);
}

static gf_status run(gf_engine *engine, const char *filter, const gf_settings *settings, void *out,
                     gf_result **result) {
    const gf_pixels in[2] = {{image, WIDTH}, {image, WIDTH}};
    return test_run_memory(&(test_memory){engine, gf_filter_find(filter), settings, &format, in,
                                          out, WIDTH, .result = result});
}

typedef struct job {
    gf_engine *engine;
    const gf_settings *settings; /* of smooth, shared */
    unsigned char out[HEIGHT][WIDTH];
    const gf_result *result; /* of hist, shared */
    uint64_t samples;
    gf_status status;
} job;

/* Repeat, so that the threads overlap. */
static void *smooth_and_read(void *argument) {
    job *mine = argument;
    for (int i = 0; i < 20 && !mine->status; i++)
        mine->status = run(mine->engine, "smooth", mine->settings, mine->out, NULL);
    const gf_table *table = gf_result_table(mine->result, 0);
    for (uint64_t y = 0; y < table->row_count; y++)
        mine->samples += gf_result_cell(mine->result, 0, y, table->column_count - 1).low;
    return NULL;
}

TEST(engines_share_settings_and_results) {
    AUTO(settings)
    gf_settings *smooth = test_settings(gf_filter_find("smooth"), "axis=xy radius=3");
    AUTO(settings) gf_settings *hist = test_settings(gf_filter_find("hist"), "bins=9");
    gf_engine *engine = open_engine();
    static unsigned char want[HEIGHT][WIDTH];
    static job jobs[THREADS];
    AUTO(result) gf_result *result;
    pthread_t threads[THREADS];
    assert_ok(run(engine, "smooth", smooth, want, NULL));
    assert_ok(run(engine, "hist", hist, NULL, &result));
    gf_engine_close(engine);
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (job){.engine = open_engine(), .settings = smooth, .result = result};
        assert_int_equal(pthread_create(&threads[i], NULL, smooth_and_read, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(jobs[i].status, GF_OK);
        assert_memory_equal(jobs[i].out, want, sizeof want);
        assert_int_equal(jobs[i].samples, WIDTH * HEIGHT);
        gf_engine_close(jobs[i].engine);
    }
}

static void *close_engine(void *argument) {
    gf_engine_close(argument);
    return NULL;
}

TEST(an_engine_moves_between_threads) {
    AUTO(settings)
    gf_settings *smooth = test_settings(gf_filter_find("smooth"), "axis=xy radius=3");
    AUTO(settings) gf_settings *hist = test_settings(gf_filter_find("hist"), "bins=9");
    static unsigned char want[HEIGHT][WIDTH];
    static job mine;
    AUTO(result) gf_result *result;
    pthread_t thread;
    mine = (job){.engine = open_engine(), .settings = smooth};
    assert_ok(run(mine.engine, "hist", hist, NULL, &result));
    mine.result = result;
    for (int i = 0; i < 3; i++) { /* in another thread, then in this one */
        assert_int_equal(pthread_create(&thread, NULL, smooth_and_read, &mine), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(mine.status, GF_OK);
        assert_ok(run(mine.engine, "smooth", smooth, want, NULL));
        assert_memory_equal(mine.out, want, sizeof want);
    }
    assert_int_equal(pthread_create(&thread, NULL, close_engine, mine.engine), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void) {
    return test_main(&(test_fixture){fill, NULL});
}
