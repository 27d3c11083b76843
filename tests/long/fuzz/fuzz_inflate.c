/* The rows in IDAT chunks, decoded by our reader, with one thread and with several, and by zlib.
 * The first bytes give the length of rows and the size of chunks; the rest is the stream. */
#include "fuzz.h"

#include "io/png/inflate.h"
#include "io/strip/row_filter.h"

enum { MAX_ROWS = 1 << 13 };

/* Put the stream into chunks with checksums, followed by IEND. */
static png_bytes in_chunks(const fuzz_bytes *stream, size_t piece) {
    png_bytes file = {0};
    for (size_t at = 0; at < stream->size || at == 0; at += piece) {
        const size_t left = stream->size - at;
        png_put_chunk(&file, "IDAT", stream->data + at, left < piece ? left : piece, false);
    }
    png_put_chunk(&file, "IEND", NULL, 0, false);
    return file;
}

typedef struct rows {
    gf_error error;
    unsigned char bytes[MAX_ROWS];
    size_t size;  /* bytes that were read before a failure */
    bool stopped; /* at an invalid filter type */
} rows;

static void read_ours(const png_bytes *file, const gf_png_image *image, rows *got) {
    const size_t row = image->row_bytes + 1;
    gf_input input = {.name = strdup("x"), .file = fmemopen(file->data, file->size, "rb")};
    unsigned char header[GF_PNG_CHUNK_HEADER], head[2];
    gf_png_inflate *inflate = NULL;
    gf_png_rows decoded;
    gf_png_idat idat;
    size_t used;
    got->error = (gf_error){0};
    got->size = 0;
    got->stopped = false;
    if (input.file == NULL ||
        gf_input_read(&input, header, sizeof header, &used, &got->error) != GF_OK)
        abort();
    gf_png_idat_start(&idat, &input, header);
    if (gf_png_idat_read(&idat, head, sizeof head, &used, &got->error) == GF_OK &&
        (inflate = gf_png_inflate_open(&idat, image, &got->error)) != NULL) {
        for (size_t i = 0; i < image->height && !got->stopped; i++, got->size += row) {
            if (gf_png_inflate_rows(inflate, 1, &decoded, &got->error) != GF_OK)
                break;
            memcpy(got->bytes + got->size, decoded.first, row);
            got->stopped = image->threads > 1 && got->bytes[got->size] >= GF_PNG_FILTERS;
        }
        if (got->error.status == GF_OK && !got->stopped)
            (void)gf_png_inflate_finish(inflate, &got->error);
        if (got->error.status == GF_OK && !got->stopped)
            FUZZ_CHECK(gf_input_read(&input, header, sizeof header, &used, &got->error) == GF_OK &&
                           memcmp(header + 4, "IEND", 4) == 0,
                       "the input is not at the end of the chunks");
    }
    gf_png_inflate_close(inflate);
    gf_input_close(&input);
}

/* Decode the whole stream with zlib; store the first rows in back. */
static int read_by_zlib(const fuzz_bytes *stream, unsigned char *back, size_t max, size_t *got,
                        const char **reason) {
    static unsigned char rest[1 << 15];
    z_stream zlib = {.next_in = (Bytef *)(uintptr_t)stream->data, .avail_in = (uInt)stream->size};
    int status = Z_OK;
    if (inflateInit(&zlib) != Z_OK)
        abort();
    zlib.next_out = back;
    zlib.avail_out = (uInt)max;
    while (status == Z_OK) {
        if (zlib.avail_out == 0) {
            zlib.next_out = rest;
            zlib.avail_out = sizeof rest;
        }
        status = inflate(&zlib, Z_NO_FLUSH);
    }
    *got = zlib.total_out < max ? zlib.total_out : max;
    *reason = zlib.msg != NULL ? zlib.msg : "";
    (void)inflateEnd(&zlib);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static unsigned char back[MAX_ROWS];
    static rows ours, parallel;
    fuzz_bytes bytes = {data, size};
    const size_t row = 1 + fuzz_below(&bytes, 300), count = 1 + fuzz_byte(&bytes) % 24;
    const size_t piece = 3 + fuzz_below(&bytes, 3000);
    const char *reason;
    size_t got;
    if (bytes.size < 3 || !gf_png_inflate_supports(bytes.data))
        return 0;
    png_bytes file = in_chunks(&bytes, piece);
    /* With fewer than four threads, rows are returned as they are stored. */
    gf_png_image image = {
        .row_bytes = row - 1, .height = count, .unit = 1, .threads = 1, .segment = 512};
    read_ours(&file, &image, &ours);
    image.threads = 3;
    read_ours(&file, &image, &parallel);
    free(file.data);
    FUZZ_CHECK(parallel.stopped ||
                   (parallel.size == ours.size && parallel.error.status == ours.error.status &&
                    strcmp(parallel.error.message, ours.error.message) == 0),
               "several threads: %s; one: %s", parallel.error.message, ours.error.message);
    FUZZ_CHECK(parallel.size <= ours.size && memcmp(parallel.bytes, ours.bytes, parallel.size) == 0,
               "several threads: other rows");
    const int zlib = read_by_zlib(&bytes, back, row * count, &got, &reason);
    const bool valid = zlib == Z_STREAM_END && got == row * count;
    if (ours.error.status == GF_OK)
        FUZZ_CHECK(valid, "accepted; zlib: %d %s, %zu bytes", zlib, reason, got);
    else
        fuzz_check_error(ours.error.status, &ours.error);
    if (ours.error.status != GF_OK)
        FUZZ_CHECK(!valid, "rejected: %s", ours.error.message);
    if (valid)
        FUZZ_CHECK(memcmp(ours.bytes, back, row * count) == 0, "different rows");
    return 0;
}
