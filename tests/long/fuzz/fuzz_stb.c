/* JPEG, BMP, TGA, PSD, GIF and HDR by the decoder itself, in this process: it ends, keeps to the
 * limits, and gives the same pixels again. Any bytes go to it: those that no mark tells may be a
 * TGA. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    outcome first = fuzz_load_file(data, size, &fuzz_limits, gf_stb_source_open, 4);
    if (first.error.status == GF_OK || size % 8 == 0) {
        outcome again = fuzz_load_pipe(data, size, &fuzz_limits, gf_stb_source_open, 1);
        fuzz_check_same(&first, &again, "again");
        clear(&again);
    } else {
        fuzz_check_error(first.error.status, &first.error);
    }
    if (first.error.status == GF_OK)
        FUZZ_CHECK(first.format.width * first.format.height <= fuzz_limits.max_pixels,
                   "over the limit");
    clear(&first);
    return 0;
}
