/* Rows of uncompressed files: any number of threads reads and writes equal bytes and returns equal
 * errors. */
#define _GNU_SOURCE /* unshare */

#include "io_util.h"
#include "testing.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "io/bytes.h"
#include "io/file/output.h"

/* ---- byte order ------------------------------------------------------------------------------ */

TEST(swaps_any_number_of_bytes) {
    unsigned char in[700], out[700], expected[700];
    uint32_t seed = 1;
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)next_random(&seed);
    for (size_t count = 0; count < 130; count++)
        for (size_t shift = 0; shift < 3; shift++) {
            memset(out, PAINT, sizeof out);
            memset(expected, PAINT, sizeof expected);
            for (size_t i = 0; i < count; i++) {
                const uint16_t v = (uint16_t)(in[shift + 2 * i] << 8 | in[shift + 2 * i + 1]);
                memcpy(expected + 1 + 2 * i, &v, sizeof v);
            }
            gf_copy_order(out + 1, in + shift, count, 2, false);
            assert_memory_equal(out, expected, sizeof out);
            memcpy(out + 1, in + shift, 2 * count);
            gf_copy_order(out + 1, out + 1, count, 2, false);
            assert_memory_equal(out, expected, sizeof out);
            memcpy(expected + 1, in + shift, 2 * count);
            gf_copy_order(out + 1, in + shift, count, 2, gf_host_is_little());
            assert_memory_equal(out, expected, sizeof out);

            for (size_t i = 0; i < count; i++) {
                const unsigned char *p = in + shift + 4 * i;
                const uint32_t v =
                    (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
                memcpy(expected + 1 + 4 * i, &v, sizeof v);
            }
            gf_copy_order(out + 1, in + shift, count, 4, false);
            assert_memory_equal(out, expected, sizeof out);
            memcpy(expected + 1, in + shift, 4 * count);
            gf_copy_order(out + 1, in + shift, count, 4, gf_host_is_little());
            assert_memory_equal(out, expected, sizeof out);
        }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Small images; rows shorter and longer than one copy; rows larger than the part of one thread. */
static const gf_format formats[] = {
    {1, 1, 1, GF_U8, false},       {3, 100000, 1, GF_U8, false},  {511, 3000, 1, GF_U8, false},
    {301, 700, 3, GF_U8, false},   {64, 9000, 4, GF_U8, true},    {5, 70000, 2, GF_U16, true},
    {700, 900, 1, GF_U16, false},  {400000, 3, 1, GF_U16, false}, {600000, 2, 3, GF_U8, false},
    {1001, 333, 3, GF_U16, false}, {9, 9, 4, GF_U16, true},       {3, 50000, 1, GF_F32, false},
    {500, 800, 3, GF_F32, false},  {300001, 3, 1, GF_F32, false},
};

static const char *name_of(const gf_format *format) {
    return format->type == GF_F32 ? "x.pfm" : "x.pam";
}

/* Make the file sample by sample, as the format defines it. */
static unsigned char *make_file(const gf_format *format, const unsigned char *pixels,
                                size_t *size) {
    const size_t row = gf_row_bytes(format), bytes = gf_type_bytes(format->type);
    unsigned char *file = test_alloc(row * format->height + 200);
    static const char *const tuples[] = {"", "GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"};
    const unsigned long long width = format->width, height = format->height;
    const int head =
        format->type == GF_F32
            ? sprintf((char *)file, "%s\n%llu %llu\n-1.0\n", format->channels == 3 ? "PF" : "Pf",
                      width, height)
            : sprintf((char *)file,
                      "P7\nWIDTH %llu\nHEIGHT %llu\nDEPTH %u\nMAXVAL %d\nTUPLTYPE %s\nENDHDR\n",
                      width, height, format->channels, format->type == GF_U8 ? 255 : 65535,
                      tuples[format->channels]);
    unsigned char *to = file + head;
    const bool little = format->type == GF_F32;
    const size_t swap = little == gf_host_is_little() ? 0 : bytes - 1;
    for (uint64_t y = 0; y < format->height; y++) {
        const uint64_t from = format->type == GF_F32 ? format->height - 1 - y : y;
        for (size_t i = 0; i < row; i++, to++)
            *to = pixels[from * row + (i ^ swap)];
    }
    *size = (size_t)(to - file);
    return file;
}

TEST(reads_the_same_pixels_with_any_threads) {
    const uint32_t threads[] = {1, 2, 7, 16};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        const gf_format *format = &formats[f];
        AUTO(free) unsigned char *pixels = random_pixels(format, (uint32_t)f);
        size_t size;
        AUTO(free) unsigned char *file = make_file(format, pixels, &size);
        put_bytes(in_directory(name_of(format)), file, size);
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++)
            for (uint64_t strips = 1; strips <= 3; strips += 2) {
                const gf_limits limits = {.threads = threads[t]};
                assert_loads(in_directory(name_of(format)), &limits, format->height / strips + 1,
                             format, pixels);
            }
    }
}

/* Contiguous rows: one read call transfers many of them. */
TEST(reads_contiguous_rows) {
    const gf_format format = {1000, 1500, 1, GF_U16, false};
    AUTO(free) unsigned char *pixels = random_pixels(&format, 5);
    const size_t bytes = gf_row_bytes(&format) * format.height;
    AUTO(free) unsigned char *got = test_alloc(bytes);
    size_t size;
    AUTO(free) unsigned char *file = make_file(&format, pixels, &size);
    gf_source *source;
    put_bytes(in_directory("x.pam"), file, size);
    for (uint32_t threads = 1; threads < 5; threads++) {
        const gf_limits limits = {.threads = threads};
        source = open_source(in_directory("x.pam"), &limits);
        assert_int_equal(source->threads, threads > 1 ? threads : 0);
        memset(got, PAINT, bytes);
        assert_ok(source->ops->read(source, got, gf_row_bytes(&format), 1499, NULL));
        assert_ok(source->ops->read(source, got + 1499 * gf_row_bytes(&format), 5000, 1, NULL));
        assert_memory_equal(got, pixels, bytes);
        assert_ok(source->ops->finish(source, NULL));
        assert_int_equal(source->threads, threads > 1 ? threads : 0);
        assert_true(threads == 1 ? source->busy_seconds == 0 : source->busy_seconds > 0);
        source->ops->close(source);
    }
}

/* A file is truncated after it was opened. The error names the first missing row, whichever thread
 * detects the end. */
TEST(reports_the_first_missing_row) {
    const gf_format format = {1000, 3000, 1, GF_U8, false};
    AUTO(free) unsigned char *pixels = random_pixels(&format, 6), *got = test_alloc(1100 * 3000);
    size_t size;
    AUTO(free) unsigned char *file = make_file(&format, pixels, &size);
    for (uint32_t threads = 1; threads < 9; threads += 7)
        for (size_t stride = 1000; stride <= 1100; stride += 100) {
            const gf_limits limits = {.threads = threads};
            put_bytes(in_directory("x.pam"), file, size);
            AUTO(source) gf_source *source = open_source(in_directory("x.pam"), &limits);
            assert_int_equal(truncate(in_directory("x.pam"), (off_t)(size - 1234567)), 0);
            assert_error(source->ops->read(source, got, stride, 3000, &why), GF_FAILED,
                         "x.pam: the file ends too early, in row 1766 of 3000");
        }
}

/* Data after an image on standard input remains for the next reader. */
TEST(leaves_the_rest_of_standard_input) {
    char rest[8] = "";
    put_bytes(in_directory("two.pgm"), "P5 3 2 255\nabcdefP5 1", 21);
    assert_non_null(freopen(in_directory("two.pgm"), "rb", stdin));
    assert_loads("-", NULL, 2, &(gf_format){3, 2, 1, GF_U8, false}, "abcdef");
    assert_int_equal(fread(rest, 1, sizeof rest, stdin), 4);
    assert_memory_equal(rest, "P5 1", 4);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Write packed pixels in three strips from rows with gaps. */
static gf_status write_image(const char *path, const gf_format *format, const unsigned char *pixels,
                             uint32_t threads) {
    const size_t row = gf_row_bytes(format), stride = row + MARGIN;
    AUTO(free) unsigned char *rows = test_alloc(stride * format->height);
    gf_sink *sink;
    gf_status status = gf_sink_open(path, format, NULL, NULL, threads, &sink, &why);
    for (uint64_t y = 0; y < format->height; y++)
        memcpy(rows + y * stride, pixels + y * row, row);
    const uint64_t strip = format->height / 3 + 1;
    for (uint64_t y = 0; y < format->height && status == GF_OK; y += strip)
        status = sink->ops->write(sink, rows + y * stride, stride,
                                  format->height - y < strip ? format->height - y : strip, &why);
    if (status == GF_OK)
        status = sink->ops->finish(sink, NULL, &why);
    if (status == GF_OK)
        status = gf_output_commit(sink->output, &why);
    if (sink != NULL)
        sink->ops->close(sink);
    return status;
}

static void write_all_formats(void) {
    const uint32_t threads[] = {1, 2, 3, 7, 16};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        const gf_format *format = &formats[f];
        AUTO(free) unsigned char *pixels = random_pixels(format, (uint32_t)f);
        size_t size;
        AUTO(free) unsigned char *file = make_file(format, pixels, &size);
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            if (write_image(in_directory(name_of(format)), format, pixels, threads[t]) != GF_OK)
                fail_msg("%s", why.message);
            assert_bytes(in_directory(name_of(format)), file, size);
            assert_int_equal(count_files(true), 1);
        }
    }
}

TEST(writes_the_same_bytes_with_any_threads) {
    write_all_formats();
}

/* A full pipe accepts a part of the data, and then no data for a while. */
TEST(writes_to_a_nonblocking_pipe) {
    const gf_format format = {5001, 100, 1, GF_U8, false};
    AUTO(free) unsigned char *pixels = random_pixels(&format, 3);
    size_t size, got = 0;
    AUTO(free) unsigned char *file = make_file(&format, pixels, &size);
    AUTO(free) unsigned char *back = test_alloc(size + 1);
    int ends[2], code;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const gf_file_options options = {.write.format = "pam"};
        const size_t stride = 5001 + MARGIN;
        unsigned char *rows = calloc(100, stride);
        gf_sink *sink;
        bool ok = rows && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0 && dup2(ends[1], 1) == 1;
        for (size_t y = 0; ok && y < 100; y++)
            memcpy(rows + y * stride, pixels + y * 5001, 5001);
        ok = ok && !gf_sink_open("-", &format, NULL, &options, 1, &sink, NULL) &&
             !sink->ops->write(sink, rows, stride, 100, NULL) &&
             !sink->ops->finish(sink, NULL, NULL) && !gf_output_commit(sink->output, NULL);
        _exit(ok ? 0 : 1);
    }
    close(ends[1]);
    for (ssize_t more = 1; more > 0; got += (size_t)more) {
        nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
        more = read(ends[0], back + got, size + 1 - got < 7777 ? size + 1 - got : 7777);
        assert_true(more >= 0);
    }
    close(ends[0]);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
    assert_int_equal(got, size);
    assert_memory_equal(back, file, size);
}

/* ---- writing to a tmpfs ---------------------------------------------------------------------- */

/* Run a test in a child on a tmpfs with these options. Skip it if mounting is not allowed. */
static void run_in_memory(const char *options, void (*run)(void)) {
    enum { CANNOT = 77 };
    int code = 0;
    const pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        const int spaces = CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER);
        if (unshare(spaces) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, "") != 0 ||
            mount("gpufilter-test", test_directory, "tmpfs", 0, options) != 0)
            _exit(CANNOT);
        run();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    if (WIFEXITED(code) && WEXITSTATUS(code) == CANNOT)
        test_skip("mounting a file system is not permitted");
    assert_true(WIFEXITED(code));
    assert_int_equal(WEXITSTATUS(code), 0);
}

/* Exit with a message if a condition fails: in the child, cmocka's assertions would jump out. */
static void must(bool ok, const char *what) {
    if (!ok) {
        fprintf(stderr, "%s\n", what);
        _exit(1);
    }
}

/* Check that a full file system causes no signal, leaves no file, and returns the same error at
 * every size. */
static void fill_the_disk(void) {
    for (uint64_t height = 100; height < 8000; height += 700)
        for (uint32_t threads = 1; threads <= 16; threads += 5) {
            const gf_format format = {1000, height, 1, GF_U8, false};
            AUTO(free) unsigned char *pixels = random_pixels(&format, 9);
            const gf_status status = write_image(in_directory("x.pam"), &format, pixels, threads);
            if (height * 1000 > 2 << 20) {
                must(status == GF_FAILED, "written to a full disk");
                must(strstr(why.message, "x.pam: cannot write: No space left on device") != NULL,
                     why.message);
                must(count_files(false) == 0, "a file was left");
            } else {
                must(status == GF_OK, why.message);
                must(count_files(true) == 1, "no output, or another file was left");
            }
        }
}

TEST(writes_in_memory) {
    run_in_memory("size=64m", write_all_formats);
}

TEST(survives_a_full_disk) {
    run_in_memory("size=2m", fill_the_disk);
}

int main(void) {
    return test_main_in_directory();
}
