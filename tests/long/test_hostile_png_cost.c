/* PNGs that are expensive to decode for their size: the reader may take at most twice libpng's
 * time, and several threads at most 1.5 times as long as one. GF_HOSTILE in the environment makes
 * them large (make hostile). */
#include "core/thread.h"
#include "hostile.h"

/* Whether times are compared: only this side has the sanitizers, libpng has none. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define TIMES 0
#else
#define TIMES 1
#endif

enum { ROW = 1000, ROWS_OF_UNIT = 125 }; /* bytes per row; units whose output is whole rows */

/* ---- units of eight blocks, which end at a byte boundary --------------------------------- */

static size_t fixed_blocks(bits *to, size_t literals) {
    for (size_t block = 0; block < 8; block++) {
        put_bits(to, 2, 3); /* not the last block, fixed codes */
        for (size_t i = 0; i < literals; i++)
            put_bits(to, 0x0c, 8); /* literal 0: 00110000, first bit first */
        put_bits(to, 0, 7);        /* end of block */
    }
    return 8 * literals;
}

static size_t stored_blocks(bits *to, size_t bytes) {
    for (size_t block = 0; block < 8; block++) {
        put_bits(to, 0, 8);
        put_bits(to, (unsigned)bytes, 16);
        put_bits(to, (unsigned)bytes ^ 0xffff, 16);
        to->count += 8 * bytes;
    }
    return 8 * bytes;
}

/* Write codes of 257 to 286 literals and lengths, and of distances; the end of block has code 0. */
static void dynamic_blocks(bits *to, const uint8_t *lengths, unsigned literals,
                           unsigned distances) {
    for (size_t block = 0; block < 8; block++) {
        put_bits(to, 4, 3);
        put_bits(to, literals - 257, 5);
        put_bits(to, distances - 1, 5);
        put_bits(to, 15, 4);
        for (size_t i = 0; i < 19; i++)
            put_bits(to, i < 3 ? 0 : 4, 3); /* four bits per length 0 to 15; no repeat codes */
        for (size_t i = 0; i < literals + distances; i++)
            for (int bit = 3; bit >= 0; bit--)
                put_bits(to, lengths[i] >> bit & 1u, 1);
        put_bits(to, 0, 1);
    }
}

/* The shortest code: only the end of block. */
static size_t short_codes(bits *to, size_t n) {
    const uint8_t lengths[257 + 1] = {[256] = 1};
    dynamic_blocks(to, lengths, 257, 1);
    return 0;
}

/* As many codes as possible that exceed ISA-L's first table. */
static size_t long_codes(bits *to, size_t n) {
    uint8_t lengths[286 + 30] = {2, 3, 4, 5};
    for (size_t i = 29; i < 286; i++)
        lengths[i] = 13;
    lengths[256] = 1;
    for (size_t i = 286; i < 316; i++)
        lengths[i] = i < 288 ? 4 : 5;
    dynamic_blocks(to, lengths, 286, 30);
    return 0;
}

/* ---- files -------------------------------------------------------------------------------------
 */

typedef struct cost_case {
    const char *what;
    size_t (*put)(bits *to, size_t n); /* returns the number of output bytes */
    size_t n;
    size_t idat_bytes; /* bytes per chunk; 0: one chunk */
} cost_case;

/* Make a stream of about `bytes` bytes: the case's blocks, then one stored row. */
static png_bytes expensive_file(const cost_case *c, size_t bytes) {
    static bits unit;
    unsigned char header[13] = {0, 0, (ROW - 1) >> 8, (ROW - 1) & 255, [8] = 8};
    png_bytes file = {0};
    memset(&unit, 0, sizeof unit);
    const size_t out = c->put(&unit, c->n), unit_bytes = unit.count / 8;
    const size_t units = (bytes / unit_bytes / ROWS_OF_UNIT + 1) * ROWS_OF_UNIT;
    const size_t rows = units * out / ROW + 1, size = 2 + units * unit_bytes + 5 + ROW + 4;
    unsigned char *stream = calloc(1, size), *to = stream + 2;
    assert_non_null(stream);
    memcpy(stream, "\x78\x01", 2);
    for (size_t i = 0; i < units; i++, to += unit_bytes)
        memcpy(to, unit.bytes, unit_bytes);
    /* One stored row of zeros. */
    memcpy(to, "\x01\xe8\x03\x17\xfc", 5);
    /* The Adler-32 of zeros depends on their number only. */
    const uint32_t sum = (uint32_t)(rows * ROW % 65521) << 16 | 1;
    for (int i = 0; i < 4; i++) {
        header[4 + i] = (unsigned char)(rows >> (24 - 8 * i));
        stream[size - 4 + (size_t)i] = (unsigned char)(sum >> (24 - 8 * i));
    }
    png_put_signature(&file);
    png_put_chunk(&file, "IHDR", header, sizeof header, false);
    const size_t max = c->idat_bytes != 0 ? c->idat_bytes : size;
    for (size_t at = 0; at < size; at += max)
        png_put_chunk(&file, "IDAT", stream + at, size - at < max ? size - at : max, false);
    png_put_chunk(&file, "IEND", NULL, 0, false);
    free(stream);
    return file;
}

/* Read the file. Update the minimum time. */
static void time_reader(const png_bytes *file, bool libpng, double *min, outcome *result) {
    const double start = cpu_seconds();
    clear(result);
    *result = libpng ? png_oracle(file, file->size, NULL)
                     : load(file, file->size, NULL, gf_png_codec.open_source, 16);
    const double seconds = cpu_seconds() - start;
    *min = seconds < *min ? seconds : *min;
}

TEST(expensive_streams_take_at_most_twice_the_time_of_libpng) {
    static const cost_case cases[] = {
        {"empty fixed blocks", fixed_blocks, 0, 0},
        {"fixed blocks of 1 literal", fixed_blocks, 1, 0},
        {"fixed blocks of 10 literals", fixed_blocks, 10, 0},
        {"fixed blocks of 100 literals", fixed_blocks, 100, 0},
        {"empty blocks with short codes", short_codes, 0, 0},
        {"empty blocks with long codes", long_codes, 0, 0},
        {"empty stored blocks", stored_blocks, 0, 0},
        {"stored blocks of 1 byte", stored_blocks, 1, 0},
        {"IDAT chunks of 1 byte", stored_blocks, 100, 1},
        {"IDAT chunks of 3 bytes", fixed_blocks, 0, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tally count = {0};
        outcome ours = {0}, oracle = {0};
        png_bytes file = expensive_file(&cases[i], hostile_all() ? 1 << 25 : 1 << 20);
        double our_time = 1e9, libpng_time = 1e9;
        bool within = false;
        for (int k = 0; k < 3 || (k < 25 && !within); k++) {
            time_reader(&file, false, &our_time, &ours);
            time_reader(&file, true, &libpng_time, &oracle);
            /* 5 ms of tolerance, because the machine may be busy. */
            within = our_time <= 2 * libpng_time + 0.005;
        }
        print_message("%s: libpng %.1f ms, ours %.1f ms, %.2f times\n", cases[i].what,
                      libpng_time * 1e3, our_time * 1e3, our_time / libpng_time);
        check_outcomes(&ours, &oracle, &file, cases[i].what, 0, &count);

        assert_int_equal(count.accepted, 1);
        assert_int_equal(differences(&count), 0);
        if (!within && TIMES)
            fail_msg("%s: %.1f ms, libpng %.1f ms", cases[i].what, our_time * 1e3,
                     libpng_time * 1e3);
        clear(&ours);
        clear(&oracle);
        free(file.data);
    }
}

/* ---- streams that waste the time of several threads ------------------------------------------ */

enum { WASTE_ROW = 1 << 19 };

/* Fill with dynamic blocks of 12 bytes, which contain no output: 257 literals and one distance. */
static void fill_with_blocks(unsigned char *to, size_t n) {
    static bits unit;
    memset(&unit, 0, sizeof unit);
    for (size_t block = 0; block < 8; block++) {
        put_bits(&unit, 4, 3);
        put_bits(&unit, 0, 10);
        put_bits(&unit, 14, 4);
        for (int i = 0; i < 18; i++) /* lengths: 18 has one bit; 0 and 1 have two */
            put_bits(&unit, i == 2 ? 1 : i == 3 || i == 17 ? 2 : 0, 3);
        put_bits(&unit, 0, 1); /* 138 unused symbols */
        put_bits(&unit, 138 - 11, 7);
        put_bits(&unit, 0, 1); /* 118 */
        put_bits(&unit, 118 - 11, 7);
        put_bits(&unit, 3, 2); /* the end of the block has one bit */
        put_bits(&unit, 1, 2);
        put_bits(&unit, 0, 1);
    }
    for (size_t i = 0; i < n; i++)
        to[i] = unit.bytes[i % (unit.count / 8)];
}

/* Literals in one block with fixed codes: a search finds nothing. */
static void fill_with_noise(unsigned char *to, size_t n) {
    test_random random = {9};
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)test_below(&random, 144);
}

/* As before, with the end of an empty stored block after each 10,000 bytes. */
static void fill_with_ends(unsigned char *to, size_t n) {
    fill_with_blocks(to, n);
    for (size_t i = 10000; i + 4 < n; i += 10000)
        memcpy(to + i - 4, "\0\0\xff\xff", 4);
}

typedef struct waste_case {
    const char *what;
    void (*fill)(unsigned char *to, size_t n);
    int level, strategy; /* of zlib */
    bool mixed;          /* level 6 for each tenth part */
} waste_case;

static png_bytes wasteful_file(const waste_case *c, size_t rows) {
    const size_t n = rows * (WASTE_ROW + 1), max = n + n / 8 + 1000, parts = 10 * rows;
    const uint32_t sizes[] = {WASTE_ROW, (uint32_t)rows};
    unsigned char header[13] = {[8] = 8}, *raw = malloc(n), *packed = malloc(max);
    png_bytes file = {0};
    assert_non_null(raw);
    assert_non_null(packed);
    c->fill(raw, n);
    for (size_t r = 0; r < rows; r++)
        raw[r * (WASTE_ROW + 1)] = 0;
    z_stream zlib = {.next_in = raw, .next_out = packed, .avail_out = (uInt)max};
    assert_int_equal(deflateInit2(&zlib, c->level, Z_DEFLATED, 15, 9, c->strategy), Z_OK);
    for (size_t i = 0; i < parts; i++) {
        if (c->mixed)
            assert_int_equal(deflateParams(&zlib, i % 10 == 0 ? 6 : c->level, c->strategy), Z_OK);
        zlib.avail_in = (uInt)(n * (i + 1) / parts - n * i / parts);
        assert_int_equal(deflate(&zlib, i + 1 < parts ? Z_NO_FLUSH : Z_FINISH),
                         i + 1 < parts ? Z_OK : Z_STREAM_END);
    }
    const size_t size = max - zlib.avail_out;
    (void)deflateEnd(&zlib);
    for (int i = 0; i < 8; i++)
        header[i] = (unsigned char)(sizes[i / 4] >> (24 - i % 4 * 8));
    png_put_signature(&file);
    png_put_chunk(&file, "IHDR", header, sizeof header, false);
    for (size_t at = 0, end = 4; at < size; at = end, end += 4) {
        while (end < size && memcmp(packed + end - 4, "\0\0\xff\xff", 4) != 0)
            end++;
        end = end < size ? end : size;
        png_put_chunk(&file, "IDAT", packed + at, end - at, false);
    }
    png_put_chunk(&file, "IEND", NULL, 0, false);
    free(raw);
    free(packed);
    return file;
}

static double wall_seconds(void) {
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

typedef struct hist_time {
    double wall, cpu; /* seconds */
} hist_time;

/* Run hist on the file. Update the minimum times. max_memory: limit of the decoder. */
static void time_hist(gf_engine *engine, uint64_t max_memory, hist_time *min,
                      uint64_t counts[256]) {
    const gf_filter *hist = gf_filter_find("hist");
    const gf_file_options options = {.max_memory = max_memory};
    const char *const paths[1] = {in_directory("in.png")};
    AUTO(settings) gf_settings *settings = test_settings(hist, "bins=256");
    AUTO(result) gf_result *result;
    const double wall = wall_seconds(), cpu = cpu_seconds();
    const gf_status status = test_run_files(
        &(test_files){engine, hist, settings, paths, NULL, &options, .result = &result});
    const hist_time took = {wall_seconds() - wall, cpu_seconds() - cpu};
    if (status)
        fail_msg("%s", why.message);
    min->wall = took.wall < min->wall ? took.wall : min->wall;
    min->cpu = took.cpu < min->cpu ? took.cpu : min->cpu;
    assert_string_equal(gf_result_table(result, 0)->columns[3].name, "grey");
    assert_true(gf_result_column(result, 0, 3, counts));
}

/* Return true unless several threads take longer than allowed. Some tolerance, because the machine
 * may be busy. With more than two, the CPU time contains waiting for each other. */
static bool within_limit(const hist_time *one, const hist_time *several, uint32_t threads) {
    return several->wall <= 1.5 * one->wall + 0.005 &&
           (threads > 2 || several->cpu <= 1.5 * one->cpu + 0.002);
}

/* Compare runs that differ only in the number of threads that decode: one and several, in turns, as
 * the load of the machine varies. */
TEST(several_threads_take_at_most_half_as_long_again) {
    static const waste_case cases[] = {
        {"false starts in stored blocks", fill_with_blocks, 0, Z_DEFAULT_STRATEGY, false},
        {"false starts in fixed blocks", fill_with_blocks, 9, Z_FIXED, false},
        {"no starts", fill_with_noise, 9, Z_FIXED, false},
        {"false ends of stored blocks", fill_with_ends, 0, Z_DEFAULT_STRATEGY, false},
        {"mostly stored blocks", fill_with_blocks, 0, Z_DEFAULT_STRATEGY, true},
        {"many small blocks", fill_with_noise, 1, Z_HUFFMAN_ONLY, false},
    };
    const uint64_t one_thread = 16 << 20; /* bytes: too few for the buffers of two threads */
    const size_t rows = hostile_all() ? 128 : 32;
    const uint32_t cores = gf_cores(), most = cores < 8 ? cores : 8;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        png_bytes file = wasteful_file(&cases[i], rows);
        put_bytes(in_directory("in.png"), file.data, file.size);
        free(file.data);
        for (uint32_t threads = 2; threads <= most; threads++) {
            const gf_engine_options options = {.backend = "cpu", .threads = threads};
            uint64_t expected[256], counts[256];
            gf_engine *engine;
            assert_ok(gf_engine_open(&options, &engine, NULL));
            hist_time one = {1e9, 1e9}, several = one;
            for (int k = 0; k < 5 || (k < 25 && !within_limit(&one, &several, threads)); k++) {
                time_hist(engine, one_thread, &one, expected);
                time_hist(engine, 0, &several, counts);
                assert_memory_equal(counts, expected, sizeof counts);
            }
            gf_engine_close(engine);
            print_message("%s, %u threads: wall %.1f to %.1f ms, %.2f, CPU %.1f to %.1f ms, %.2f\n",
                          cases[i].what, threads, one.wall * 1e3, several.wall * 1e3,
                          several.wall / one.wall, one.cpu * 1e3, several.cpu * 1e3,
                          several.cpu / one.cpu);
            assert_true(within_limit(&one, &several, threads));
        }
    }
}

int main(void) {
    return test_main_in_directory();
}
