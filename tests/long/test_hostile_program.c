/* Run the program on extreme files: each must be rejected with exit code 1 and one line, in time
 * and memory that do not depend on the sizes in the header. */
#define _DEFAULT_SOURCE /* wait4 */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "hostile.h"

/* Sanitizers need more time and memory; the measurements then mean nothing. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { MEASURED = 0 };
#else
enum { MEASURED = 1 };
#endif
enum { MAX_KIB = 64 << 10, MAX_MS = 100 };

static char program[2048];
static int files;
static long max_kib, max_ms, max_wall_ms;

static long ms_of(struct timeval time) {
    return (long)time.tv_sec * 1000 + (long)time.tv_usec / 1000;
}

static void start_program(const char *in, const char *out, const char *messages) {
    const int file = open(messages, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int null = open("/dev/null", O_RDWR);
    (void)dup2(null, 0);
    (void)dup2(null, 1);
    (void)dup2(file, 2);
    execl(program, "gpufilter", "smooth", in, out, (char *)NULL);
    _exit(127);
}

/* Expect the program to reject the file. words: part of the message. allowed_ms: CPU time. Frees
 * the file first, because the child starts as a copy of this process and its memory would count. */
static void check_rejected(const char *name, png_bytes *file, const char *words, long allowed_ms) {
    struct timespec begin, end;
    struct rusage usage;
    int status;
    size_t length;
    const char *in = in_directory(name), *out = in_directory("out.png"),
               *messages = in_directory("messages");
    const size_t size = file->size;
    put_bytes(in, file->data, size);
    free(file->data);
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    const pid_t child = fork();
    if (child == 0)
        start_program(in, out, messages);
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    char *message = (char *)test_bytes(messages, &length);
    const long ms = ms_of(usage.ru_utime) + ms_of(usage.ru_stime);
    const long wall = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
    print_message("%-18s %8zu bytes: %3ld ms (CPU time %ld ms), %2ld MiB: %s", name, size, wall, ms,
                  usage.ru_maxrss >> 10, strrchr(message, '/') + 1);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1 || strstr(message, words) == NULL)
        fail_msg("%s: status %d, expected '%s': %s", name, status, words, message);
    assert_ptr_equal(strchr(message, '\n'), message + length - 1);
    assert_int_equal(access(out, F_OK), -1);
    if (MEASURED && (ms > allowed_ms || usage.ru_maxrss > MAX_KIB))
        fail_msg("%s: %ld ms, %ld KiB", name, ms, usage.ru_maxrss);
    files++;
    max_kib = usage.ru_maxrss > max_kib ? usage.ru_maxrss : max_kib;
    if (allowed_ms == MAX_MS) {
        max_ms = ms > max_ms ? ms : max_ms;
        max_wall_ms = wall > max_wall_ms ? wall : max_wall_ms;
    }
    free(message);
    assert_int_equal(unlink(in), 0);
    assert_int_equal(unlink(messages), 0);
    assert_int_equal(count_files(false), 0);
}

/* ---- PNG ------------------------------------------------------------------------------------- */

/* Compress zeros to about 1.3 MB, once. */
static const unsigned char *bomb(size_t *size) {
    enum { BYTES = 1300000 };
    static unsigned char block[1 << 16], data[BYTES + 4096];
    static z_stream stream;
    *size = stream.total_out;
    if (*size)
        return data;
    stream.next_out = data;
    stream.avail_out = sizeof data;
    assert_int_equal(deflateInit(&stream, 9), Z_OK);
    while (stream.total_out < BYTES) {
        stream.next_in = block;
        stream.avail_in = sizeof block;
        assert_int_equal(deflate(&stream, Z_NO_FLUSH), Z_OK);
    }
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    *size = stream.total_out;
    (void)deflateEnd(&stream);
    return data;
}

/* Make a PNG of any size, with the chunks of `middle` before IDAT. */
static png_bytes png_of(uint32_t width, uint32_t height, int depth, int color, bool interlaced,
                        const png_bytes *middle, const void *idat, size_t idat_bytes) {
    const unsigned char header[13] = {(unsigned char)(width >> 24),
                                      (unsigned char)(width >> 16),
                                      (unsigned char)(width >> 8),
                                      (unsigned char)width,
                                      (unsigned char)(height >> 24),
                                      (unsigned char)(height >> 16),
                                      (unsigned char)(height >> 8),
                                      (unsigned char)height,
                                      (unsigned char)depth,
                                      (unsigned char)color,
                                      0,
                                      0,
                                      (unsigned char)(interlaced ? 1 : 0)};
    png_bytes rest = {0}, file;
    png_put_chunk(&rest, "IHDR", header, sizeof header, false);
    const size_t first = rest.size;
    png_put_chunk(&rest, "IDAT", idat, idat_bytes, false);
    png_put_chunk(&rest, "IEND", NULL, 0, false);
    const size_t between = middle != NULL ? middle->size : 0;
    file = (png_bytes){malloc(8 + rest.size + between), 8 + rest.size + between};
    assert_non_null(file.data);
    memcpy(file.data, "\x89PNG\r\n\x1a\n", 8);
    memcpy(file.data + 8, rest.data, first);
    if (between != 0)
        memcpy(file.data + 8 + first, middle->data, between);
    memcpy(file.data + 8 + first + between, rest.data + first, rest.size - first);
    free(rest.data);
    return file;
}

TEST(pngs_with_huge_sizes) {
    static const struct {
        const char *name;
        uint32_t width, height;
        int depth, color;
        bool interlaced;
        const char *words;
    } claims[] = {
        {"rgb.png", 200000, 200000, 8, 2, false, "--max-pixels"}, /* 4 * 10^10 pixels */
        {"bits.png", 200000, 200000, 1, 0, false, "--max-pixels"},
        {"deep.png", 200000, 200000, 16, 6, false, "--max-pixels"},
        {"adam7.png", 200000, 200000, 8, 2, true, "--max-pixels"},
        {"max.png", 0x7fffffff, 0x7fffffff, 16, 6, false, "--max-pixels"},
        {"wide.png", 0x7fffffff, 1, 16, 6, false, "--max-memory"},
        {"half.png", 50000, 50000, 8, 2, false, "ends too early"},
        {"held.png", 60000, 60000, 8, 2, true, "ends too early"},
        {"halfheld.png", 25000, 25000, 8, 6, true, "ends too early"},
    };
    size_t size;
    const unsigned char *data = bomb(&size);
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        png_bytes file = png_of(claims[i].width, claims[i].height, claims[i].depth, claims[i].color,
                                claims[i].interlaced, NULL, data, size);
        check_rejected(claims[i].name, &file, claims[i].words, MAX_MS);
    }
    /* A complete image, followed by much data. */
    png_bytes file = png_of(100, 100, 8, 2, false, NULL, data, size);
    check_rejected("surplus.png", &file, "too much data", MAX_MS);
}

static void try_chunks(const char *name, const char *chunk, const void *data, size_t size,
                       size_t count, size_t cut, const char *words) {
    png_bytes one = {0};
    size_t packed;
    png_put_chunk(&one, chunk, data, size, false);
    png_bytes middle = {malloc(one.size * count), one.size * count};
    assert_non_null(middle.data);
    for (size_t i = 0; i < count; i++)
        memcpy(middle.data + i * one.size, one.data, one.size);
    unsigned char *pixels = stream_of("\0\1", 2, &packed);
    png_bytes file = png_of(1, 1, 8, 0, false, &middle, pixels, packed);
    free(middle.data);
    free(one.data);
    free(pixels);
    file.size -= cut;
    check_rejected(name, &file, words, 1000);
}

/* cut: bytes removed at the end, to make the file invalid. */
TEST(pngs_of_many_chunks) {
    size_t size;
    const unsigned char *data = bomb(&size);
    AUTO(free) unsigned char *packed = malloc(size);
    assert_non_null(packed);
    memcpy(packed, data, size);
    /* Overwrite the header of the stream, which is never decompressed. */
    memcpy(packed, "a\0\0", 3);
    try_chunks("ztxt.png", "zTXt", packed, size, 1, 20, "ends too early");
    try_chunks("iccp.png", "iCCP", packed, size, 1, 20, "ends too early");
    try_chunks("million.png", "tEXt", "a\0", 2, 1000000, 0, "--max-chunk");
    try_chunks("unknown.png", "abcd", "", 0, 1000000, 4, "ends too early");
    try_chunks("empty.png", "IDAT", "", 0, 1000000, 4, "ends too early");
    AUTO(free) unsigned char *large = calloc(1, 17 << 20);
    assert_non_null(large);
    try_chunks("large.png", "tEXt", large, 17 << 20, 1, 0, "--max-chunk");
}

/* ---- other formats --------------------------------------------------------------------------- */

static png_bytes bytes_of(const void *data, size_t size, size_t filled, int filler) {
    png_bytes file = {malloc(size), size};
    assert_non_null(file.data);
    memset(file.data, filler, size);
    memcpy(file.data, data, filled);
    return file;
}

static void check_bytes_rejected(const char *name, const void *data, size_t size,
                                 const char *words) {
    png_bytes file = bytes_of(data, size, size, 0);
    check_rejected(name, &file, words, MAX_MS);
}

#define CHECK_REJECTED(name, literal, words)                                                       \
    check_bytes_rejected(name, literal, sizeof(literal) - 1, words)

TEST(rows_with_huge_sizes) {
    CHECK_REJECTED("a.pgm", "P5\n200000 200000\n255\n12345", "--max-pixels");
    CHECK_REJECTED("b.pgm", "P5\n65535 65535\n65535\n12345", "ends too early");
    CHECK_REJECTED("c.pgm", "P2\n65535 65535\n255\n1 2 3 4", "ends too early");
    CHECK_REJECTED("d.ppm", "P6\n18446744073709551615 18446744073709551615\n255\n1",
                   "--max-pixels");
    CHECK_REJECTED("e.pfm", "PF\n60000 60000\n-1\n12345", "ends too early");
    CHECK_REJECTED("f.pam", "P7\nWIDTH 4294967296\nHEIGHT 1\nDEPTH 4\nMAXVAL 65535\nENDHDR\n1",
                   "ends too early");
    CHECK_REJECTED("g.pgm", "P5\n8000000000 1\n255\n1", "ends too early");
    png_bytes comment = bytes_of("P5\n", 32 << 20, 3, '#');
    check_rejected("h.pgm", &comment, "too much text", 1000);
    png_bytes number = bytes_of("P5\n", 32 << 20, 3, '0');
    check_rejected("i.pgm", &number, "its width is not a number", 1000);
}

#define JPEG_OF(size)                                                                              \
    "\xff\xd8\xff\xc0\0\x11\x08" size                                                              \
    "\3\1\x22\0\2\x11\0\3\x11\0\xff\xda\0\x0c\3\1\0\2\0\3\0\0"                                     \
    "\x3f\0\1\2\3\4\5\6\7"

TEST(other_formats_with_huge_sizes) {
    static const char gif[] = "GIF89a\xff\xff\xff\xff\xf0\0\0abcdef,\0\0\0\0\1\0\1\0\0\2\1\x4c\0;";
    static const char canvas[] = "GIF89a\x20\x4e\x20\x4e\xf0\0\0abcdef";
    /* The codes are in blocks of 255 bytes. */
    static const char codes[] = "GIF89a\x10\x27\x10\x27\xf0\0\0abcdef,\0\0\0\0\x10\x27\x10\x27\0\7";
    unsigned char head[18] = {0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 32, 0};
    CHECK_REJECTED("a.jpg", JPEG_OF("\xff\xdc\xff\xdc"), "the JPEG is damaged");
    CHECK_REJECTED("b.jpg", JPEG_OF("\x75\x30\x75\x30"), "the JPEG is damaged");
    CHECK_REJECTED("a.gif", gif, "ends too early");
    CHECK_REJECTED("b.gif", canvas, "ends too early");
    png_bytes blocks = bytes_of(codes, sizeof codes + 200 * 256, sizeof codes - 1, 0xff);
    blocks.data[blocks.size - 1] = 0;
    check_rejected("c.gif", &blocks, "undefined code", MAX_MS);
    CHECK_REJECTED(
        "a.psd",
        "8BPS\0\1\0\0\0\0\0\0\0\3\0\0\x75\x30\0\0\x75\x30\0\x08\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
        "1234567890",
        "ends too early");
    CHECK_REJECTED("a.hdr", "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 60000 +X 60000\n\2\2\xea\x60",
                   "ends too early");
    CHECK_REJECTED("b.hdr", "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 16000 +X 16000\n\2\2\x3e\x80",
                   "ends too early");
    CHECK_REJECTED(
        "a.bmp",
        "BM\x42\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x30\x75\0\0\x30\x75\0\0\1\0\x18\0\0\0\0\0\0\0"
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "1234567890",
        "ends too early");
    CHECK_REJECTED(
        "b.bmp",
        "BM\x42\0\0\0\0\0\0\0\x3e\0\0\0\x28\0\0\0\x30\x75\0\0\x30\x75\0\0\1\0\1\0\0\0\0\0\0\0"
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "1234567890",
        "ends too early");
    png_bytes runs = bytes_of(head, 1300000, sizeof head, 0xff);
    check_rejected("a.tga", &runs, "", MAX_MS);
    head[13] = head[15] = 0x60;
    runs = bytes_of(head, 1300000, sizeof head, 0xff);
    check_rejected("b.tga", &runs, "ends too early", MAX_MS);
    head[13] = head[15] = 0x10;
    runs = bytes_of(head, 2000, sizeof head, 0xff);
    check_rejected("c.tga", &runs, "ends too early", MAX_MS);
}

TEST(summary_is_printed) {
    print_message(
        "%d files rejected by the program: at most %ld MiB; those with huge sizes: at most "
        "%ld ms of CPU time, %ld ms of wall time\n",
        files, max_kib >> 10, max_ms, max_wall_ms);
    assert_true(files > 30);
}

int main(int argc, char **argv) {
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    (void)snprintf(program, sizeof program, "%.*s../gpufilter",
                   slash != NULL ? (int)(slash + 1 - argv[0]) : 0, argv[0]);
    return test_main_in_directory();
}
