/* PBM, PGM, PPM, PAM, PFM and NPY, from a regular file and from a pipe. Accepted images must be
 * unchanged after writing in their own format or as NPY. An input that starts with a brace is the
 * text of an NPY header up to a newline, and pixels. */
#include "fuzz.h"

static void pnm_round_trip(const outcome *image, unsigned which) {
    /* PFM has no last channel of 2 or 4, PAM only alpha. */
    const bool real = image->format.type == GF_F32, last = image->format.channels % 2 == 0;
    const bool npy = which % 8 == 0 || (last && (real || !image->format.alpha));
    const char *path = fuzz_path(npy ? "x.npy" : real ? "x.pfm" : "x.pam");
    const gf_file_options options = {.force = true};
    outcome back = {0};
    gf_status status =
        save_image(path, &image->format, image->pixels, &image->metadata, &options, 1 + which % 3);
    FUZZ_CHECK(status == GF_OK, "write failed: %s", why.message);
    status =
        load_image(path, NULL, 1 + which % 5, &back.format, &back.pixels, &back.metadata, &why);
    FUZZ_CHECK(status == GF_OK, "cannot read the written file: %s", why.message);
    if (npy && last) /* NPY does not say whether the last channel is alpha */
        back.format.alpha = image->format.alpha;
    FUZZ_CHECK(same_image(image, &back), "different pixels after writing");
    clear(&back);
}

/* Put the magic, the version and the size of the text before the text of a header. */
static uint8_t *pnm_make_npy(const uint8_t *data, size_t *size) {
    const uint8_t *end = memchr(data, '\n', *size);
    const size_t text = end ? (size_t)(end - data) + 1 : *size;
    uint8_t *file = malloc(*size + 10);
    assert_non_null(file);
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (uint8_t)text;
    file[9] = (uint8_t)(text >> 8);
    memcpy(file + 10, data, *size);
    *size += 10;
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 4)
        return 0;
    const unsigned which = data[size - 1];
    AUTO(free) uint8_t *npy = *data == '{' ? pnm_make_npy(data, &size) : NULL;
    data = npy ? npy : data;
    outcome file = fuzz_load_file(data, size, &fuzz_limits, plain_source_open, 1 + which % 4);
    outcome pipe = fuzz_load_pipe(data, size, &fuzz_limits, plain_source_open, 1 + which % 3);
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
