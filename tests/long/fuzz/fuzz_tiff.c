/* TIFF, from a regular file and from a pipe, with one and with several threads. The results must be
 * the same. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 8)
        return 0;
    gf_limits limits = fuzz_limits;
    limits.segment = 1u << data[size - 1] % 12;
    outcome file =
        fuzz_load_file(data, size, &limits, gf_tiff_codec.open_source, 1 + data[size - 1] % 5);
    limits.threads = 3;
    outcome pipe =
        fuzz_load_pipe(data, size, &limits, gf_tiff_codec.open_source, 1 + data[size - 1] % 4);
    fuzz_check_same(&file, &pipe, "file and pipe");
    if (file.error.status == GF_OK)
        FUZZ_CHECK(file.format.width * file.format.height <= fuzz_limits.max_pixels,
                   "exceeds the limit");
    clear(&file);
    clear(&pipe);
    return 0;
}
