/* Decode PNGs from the page cache with one and with several threads, and with libpng alone, and
 * discard the rows. Medians of ROUNDS, all programs in turns.
 *
 *     bench-decode [ROUNDS] FILE.png...
 *
 * "found" counts the segments of the compressed data, as io/png/parallel.c cuts them, in whose
 * first half the search finds the start of a block; a wrong position costs the time of a try.
 * Segments without a start belong to longer blocks. */
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/thread.h"
#include "io/bytes.h"
#include "io/codec.h"
#include "io/codecs.h"
#include "io/flate/inflate.h"

enum { MAX_ROUNDS = 99, MAX_VARIANTS = 8, STRIP_ROWS = 64, SEGMENT_BYTES = 1 << 19 };

static void fail(const char *file, const char *what) {
    fprintf(stderr, "bench-decode: %s: %s\n", file, what);
    exit(1);
}

static int compare_times(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- time ------------------------------------------------------------------------------------ */

static double time_of_reader(const char *file, uint32_t threads) {
    const gf_limits wanted = {.threads = threads, .max_pixels = UINT64_MAX};
    const gf_limits limits = gf_limits_resolve(&wanted);
    const double start = gf_now();
    gf_error error;
    gf_source *source;
    if (gf_source_open(file, &limits, &source, &error))
        fail(file, error.message);
    const size_t row = gf_row_bytes(&source->format);
    unsigned char *rows = malloc(row * STRIP_ROWS);
    if (!rows)
        fail(file, "out of memory");
    for (uint64_t y = 0, n = 0; y < source->format.height; y += n) {
        n = source->format.height - y < STRIP_ROWS ? source->format.height - y : STRIP_ROWS;
        if (source->ops->read(source, rows, row, n, &error))
            fail(file, error.message);
    }
    if (source->ops->finish(source, &error))
        fail(file, error.message);
    source->ops->close(source);
    free(rows);
    return gf_now() - start;
}

static void png_fails(png_structp png, png_const_charp message) {
    fail(png_get_error_ptr(png), message);
}

static double time_of_libpng(const char *file) {
    const double start = gf_now();
    FILE *in = fopen(file, "rb");
    png_structp png =
        png_create_read_struct(PNG_LIBPNG_VER_STRING, (png_voidp)(uintptr_t)file, png_fails, NULL);
    png_infop info = png_create_info_struct(png);
    if (!in || !info)
        fail(file, "cannot open");
    png_init_io(png, in);
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_read_info(png, info);
    unsigned char *row = malloc(png_get_rowbytes(png, info));
    if (!row)
        fail(file, "out of memory");
    for (png_uint_32 y = 0; y < png_get_image_height(png, info); y++)
        png_read_row(png, row, NULL);
    png_read_end(png, NULL);
    png_destroy_read_struct(&png, &info, NULL);
    free(row);
    (void)fclose(in);
    return gf_now() - start;
}

/* ---- segments -------------------------------------------------------------------------------- */

typedef struct segments {
    uint64_t in, out; /* bytes */
    uint64_t blocks, count, found, wrong;
} segments;

/* Return the IDAT data of a file, with readable bytes after it. */
static unsigned char *read_idat(const char *file, size_t *size) {
    FILE *in = fopen(file, "rb");
    unsigned char *data = NULL, header[8];
    if (!in || fread(header, 1, 8, in) != 8)
        fail(file, "cannot read");
    *size = 0;
    while (fread(header, 1, 8, in) == 8) {
        const size_t bytes = gf_big32(header);
        if (memcmp(header + 4, "IDAT", 4) != 0) {
            (void)fseek(in, (long)bytes + 4, SEEK_CUR);
            continue;
        }
        unsigned char *more = realloc(data, *size + bytes + GF_INFLATE_LOOKAHEAD);
        if (!more || fread(more + *size, 1, bytes, in) != bytes || fseek(in, 4, SEEK_CUR) != 0)
            fail(file, "cannot read");
        data = more;
        *size += bytes;
    }
    (void)fclose(in);
    if (*size < 2)
        fail(file, "no image data");
    memset(data + *size, 0, GF_INFLATE_LOOKAHEAD);
    return data;
}

/* Mark the bits at which a block starts, and stored blocks at the byte of their length. */
static void mark_starts(const unsigned char *data, size_t size, unsigned char *starts,
                        segments *to) {
    static gf_inflate inflate;
    static unsigned char memory[GF_DEFLATE_WINDOW + (1 << 20)];
    unsigned char *const base = memory + GF_DEFLATE_WINDOW;
    gf_inflate_out out = {.next = base, .end = memory + sizeof memory, .history = base};
    gf_inflate_start(&inflate, gf_isa_best());
    gf_inflate_set_input(&inflate, data, 0, data + size, true);
    for (gf_inflate_result result = GF_INFLATE_VALID; !inflate.last || result;) {
        unsigned bit;
        const unsigned char *at = gf_inflate_position(&inflate, &bit);
        if (!result) {
            size_t start = 8 * (size_t)(at - data) + bit;
            if ((gf_little16(at) >> bit & 6) == 0)
                start = (start + 3 + 7) / 8 * 8 - 3;
            starts[start / 8] |= (unsigned char)(1u << start % 8);
            to->blocks++;
        }
        result = gf_inflate_run(&inflate, &out);
        to->out += (uint64_t)(out.next - base);
        if (result && result != GF_INFLATE_NEEDS_OUTPUT)
            fail("stream", "damaged");
        const size_t total = to->out < GF_DEFLATE_WINDOW ? (size_t)to->out : GF_DEFLATE_WINDOW;
        memmove(base - total, out.next - total, total);
        out = (gf_inflate_out){.next = base, .end = out.end, .history = base - total};
    }
}

static segments count_segments(const char *file) {
    static gf_inflate_finder finder;
    segments count = {0};
    size_t size;
    unsigned char *data = read_idat(file, &size), *starts = calloc(1, size + 1);
    if (!starts)
        fail(file, "out of memory");
    count.in = size - 2;
    mark_starts(data + 2, size - 2, starts, &count);
    gf_inflate_finder_init(&finder);
    const uint64_t step = count.in * SEGMENT_BYTES / (count.out + 1) + 1;
    for (uint64_t at = step; at < count.in; at += step, count.count++) {
        gf_inflate_start_point found;
        const uint64_t end = at + step / 2 < count.in ? at + step / 2 : count.in;
        if (!gf_inflate_find(&finder, data + 2, count.in + GF_INFLATE_LOOKAHEAD, 8 * at, 8 * end,
                             &found))
            continue;
        if (starts[found.bit / 8] >> found.bit % 8 & 1)
            count.found++;
        else
            count.wrong++;
    }
    free(starts);
    free(data);
    return count;
}

/* ---- report ---------------------------------------------------------------------------------- */

static void bench_file(const char *file, int rounds) {
    static double times[MAX_VARIANTS][MAX_ROUNDS];
    const uint32_t cores = gf_cores();
    const segments count = count_segments(file);
    const char *name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    for (int round = -1; round < rounds; round++) {
        const int k = round < 0 ? 0 : round; /* the first round warms up */
        times[0][k] = time_of_libpng(file);
        uint32_t threads = 1;
        for (int v = 1; v < MAX_VARIANTS && threads <= cores; v++, threads *= 2)
            times[v][k] = time_of_reader(file, threads);
    }
    printf("%-20s %7.2f %7.2f %6llu %5llu/%-5llu %5llu", name, (double)count.in * 1e-6,
           (double)count.out * 1e-6, (unsigned long long)count.blocks,
           (unsigned long long)count.found, (unsigned long long)count.count,
           (unsigned long long)count.wrong);
    double one = 0;
    uint32_t threads = 1;
    for (int v = 0; v < MAX_VARIANTS && (v == 0 || threads <= cores); v++) {
        qsort(times[v], (size_t)rounds, sizeof(double), compare_times);
        const double middle = times[v][rounds / 2] * 1e3;
        one = v == 1 ? middle : one;
        printf(v < 2 ? " %7.1f" : " %7.1f (%.2f)", middle, middle / one);
        threads *= v == 0 ? 1 : 2;
    }
    printf("\n");
}

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 0, first = rounds > 0 ? 2 : 1;
    const uint32_t cores = gf_cores();
    if (argc <= first || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: bench-decode [ROUNDS] FILE.png...\n");
        return 2;
    }
    printf("%-20s %7s %7s %6s %11s %5s %7s", "milliseconds", "MB", "MB out", "blocks", "found",
           "wrong", "libpng");
    uint32_t threads = 1;
    for (int v = 1; v < MAX_VARIANTS && threads <= cores; v++, threads *= 2)
        printf(threads == 1 ? " %6u t" : " %6u t       ", threads);
    printf("\n");
    for (int i = first; i < argc; i++)
        bench_file(argv[i], rounds > 0 ? rounds : 9);
    return 0;
}
