/* Decoding of PNGs by several threads: rows, errors and metadata are those of one thread, for
 * streams of all kinds of blocks, in chunks of all sizes, intact and damaged. */
#include <unistd.h>
#include <zlib.h>

#include "io/png/inflate.h"
#include "io/png/png.h"
#include "io/strip/row_filter.h"
#include "io_util.h"
#include "png_both.h"
#include "testing.h"

enum { MAX_RAW = 1 << 18, MAX_PACKED = 2 * MAX_RAW };

/* ---- files ----------------------------------------------------------------------------------- */

/* Fill with noise, runs and repetitions. Their shares differ from file to file. */
static void make_raw(test_random *random, unsigned char *to, size_t n) {
    const uint64_t range = 1 + test_below(random, 256), noise = 1 + test_below(random, 12);
    for (size_t i = 0; i < n;) {
        const size_t run = 1 + (size_t)test_below(random, 400), left = n - i;
        const size_t length = run < left ? run : left;
        const uint64_t choice = test_below(random, 12);
        const size_t back = 1 + (size_t)test_below(random, i < 40000 ? i + 1 : 40000);
        for (size_t k = i; k < i + length; k++)
            if (choice < noise)
                to[k] = (unsigned char)(test_below(random, range) * test_below(random, range) >> 8);
            else if (choice == 11)
                to[k] = (unsigned char)run;
            else
                to[k] = k >= back ? to[k - back] : 0;
        i += length;
    }
}

/* Compress with changing settings. Mark in `ends` the bytes after which a chunk may end because of
 * a flush. Return the size. */
static size_t compress_raw(test_random *random, const unsigned char *raw, size_t n,
                           unsigned char *to, unsigned char *ends) {
    static const int flushes[] = {Z_NO_FLUSH, Z_BLOCK, Z_PARTIAL_FLUSH, Z_SYNC_FLUSH, Z_FULL_FLUSH};
    const uint64_t steps = 1 + test_below(random, 3), fixed_flush = test_below(random, 8);
    const size_t step = n / (steps * steps * 4) + 1;
    z_stream zlib = {0};
    memset(ends, 0, MAX_PACKED);
    assert_int_equal(deflateInit2(&zlib, (int)test_below(random, 10), Z_DEFLATED, 15,
                                  1 + (int)test_below(random, 9), (int)test_below(random, 5)),
                     Z_OK);
    zlib.next_out = to;
    zlib.avail_out = MAX_PACKED;
    for (size_t at = 0; at < n;) {
        const size_t left = n - at, some = 1 + (size_t)test_below(random, 2 * step);
        const bool last = some >= left;
        const int flush = last              ? Z_FINISH
                          : fixed_flush < 5 ? flushes[fixed_flush]
                                            : flushes[test_below(random, 5)];
        zlib.next_in = (Bytef *)(uintptr_t)(raw + at);
        zlib.avail_in = (uInt)(last ? left : some);
        at += zlib.avail_in;
        assert_true(deflate(&zlib, flush) >= Z_OK);
        if (flush == Z_SYNC_FLUSH || flush == Z_FULL_FLUSH)
            ends[zlib.total_out] = 1;
        if (test_below(random, 4) == 0)
            (void)deflateParams(&zlib, (int)test_below(random, 10), (int)test_below(random, 5));
    }
    const size_t size = MAX_PACKED - zlib.avail_out;
    (void)deflateEnd(&zlib);
    return size;
}

static void put_header(png_bytes *file, uint32_t width, uint32_t height, int color, int depth) {
    unsigned char header[13] = {0};
    for (int i = 0; i < 4; i++) {
        header[i] = (unsigned char)(width >> (24 - 8 * i));
        header[4 + i] = (unsigned char)(height >> (24 - 8 * i));
    }
    header[8] = (unsigned char)depth;
    header[9] = (unsigned char)color;
    png_put_signature(file);
    png_put_chunk(file, "IHDR", header, sizeof header, false);
}

/* Make a file of 16 to 256 KiB of filtered rows. */
static png_bytes make_file(test_random *random) {
    static unsigned char raw[MAX_RAW], packed[MAX_PACKED], ends[MAX_PACKED + 1];
    const int *kind = kinds[test_below(random, KINDS)];
    const uint32_t channels = kind[0] == 2 ? 3 : kind[0] == 4 ? 2 : kind[0] == 6 ? 4 : 1;
    const uint32_t width =
        1 + (uint32_t)test_below(random, test_below(random, 4) == 0 ? 4000 : 600);
    const size_t row = 1 + (width * channels * (uint32_t)kind[1] + 7) / 8;
    const size_t wanted = (16 << 10) << test_below(random, 5);
    const size_t rows = wanted / row > 0 ? wanted / row : 1, n = rows * row;
    const unsigned char one_filter = (unsigned char)test_below(random, 8);
    png_bytes file = {0};
    make_raw(random, raw, n);
    for (size_t r = 0; r < rows; r++)
        raw[r * row] = one_filter < 5 ? one_filter : (unsigned char)test_below(random, 5);
    const size_t size = compress_raw(random, raw, n, packed, ends);
    put_header(&file, width, (uint32_t)rows, kind[0], kind[1]);
    if (kind[0] == 3)
        png_put_chunk(&file, "PLTE", raw, (size_t)3 << kind[1], false);
    const uint64_t pieces = test_below(random, 4);
    const size_t max = pieces == 0 ? size : pieces == 1 ? 8192 : 1 + size / 50;
    for (size_t at = 0, bytes; at < size; at += bytes) {
        const size_t left = size - at < max ? size - at : max;
        bytes = pieces == 3 ? 1 + (size_t)test_below(random, left) : left;
        for (size_t k = 1; k < bytes; k++)
            if (ends[at + k] && pieces != 1)
                bytes = k;
        png_put_chunk(&file, "IDAT", packed + at, bytes, false);
    }
    png_put_chunk(&file, "tEXt", "a\0b", 3, false);
    png_put_chunk(&file, "IEND", NULL, 0, false);
    return file;
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct reading {
    gf_error error;
    gf_format format;
    unsigned char *rows; /* `complete` rows without gaps */
    uint64_t complete, bytes;
    uint32_t threads;
    gf_metadata metadata;
} reading;

typedef struct variant {
    uint32_t threads;
    size_t segment;
    uint64_t strip;
    bool announce, regular, shared;
    bool close; /* after some strips */
} variant;

/* Read strips into memory of their own with gaps, which must survive. The memory is announced up to
 * GF_SOURCE_AHEAD strips before. */
static void read_rows(gf_source *source, const variant *how, reading *to) {
    const uint64_t height = to->format.height, strips = (height - 1) / how->strip + 1;
    const uint64_t end = how->close ? strips / 3 : strips;
    const size_t row = gf_row_bytes(&to->format), stride = row + MARGIN;
    unsigned char **memory = test_zeros(strips * sizeof *memory);
    uint64_t announced = 0;
    gf_status status = GF_OK;
    to->rows = test_alloc(row * height);
    for (uint64_t k = 0; k < end && !status; k++) {
        const uint64_t y = k * how->strip;
        const uint64_t rows = height - y < how->strip ? height - y : how->strip;
        for (uint64_t j = announced; j < strips && j < k + GF_SOURCE_AHEAD && !status; j++) {
            const uint64_t from = j * how->strip;
            memory[j] = test_alloc(stride * how->strip);
            memset(memory[j], PAINT, stride * how->strip);
            if (how->announce)
                status = source->ops->announce(
                    source, memory[j], stride,
                    height - from < how->strip ? height - from : how->strip, &to->error);
            announced = j + 1;
        }
        if (!status)
            status = source->ops->read(source, memory[k], stride, rows, &to->error);
        for (uint64_t i = 0; i < rows && !status; i++, to->complete++) {
            memcpy(to->rows + to->complete * row, memory[k] + i * stride, row);
            for (size_t x = row; x < stride; x++)
                assert_int_equal(memory[k][i * stride + x], PAINT);
        }
    }
    if (!status && !how->close)
        (void)source->ops->finish(source, &to->error);
    else if (how->announce)
        source->ops->cancel(source);
    to->bytes = source->bytes;
    for (uint64_t k = 0; k < announced; k++)
        free(memory[k]);
    free(memory);
}

static reading read_file(const png_bytes *file, const variant *how) {
    const gf_limits wanted = {
        .threads = how->threads, .shared = how->shared, .segment = how->segment};
    const gf_limits limits = gf_limits_resolve(&wanted);
    gf_input input = {.name = strdup("x.png"), .file = fmemopen(file->data, file->size, "rb")};
    reading got = {0};
    gf_source *source;
    got.metadata = (gf_metadata){0};
    assert_non_null(input.name);
    assert_non_null(input.file);
    input.head_size = fread(input.head, 1, GF_PEEK, input.file);
    input.regular = how->regular;
    input.size = file->size;
    if (gf_png_source_open(&input, &limits, &source, &got.error) != GF_OK) {
        gf_input_close(&input);
        return got;
    }
    got.format = source->format;
    got.threads = source->threads;
    read_rows(source, how, &got);
    got.metadata = source->metadata;
    source->metadata = (gf_metadata){0};
    source->ops->close(source);
    return got;
}

static void free_reading(reading *got) {
    free(got->rows);
    gf_metadata_clear(&got->metadata);
}

/* Check that several threads return the same as one thread does. Return their number, 0 if they
 * were not used. */
static uint32_t check_file(const png_bytes *file, test_random *random, const char *what,
                           uint64_t where, bool *accepted) {
    static const uint32_t threads[] = {2, 3, 4, 6};
    const variant serially = {.threads = 1, .strip = 1, .regular = test_below(random, 2) == 0};
    variant how = {.threads = threads[test_below(random, 4)],
                   .segment = 512 + (size_t)test_below(random, 5000),
                   .strip = 1 + test_below(random, 9) * test_below(random, 9),
                   .announce = test_below(random, 2) == 0,
                   .shared = test_below(random, 2) == 0,
                   .regular = serially.regular};
    reading one = read_file(file, &serially);
    reading several = read_file(file, &how);
    const size_t row = one.rows ? gf_row_bytes(&one.format) : 0;
    const uint64_t complete =
        one.complete == one.format.height ? one.complete : one.complete / how.strip * how.strip;
    if (one.error.status != several.error.status ||
        (one.error.status && strcmp(one.error.message, several.error.message) != 0))
        fail_msg("%s %lu, %u threads, segments of %zu: '%s' instead of '%s'", what,
                 (unsigned long)where, how.threads, how.segment, several.error.message,
                 one.error.message);
    if (several.complete != complete || (!one.error.status && several.bytes != one.bytes) ||
        (row != 0 && memcmp(one.rows, several.rows, row * complete) != 0) ||
        !same_metadata(&one.metadata, &several.metadata))
        fail_msg(
            "%s %lu, %u threads, segments of %zu, strips of %lu: other rows: %lu, not %lu (%s)",
            what, (unsigned long)where, how.threads, how.segment, (unsigned long)how.strip,
            (unsigned long)several.complete, (unsigned long)complete, one.error.message);
    const uint32_t used = several.threads;
    *accepted = one.error.status == GF_OK;
    free_reading(&several);
    /* Close while threads are reading and decoding. */
    how.close = true;
    several = read_file(file, &how);
    if (several.complete > one.complete ||
        (row != 0 && memcmp(one.rows, several.rows, row * several.complete) != 0))
        fail_msg("%s %lu, %u threads, closed early: other rows", what, (unsigned long)where,
                 how.threads);
    free_reading(&one);
    free_reading(&several);
    return used;
}

TEST(intact_files) {
    test_random random = {test_environment("GF_TEST_SEED", 20261125)};
    const uint64_t rounds = test_rounds(600);
    uint64_t parallel = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        AUTO(free) png_bytes file = make_file(&random);
        bool accepted;
        parallel += check_file(&file, &random, "round", round, &accepted) > 1;
        assert_true(accepted);
    }
    print_message("%lu of %lu files by several threads\n", (unsigned long)parallel,
                  (unsigned long)rounds);
    assert_true(parallel > rounds / 2);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static size_t chunk_after(const png_bytes *file, size_t at) {
    return at + 12 + get32(file->data + at);
}

static void repair_checksum(unsigned char *chunk) {
    const size_t size = get32(chunk);
    const uint32_t sum = (uint32_t)crc32(0, chunk + 4, (uInt)size + 4);
    for (int i = 0; i < 4; i++)
        chunk[8 + size + (size_t)i] = (unsigned char)(sum >> (24 - 8 * i));
}

/* Flip bits of a random chunk, or truncate, remove, repeat or rename it. */
static void damage_file(png_bytes *file, test_random *random) {
    size_t at[2000], count = 0;
    for (size_t next = 8; next + 12 <= file->size && count < 2000; next = chunk_after(file, next))
        at[count++] = next;
    /* Not the header, which may declare a huge image. */
    const size_t i = 1 + (size_t)test_below(random, count - 1);
    const size_t from = at[i], to = chunk_after(file, from);
    unsigned char *chunk = file->data + from;
    const size_t size = to - from - 12;
    switch (test_below(random, 8)) {
    case 0:
        file->size = from + (size_t)test_below(random, to - from);
        break;
    case 1:
        memmove(chunk, file->data + to, file->size - to);
        file->size -= to - from;
        break;
    case 2:
        chunk[4] ^= 1;
        if (test_below(random, 2) == 0)
            repair_checksum(chunk);
        break;
    default:
        for (uint64_t flips = 1 + test_below(random, 3); flips > 0 && size != 0; flips--)
            chunk[8 + test_below(random, size)] ^= (unsigned char)(1u << test_below(random, 8));
        if (test_below(random, 4) != 0)
            repair_checksum(chunk);
    }
}

TEST(damaged_files) {
    const bool all = getenv("GF_HOSTILE") != NULL || strcmp(test_tier(), "long") == 0;
    const uint64_t files = all ? 20000 : test_rounds(120), damages = 10;
    test_random random = {test_environment("GF_TEST_SEED", 20261125)};
    uint64_t parallel = 0, accepted = 0;
    for (uint64_t i = 0; i < files; i++) {
        AUTO(free) png_bytes file = make_file(&random);
        for (uint64_t k = 0; k < damages; k++) {
            AUTO(free) png_bytes copy = {malloc(file.size), file.size};
            bool valid;
            assert_non_null(copy.data);
            memcpy(copy.data, file.data, file.size);
            damage_file(&copy, &random);
            parallel += check_file(&copy, &random, "damaged file", i * damages + k, &valid) > 1;
            accepted += valid;
        }
    }
    print_message("%lu of %lu files by several threads, %lu accepted\n", (unsigned long)parallel,
                  (unsigned long)(files * damages), (unsigned long)accepted);
    assert_true(parallel > files * damages / 3 && accepted > 0 && accepted < files * damages / 2);
}

/* Errors far behind the end of the image data, which only several threads read. In a pipe they are
 * not reported. */
TEST(errors_behind_the_end) {
    enum { WIDTH = 999, ROWS = 400 };
    static unsigned char raw[ROWS * (WIDTH + 1)], rest[70000], packed[sizeof raw + 1000];
    uLongf size = sizeof packed;
    test_random random = {3};
    AUTO(free) png_bytes file = {0};
    for (size_t i = 0; i < sizeof raw; i++)
        raw[i] = i % (WIDTH + 1) == 0 ? 0 : (unsigned char)test_below(&random, 256);
    assert_int_equal(compress2(packed, &size, raw, sizeof raw, 1), Z_OK);
    put_header(&file, WIDTH, ROWS + 10, 0, 8); /* ten rows are missing */
    png_put_chunk(&file, "IDAT", packed, size, false);
    png_put_chunk(&file, "IDAT", rest, sizeof rest, false);
    png_put_chunk(&file, "IDAT", rest, 10, true); /* a wrong CRC */
    png_put_chunk(&file, "IEND", NULL, 0, false);
    for (int regular = 0; regular < 2; regular++)
        for (uint32_t threads = 1; threads <= 5; threads++) {
            const variant how = {
                .threads = threads, .segment = 20000, .strip = 7, .regular = regular != 0};
            reading got = read_file(&file, &how);
            assert_int_equal(got.threads > 1, threads > 1);
            assert_non_null(
                strstr(got.error.message, regular ? "IDAT: CRC error" : "Not enough image data"));
            free_reading(&got);
        }
}

/* ---- our own files --------------------------------------------------------------------------- */

/* Files of our encoder, in segments of the default size, read from disk. */
TEST(own_files) {
    static const char *const efforts[] = {"fast", "balanced", "small", "none"};
    test_random random = {7};
    for (size_t e = 0; e < 4; e++) {
        const gf_file_options options = {.force = true, .write.compression = efforts[e]};
        const gf_format format = {1500 + 999 * e, 900, 1 + (uint32_t)e, GF_U8,
                                  (1 + (uint32_t)e) % 2 == 0};
        const size_t size = gf_row_bytes(&format) * format.height;
        AUTO(free) unsigned char *pixels = test_alloc(size);
        gf_format read;
        for (size_t i = 0; i < size; i++)
            pixels[i] = (unsigned char)(i / 300 + test_below(&random, 1 + i / 50000 % 20));
        assert_ok(save_image(in_directory("own.png"), &format, pixels, NULL, &options, 50));
        for (uint32_t threads = 1; threads <= 5; threads++) {
            AUTO(free) unsigned char *got;
            const gf_limits limits = {.threads = threads, .shared = e % 2 != 0};
            assert_ok(load_image(in_directory("own.png"), &limits, 100, &read, &got, NULL, &why));
            assert_memory_equal(got, pixels, size);
        }
    }
}

/* Every segment of a file of our encoder starts exactly, and is decoded without history. */
TEST(segments_of_our_files_are_accepted) {
    enum { WIDTH = 3000, HEIGHT = 2000 };
    const gf_file_options options = {.force = true};
    const gf_format format = {WIDTH, HEIGHT, 1, GF_U8, false};
    const gf_png_image image = {.row_bytes = WIDTH, .height = HEIGHT, .unit = 1, .threads = 3};
    unsigned char *pixels = test_alloc(WIDTH * HEIGHT), header[8], head[2];
    test_random random = {5};
    gf_png_stream stream = {0};
    gf_png_rows rows;
    uint64_t y = 0;
    size_t got;
    for (size_t i = 0; i < (size_t)WIDTH * HEIGHT; i++)
        pixels[i] = (unsigned char)(i % WIDTH / 20 + test_below(&random, 30));
    assert_ok(save_image(in_directory("own.png"), &format, pixels, NULL, &options, 100));
    free(pixels);
    gf_input input = {.name = strdup("own.png"), .file = fopen(in_directory("own.png"), "rb")};
    assert_non_null(input.file);
    assert_int_equal(fseek(input.file, 8, SEEK_SET), 0);
    while (fread(header, 1, 8, input.file) == 8 && !gf_png_idat_is(header))
        assert_int_equal(fseek(input.file, (long)get32(header) + 4, SEEK_CUR), 0);
    gf_png_idat_start(&stream.idat, &input, header);
    assert_ok(gf_png_idat_read(&stream.idat, head, 2, &got, &why));
    gf_png_parallel *parallel = gf_png_parallel_open(&stream, &image);
    assert_non_null(parallel);
    do {
        gf_png_parallel_rows(parallel, HEIGHT, &rows);
        y += rows.count;
    } while (rows.count != 0);
    assert_int_equal(y, HEIGHT);
    gf_png_parallel_stop(parallel);
    assert_true(stream.ended);
    assert_true(stream.accepted >= (uint64_t)(WIDTH + 1) * HEIGHT);
    gf_png_parallel_close(parallel);
    gf_input_close(&input);
}

/* ---- threads and memory ---------------------------------------------------------------------- */

TEST(threads_depend_on_size_and_memory) {
    gf_png_image image = {.row_bytes = 30000, .height = 10000, .unit = 3, .threads = 16};
    uint64_t memory, slot;
    image.max_memory = UINT64_MAX;
    assert_int_equal(gf_png_parallel_threads(&image, &memory), 16);
    slot = memory / 20; /* four segments more than threads */
    assert_in_range(memory, 40 << 20, 80 << 20);
    image.max_memory = 9 * slot;
    assert_int_equal(gf_png_parallel_threads(&image, &memory), 5);
    assert_int_equal(memory, 9 * slot);
    image.max_memory = 8 * slot - 1; /* fewer than four threads have fewer segments */
    assert_int_equal(gf_png_parallel_threads(&image, &memory), 3);
    assert_int_equal(memory, 5 * slot);
    image.max_memory = 4 * slot - 1;
    assert_int_equal(gf_png_parallel_threads(&image, &memory), 1);
    assert_int_equal(memory, 0);
    image.max_memory = UINT64_MAX;
    image.file_bytes = 300009999; /* compressed; one byte more: stored */
    assert_int_equal(gf_png_parallel_threads(&image, &memory), 16);
    image.file_bytes++;
    assert_int_equal(gf_png_parallel_threads(&image, &memory), 3);
    image.file_bytes = 0;
    image.height = 200; /* 6 MB: at least 2 MiB per thread */
    assert_int_equal(gf_png_parallel_threads(&image, &memory), 2);
    image.height = 100;
    assert_int_equal(gf_png_parallel_threads(&image, &memory), 1);
    image.height = 10000;
    image.threads = 1;
    assert_int_equal(gf_png_parallel_threads(&image, &memory), 1);
}

int main(void) {
    return test_main_in_directory();
}
