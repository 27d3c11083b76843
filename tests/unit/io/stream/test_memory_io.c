/* Images in memory as sources and sinks. */
#include "io_util.h"

TEST(copies_rows_in_memory) {
    const gf_format format = {2, 3, 1, GF_U8, false};
    const unsigned char in[] = "ab__cd__ef";
    unsigned char strip[32];
    unsigned char out[16];
    gf_source *source;
    gf_sink *sink;
    memset(out, '.', sizeof out);
    assert_ok(gf_memory_source(&format, in, 4, &source, &why));
    assert_ok(gf_memory_sink(&format, 1, &(gf_out_pixels){out, 5}, &sink, &why));
    for (uint64_t rows = 1; rows <= 2; rows++) {
        assert_ok(source->ops->read(source, strip, 7, rows, &why));
        assert_ok(sink->ops->write(sink, strip, 7, rows, &why));
    }
    assert_ok(source->ops->finish(source, &why));
    assert_ok(sink->ops->finish(sink, &source->metadata, &why));
    source->ops->close(source);
    sink->ops->close(sink);
    assert_memory_equal(out, "ab...cd...ef....", 16);
    assert_error(gf_memory_source(&format, in, 1, &source, &why), GF_USAGE, "stride");
    assert_int_equal(gf_memory_sink(&(gf_format){1, 1, 5, GF_U8, 5 % 2 == 0}, 1,
                                    &(gf_out_pixels){out, 9}, &sink, &why),
                     GF_FAILED);
}

int main(void) {
    return test_main(NULL);
}
