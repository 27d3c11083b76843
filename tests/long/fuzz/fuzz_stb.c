/* BMP, TGA, PSD, GIF and HDR through the decoder in this process. It must end, respect the
 * limits, and return the same pixels when called again. All inputs reach it: files without a
 * signature may be TGA. */
#include "fuzz.h"
#include "small_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gf_raster raster;
    unsigned char *pixels = NULL;
    if (size == 0)
        return 0;
    if (size >= GF_RASTER_MIN_BYTES)
        (void)small_read(&raster, data, size, 1, &pixels);
    free(pixels);
    outcome first = fuzz_load_file(data, size, &fuzz_limits, gf_stb_source_open, 4);
    if (first.error.status == GF_OK || size % 8 == 0) {
        outcome second = fuzz_load_pipe(data, size, &fuzz_limits, gf_stb_source_open, 1);
        fuzz_check_same(&first, &second, "again");
        clear(&second);
    } else {
        fuzz_check_error(first.error.status, &first.error);
    }
    if (first.error.status == GF_OK)
        FUZZ_CHECK(first.format.width * first.format.height <= fuzz_limits.max_pixels,
                   "exceeds the limit");
    clear(&first);
    return 0;
}
