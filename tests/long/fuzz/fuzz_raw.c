/* Rows without a header: a line with the argument of --raw, then the pixels. The image from a
 * regular file and from a pipe must equal these pixels. */
#include "fuzz.h"

/* Compare sample i. */
static void check_sample(const gf_raw *raw, const uint8_t *rows, const outcome *image, size_t i) {
    const size_t bytes = gf_type_bytes(raw->format.type);
    for (size_t b = 0; b < bytes; b++) {
        const size_t from = raw->big_endian == gf_host_is_little() ? bytes - 1 - b : b;
        FUZZ_CHECK(image->pixels[i * bytes + b] == rows[i * bytes + from], "sample %zu", i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *line = memchr(data, '\n', size);
    gf_error error = {0};
    gf_raw raw = {0};
    if (line == NULL)
        return 0;
    char *shape = fuzz_text(&(fuzz_bytes){data, (size_t)(line - data)});
    const gf_status status = gf_raw_parse(shape, &raw, &error);
    free(shape);
    if (status != GF_OK) {
        fuzz_check_error(status, &error);
        FUZZ_CHECK(status == GF_USAGE, "not a usage error");
        return 0;
    }
    const uint8_t *file = line + 1;
    const size_t bytes = size - (size_t)(file - data);
    gf_limits given = fuzz_limits;
    given.raw = &raw;
    outcome a = fuzz_load_file(file, bytes, &given, plain_source_open, 3);
    if (bytes != 0) { /* an empty pipe is rejected before */
        outcome b = fuzz_load_pipe(file, bytes, &given, plain_source_open, 2);
        fuzz_check_same(&a, &b, "file and pipe");
        clear(&b);
    }
    if (a.error.status == GF_OK) {
        const uint64_t samples = gf_row_samples(&raw.format) * raw.format.height;
        FUZZ_CHECK(raw.offset + samples * gf_type_bytes(raw.format.type) == bytes,
                   "a different size");
        for (uint64_t i = 0; i < samples; i++)
            check_sample(&raw, file + raw.offset, &a, (size_t)i);
    }
    clear(&a);
    return 0;
}
