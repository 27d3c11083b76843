/* JPEG, BMP, TGA, PSD, GIF and HDR by the decoder itself, in this process: it ends, keeps to the
 * limits, and gives the same pixels again. Any bytes go to it: those that no mark tells may be a
 * TGA. */
#include "fuzz.h"

const char *const fuzz_words[] = {"\xff\xd8\xff",
                                  "\xff\xc0",
                                  "\xff\xc2",
                                  "\xff\xc4",
                                  "\xff\xdb",
                                  "\xff\xda",
                                  "\xff\xd9",
                                  "\xff\xdd",
                                  "\xff\xd0",
                                  "BM",
                                  "GIF89a",
                                  "GIF87a",
                                  "8BPS",
                                  "!\xf9\4",
                                  ",",
                                  "#?RADIANCE\n",
                                  "#?RGBE\n",
                                  "-Y 4 +X 8\n",
                                  "FORMAT=32-bit_rle_rgbe\n",
                                  NULL};

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
