/* JPEG through libjpeg-turbo. It must end, respect the limits, and return the same pixels and
 * metadata from a pipe. Its metadata is written to PNG and JPEG. */
#include "fuzz.h"

#include <string.h>

static void write_metadata(const gf_metadata *metadata, const char *name) {
    const gf_format format = {1, 1, 1, GF_U8, false};
    const gf_file_options options = {.force = true};
    gf_error error = {0};
    gf_sink *sink;
    const gf_status status =
        gf_sink_open(fuzz_path(name), &format, metadata, &options, 1, &sink, &error);
    if (status)
        fuzz_check_error(status, &error);
    else
        sink->ops->close(sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3 || memcmp(data, "\xff\xd8\xff", 3) != 0)
        return 0;
    outcome first = fuzz_load_file(data, size, &fuzz_limits, gf_jpeg_codec.open_source, 4);
    if (first.error.status == GF_OK || size % 8 == 0) {
        outcome second = fuzz_load_pipe(data, size, &fuzz_limits, gf_jpeg_codec.open_source, 1);
        fuzz_check_same(&first, &second, "again");
        clear(&second);
    } else {
        fuzz_check_error(first.error.status, &first.error);
    }
    if (first.error.status == GF_OK) {
        FUZZ_CHECK(first.format.width * first.format.height <= fuzz_limits.max_pixels,
                   "exceeds the limit");
        write_metadata(&first.metadata, "m.png");
        write_metadata(&first.metadata, "m.jpg");
    }
    clear(&first);
    return 0;
}
