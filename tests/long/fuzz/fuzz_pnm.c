/* PGM, PPM, PAM and PFM: from a regular file and from a pipe alike. What is accepted is written in
 * its own format and comes back unchanged. */
#include "fuzz.h"

static void pnm_round_trip(const outcome *image, unsigned which) {
    const bool real = image->format.type == GF_F32;
    const char *path = fuzz_path(real ? "x.pfm" : "x.pam");
    const gf_file_options options = {.force = true};
    gf_error error = {0};
    outcome back = {0};

    gf_status status = save_image(path, &image->format, image->pixels, &image->metadata, &options,
                                  1 + which % 3, &error);
    FUZZ_CHECK(status == GF_OK, "cannot be written: %s", error.message);
    status =
        load_image(path, NULL, 1 + which % 5, &back.format, &back.pixels, &back.metadata, &error);
    FUZZ_CHECK(status == GF_OK, "written, but not read: %s", error.message);
    FUZZ_CHECK(same_image(image, &back), "other pixels after writing");
    clear(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 4)
        return 0;
    const unsigned which = data[size - 1];
    outcome file = fuzz_load_file(data, size, &fuzz_limits, gf_pnm_source_open, 1 + which % 4);
    outcome pipe = fuzz_load_pipe(data, size, &fuzz_limits, gf_pnm_source_open, 1 + which % 3);
    /* A file tells by its size what a header's end with CR LF means; a pipe does not. */
    if (strstr(pipe.error.message, "not by a pipe") == NULL)
        fuzz_check_same(&file, &pipe, "file and pipe");
    if (file.error.status == GF_OK && which % 4 == 0)
        pnm_round_trip(&file, which);
    clear(&file);
    clear(&pipe);
    return 0;
}
