/* PNG encoder at its limits: full disk, little memory, early close. */
#include "io_util.h"

#include "io/png/png.h"

#include "png_encoder_util.h"

/* Under sanitizers, failed allocations return NULL. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1";
}
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "allocator_may_return_null=1";
}

/* ---- failures -------------------------------------------------------------------------------- */

TEST(disk_errors_are_reported) {
    const gf_format format = {3000, 700, 3, GF_U8, false};
    const gf_file_options options = {.force = true, .write.format = "png"};
    AUTO(free) unsigned char *pixels = draw(&format, 0, 3);
    for (uint32_t threads = 1; threads < 4; threads++) {
        gf_sink *sink;
        gf_status status = gf_sink_open("/dev/full", &format, NULL, &options, threads, &sink, &why);
        if (!status) {
            status = sink->ops->write(sink, pixels, gf_row_bytes(&format), format.height, &why);
            if (!status)
                status = sink->ops->finish(sink, NULL, &why);
            sink->ops->close(sink);
        }
        assert_int_equal(status, GF_FAILED);
        assert_non_null(strstr(why.message, "/dev/full: cannot write"));
    }
}

TEST(may_be_closed_at_any_row) {
    const gf_format format = {2000, 900, 3, GF_U8, false};
    AUTO(free) unsigned char *pixels = draw(&format, 1, 4);
    for (uint64_t rows = 0; rows < format.height; rows += 83) {
        gf_sink *sink;
        assert_ok(gf_sink_open(in_directory("left.png"), &format, NULL, NULL, 4, &sink, &why));
        if (rows)
            assert_ok(sink->ops->write(sink, pixels, gf_row_bytes(&format), rows, &why));
        sink->ops->close(sink);
        assert_int_equal(access(in_directory("left.png"), F_OK), -1);
    }
}

/* The number of worker threads increases with the memory limit, from 0 to 8. */
TEST(limits_the_threads_by_memory) {
    const gf_format format = {3000, 9000, 3, GF_U8, false};
    uint32_t before = 0;
    for (uint64_t max = 0; max < 80000000; max += 2000000) {
        gf_output *output;
        gf_sink *sink = NULL;
        uint32_t threads;
        assert_ok(gf_output_open(in_directory("never"), &replacing, false, &output, &why));
        assert_ok(open_encoder(&format, "fast", GF_ISA_PORTABLE, 8, max, output, &sink));
        assert_in_range(sink->memory, 0, max / 2);
        threads = sink->threads;
        assert_in_range(threads, before, 8);
        assert_true(max || threads == 0);
        before = threads;
        sink->ops->close(sink);
    }
    assert_int_equal(before, 8);
}

/* Rows of 30 MB: with exactly the memory of one thread, the encoder starts no workers. With one
 * byte less it fails. "small" needs more memory than "fast". */
TEST(wide_rows_are_counted) {
    const gf_format format = {10000000, 4, 3, GF_U8, false};
    uint64_t used[2];
    for (int i = 0; i < 2; i++) {
        const char *const effort = i ? "small" : "fast";
        gf_output *output;
        gf_sink *sink = NULL;
        assert_ok(gf_output_open(in_directory("never"), &replacing, false, &output, &why));
        assert_ok(
            open_encoder(&format, effort, GF_ISA_PORTABLE, 1, UINT64_C(1) << 32, output, &sink));
        used[i] = sink->memory;
        sink->ops->close(sink);
        sink = NULL;
        assert_ok(gf_output_open(in_directory("never"), &replacing, false, &output, &why));
        assert_ok(open_encoder(&format, effort, GF_ISA_PORTABLE, 4, used[i], output, &sink));
        assert_int_equal(sink->threads, 0);
        sink->ops->close(sink);
        sink = NULL;
        assert_ok(gf_output_open(in_directory("never"), &replacing, false, &output, &why));
        assert_int_equal(
            open_encoder(&format, effort, GF_ISA_PORTABLE, 4, used[i] - 1, output, &sink),
            GF_FAILED);
        assert_null(sink);
        assert_non_null(strstr(why.message, "for the encoder"));
        assert_non_null(strstr(why.message, "--max-memory"));
    }
    /* Raw row, row above, filtered row and coded row. */
    assert_in_range(used[0], 80000000, 150000000);
    assert_in_range(used[1], used[0] + 150000000, used[0] + 300000000);
}

/* Rows too long for any memory. */
TEST(failed_allocations_are_reported) {
    const gf_format format = {UINT64_C(1) << 45, 3, 4, GF_U8, true};
    for (uint32_t threads = 1; threads < 3; threads++) {
        gf_output *output;
        gf_sink *sink = NULL;
        assert_ok(gf_output_open(in_directory("never"), &replacing, false, &output, &why));
        assert_int_equal(
            open_encoder(&format, "fast", GF_ISA_PORTABLE, threads, UINT64_MAX, output, &sink),
            GF_FAILED);
        assert_null(sink);
        assert_message(&why, "never: ");
        assert_message(&why, "memory");
    }
}

int main(void) {
    return test_main_in_directory();
}
