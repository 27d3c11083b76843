/* PNG by our reader and by libpng alone: the same verdict, pixels and metadata, but for the
 * differences that docs/design-files.md lists. An accepted file comes back from our own encoder
 * unchanged. */
#include "../png_verdict.h"
#include "fuzz.h"
#include "png_mend.h"

static void write_and_read(const outcome *image, unsigned which) {
    /* The slow ones are fuzz_encoder's. */
    static const char *const efforts[] = {"fast", "fast", "1", "0"};
    const char *path = fuzz_path("x.png");
    const gf_file_options options = {.force = true, .compression = efforts[which % 4]};
    png_bytes file;
    gf_error error = {0};

    const gf_status status = save_image(path, &image->format, image->pixels, &image->metadata,
                                        &options, 1 + which % 7, &error);
    FUZZ_CHECK(status == GF_OK, "cannot be written: %s", error.message);
    file.data = get_bytes(path, &file.size);
    outcome back = png_oracle(&file, file.size, NULL);
    FUZZ_CHECK(back.error.status == GF_OK, "written, but not read: %s", back.error.message);
    FUZZ_CHECK(same_image(image, &back), "other pixels after writing");
    clear(&back);
    free(file.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    png_bytes file = {(unsigned char *)(uintptr_t)data, size};
    const unsigned which = (unsigned)crc32(0, data, (uInt)size);
    tally count = {0};

    if (size < 8)
        return 0;
    outcome ours = load(&file, size, &fuzz_limits, gf_png_source_open, 1 + which % 5);
    outcome oracle = png_oracle(&file, size, &fuzz_limits);
    check_outcomes(&ours, &oracle, &file, "input", 0, &count);
    if (ours.error.status != GF_OK)
        fuzz_check_error(ours.error.status, &ours.error);
    else if (which % 8 == 0)
        write_and_read(&ours, which / 8);
    clear(&ours);
    clear(&oracle);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    return png_mutate(data, size, most, seed);
}
