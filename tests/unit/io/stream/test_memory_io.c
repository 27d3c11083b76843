/* Images in memory as sources and sinks. */
#include "io_util.h"

TEST(copies_rows_in_memory) {
    const gf_format format = {2, 3, 1, GF_U8, false};
    const unsigned char in[] = "ab__cd__ef";
    unsigned char strip[32];
    unsigned char out[16];
    gf_source *source;
    gf_sink *sink;
    gf_error error = {0};
    memset(out, '.', sizeof out);
    assert_int_equal(gf_memory_source(&format, in, 4, &source, &error), GF_OK);
    assert_int_equal(gf_memory_sink(&format, 1, &(gf_out_pixels){out, 5}, &sink, &error), GF_OK);
    for (uint64_t rows = 1; rows <= 2; rows++) {
        assert_int_equal(source->ops->read(source, strip, 7, rows, &error), GF_OK);
        assert_int_equal(sink->ops->write(sink, strip, 7, rows, &error), GF_OK);
    }
    assert_int_equal(source->ops->finish(source, &error), GF_OK);
    assert_int_equal(sink->ops->finish(sink, &source->metadata, &error), GF_OK);
    source->ops->close(source);
    sink->ops->close(sink);
    assert_memory_equal(out, "ab...cd...ef....", 16);
    assert_int_equal(gf_memory_source(&format, in, 1, &source, &error), GF_USAGE);
    assert_message(&error, "stride");
    assert_int_equal(gf_memory_sink(&(gf_format){1, 1, 5, GF_U8, 5 % 2 == 0}, 1,
                                    &(gf_out_pixels){out, 9}, &sink, &error),
                     GF_FAILED);
}

int main(void) {
    return test_main(NULL);
}
