/* PBM, PGM, PPM, PAM and PFM, from a regular file and from a pipe. Accepted images must be
 * unchanged after writing in their own format. */
#include "fuzz.h"

static void pnm_round_trip(const outcome *image, unsigned which) {
    const bool real = image->format.type == GF_F32;
    const char *path = fuzz_path(real ? "x.pfm" : "x.pam");
    const gf_file_options options = {.force = true};
    gf_error error = {0};
    outcome back = {0};

    gf_status status = save_image(path, &image->format, image->pixels, &image->metadata, &options,
                                  1 + which % 3, &error);
    FUZZ_CHECK(status == GF_OK, "write failed: %s", error.message);
    status =
        load_image(path, NULL, 1 + which % 5, &back.format, &back.pixels, &back.metadata, &error);
    FUZZ_CHECK(status == GF_OK, "cannot read the written file: %s", error.message);
    FUZZ_CHECK(same_image(image, &back), "different pixels after writing");
    clear(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 4)
        return 0;
    const unsigned which = data[size - 1];
    outcome file = fuzz_load_file(data, size, &fuzz_limits, gf_pnm_source_open, 1 + which % 4);
    outcome pipe = fuzz_load_pipe(data, size, &fuzz_limits, gf_pnm_source_open, 1 + which % 3);
    /* A header that ends with CR LF is ambiguous: the size of a file resolves it; a pipe has
     * none. */
    if (strstr(pipe.error.message, "not from a pipe") == NULL)
        fuzz_check_same(&file, &pipe, "file and pipe");
    if (file.error.status == GF_OK && which % 4 == 0)
        pnm_round_trip(&file, which);
    clear(&file);
    clear(&pipe);
    return 0;
}
