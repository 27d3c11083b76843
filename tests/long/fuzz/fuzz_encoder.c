/* Our PNG encoder: for any rows and compression, any strip height and number of threads must
 * give the same file, which libpng must decode to the same pixels. */
#include "fuzz.h"
#include "png_both.h"

#include "io/file/output.h"

typedef struct fuzz_job {
    gf_format format;
    unsigned char *pixels;
    const char *compression;
} fuzz_job;

/* Fill the image with a short pattern, repeated with changes, to exercise matches, runs and
 * filters. */
static fuzz_job read_job(fuzz_bytes *bytes) {
    static const gf_type types[] = {GF_U8, GF_U16};
    const uint8_t how = fuzz_byte(bytes);
    fuzz_job made = {.format = {.channels = 1 + (how & 3u),
                                .type = types[how >> 2 & 1],
                                .alpha = (how & 1) != 0}};
    const char *const *efforts = gf_names(GF_NAMES_COMPRESSION);
    size_t count = 0;
    made.format.width = 1 + fuzz_below(bytes, (how & 8) != 0 ? 5000 : 60);
    made.format.height = 1 + fuzz_below(bytes, (how & 8) != 0 ? 12 : 60);
    while (efforts[count] != NULL)
        count++;
    made.compression = efforts[(how & 16) != 0 ? fuzz_byte(bytes) % count : 0];
    const size_t size = gf_row_bytes(&made.format) * (size_t)made.format.height;
    made.pixels = malloc(size);
    if (made.pixels == NULL)
        abort();
    const uint8_t step = (how & 32) != 0 ? fuzz_byte(bytes) : 0;
    for (size_t i = 0; i < size; i++) {
        const uint8_t v = bytes->size != 0 ? bytes->data[i % bytes->size] : how;
        made.pixels[i] = (unsigned char)(v + (bytes->size != 0 ? i / bytes->size : i) * step);
    }
    return made;
}

static unsigned char *write_file(const fuzz_job *job, uint32_t threads, uint64_t strip,
                                 size_t *size) {
    const char *path = fuzz_path("x.png");
    const gf_file_options options = {.force = true, .write.compression = job->compression};
    const size_t row = gf_row_bytes(&job->format);
    gf_error error = {0};
    gf_sink *sink;
    gf_status status = gf_sink_open(path, &job->format, NULL, &options, threads, &sink, &error);
    for (uint64_t y = 0; status == GF_OK && y < job->format.height; y += strip) {
        const uint64_t left = job->format.height - y;
        status =
            sink->ops->write(sink, job->pixels + y * row, row, left < strip ? left : strip, &error);
    }
    if (status == GF_OK)
        status = sink->ops->finish(sink, NULL, &error);
    if (status == GF_OK)
        status = gf_output_commit(sink->output, &error);
    if (sink != NULL)
        sink->ops->close(sink);
    FUZZ_CHECK(status == GF_OK, "%s", error.message);
    return test_bytes(path, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_bytes bytes = {data, size};
    const uint32_t threads = 1 + fuzz_byte(&bytes) % 4;
    const uint64_t strip = 1 + fuzz_byte(&bytes) % 64;
    fuzz_job job = read_job(&bytes);
    AUTO(free) png_bytes file, other;
    file.data = write_file(&job, 1, job.format.height, &file.size);
    other.data = write_file(&job, threads, strip, &other.size);
    FUZZ_CHECK(file.size == other.size && memcmp(file.data, other.data, file.size) == 0,
               "%u threads and strips of %u rows give a different file", threads, (unsigned)strip);
    outcome back = png_oracle(&file, file.size, NULL);
    FUZZ_CHECK(back.error.status == GF_OK, "libpng: %s", back.error.message);
    FUZZ_CHECK(gf_format_equal(&back.format, &job.format) &&
                   memcmp(back.pixels, job.pixels,
                          gf_row_bytes(&job.format) * (size_t)job.format.height) == 0,
               "different pixels");
    clear(&back);
    free(job.pixels);
    return 0;
}
