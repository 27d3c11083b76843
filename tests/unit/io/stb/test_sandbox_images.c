/* Images decoded in the sandbox: pixels equal to those without it, and memory within the limits. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "io_util.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { RSS_FACTOR = 8 };
#else
enum { RSS_FACTOR = 1 };
#endif

/* ---- pixels ---------------------------------------------------------------------------------- */

static const char gif[] =
    "GIF89a\2\0\2\0\x80\0\0\x0a\x14\x1e\xff\xff\xff"
    ",\0\0\0\0\2\0\2\0\0\2\3D\x34\5\0;";
static const char psd[] =
    "8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\4\0\x08\0\3"
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
    "\0\2\0\2\0\2\xfd\7\xfd\x08\xfd\x09";
static const char deep_psd[] =
    "8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\2\0\x10\0\3"
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    "\1\2\3\4\5\6\7\x08\x09\x0a\x0b\x0c";

/* Decode a file with and without the sandbox. Compare images or errors. Return true if decoded. */
static bool equals_unsandboxed(const char *name) {
    const gf_limits inside = {.max_memory = (uint64_t)64 << 20, .max_seconds = 20};
    gf_limits outside = inside;
    gf_format format[2];
    unsigned char *pixels[2];
    outside.no_sandbox = true;
    const gf_status first =
        load_image(in_directory(name), &inside, 3, &format[0], &pixels[0], NULL, &why);
    const gf_error error = why;
    const gf_status second =
        load_image(in_directory(name), &outside, 3, &format[1], &pixels[1], NULL, &why);
    if (first != second || strcmp(error.message, why.message) != 0)
        fail_msg("%s: '%s' and '%s'", name, error.message, why.message);
    if (first == GF_OK) {
        assert_int_equal(format[0].width, format[1].width);
        assert_int_equal(format[0].height, format[1].height);
        assert_int_equal(format[0].channels, format[1].channels);
        assert_int_equal(format[0].type, format[1].type);
        assert_memory_equal(pixels[0], pixels[1], gf_row_bytes(&format[0]) * format[0].height);
    }
    free(pixels[0]);
    free(pixels[1]);
    return first == GF_OK;
}

/* Compare files of every format, intact and with some random bytes. */
TEST(decodes_as_in_process) {
    static const struct {
        const char *name;
        uint32_t channels;
        gf_type type;
        const char *bytes; /* NULL: written by this test */
        size_t size;
    } files[] = {
        {"a.bmp", 3, GF_U8, NULL, 0},
        {"alpha.bmp", 4, GF_U8, NULL, 0},
        {"a.tga", 3, GF_U8, NULL, 0},
        {"alpha.tga", 4, GF_U8, NULL, 0},
        {"grey.tga", 1, GF_U8, NULL, 0},
        {"two.tga", 2, GF_U8, NULL, 0},
        {"a.hdr", 3, GF_F32, NULL, 0},
        {"a.gif", 0, GF_U8, gif, sizeof gif - 1},
        {"a.psd", 0, GF_U8, psd, sizeof psd - 1},
        {"deep.psd", 0, GF_U16, deep_psd, sizeof deep_psd - 1},
    };
    uint32_t seed = 1;
    int decoded = 0, rejected = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *name = files[i].name;
        size_t size;
        if (files[i].bytes != NULL) {
            put_bytes(in_directory(name), files[i].bytes, files[i].size);
        } else {
            const gf_format format = {61, 37, files[i].channels, files[i].type,
                                      files[i].channels % 2 == 0};
            unsigned char *pixels = random_pixels(&format, (uint32_t)i);
            if (format.type == GF_F32)
                memset(pixels, 0x3f, gf_row_bytes(&format) * format.height);
            assert_ok(save_image(in_directory(name), &format, pixels, NULL, NULL, 5));
            free(pixels);
        }
        if (!equals_unsandboxed(name))
            fail_msg("%s: is rejected", name);
        unsigned char *file = test_bytes(in_directory(name), &size);
        for (int round = 0; round < 40; round++) {
            unsigned char *damaged = malloc(size);
            memcpy(damaged, file, size);
            /* Damage two files in three in the first 200 bytes. */
            const size_t max = round % 3 == 0 || size < 200 ? size : 200;
            for (uint32_t n = 1 + next_random(&seed) % 3; n > 0; n--)
                damaged[4 + next_random(&seed) % (max - 4)] = (unsigned char)next_random(&seed);
            put_bytes(in_directory(name), damaged, size);
            *(equals_unsandboxed(name) ? &decoded : &rejected) += 1;
            free(damaged);
        }
        free(file);
    }
    assert_in_range(decoded, 50, 10000);
    assert_in_range(rejected, 50, 10000);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* Write a file of `head` and this number of zero bytes. */
static void put_head(const char *name, const void *head, size_t size, size_t bytes) {
    put_bytes(in_directory(name), head, size);
    assert_int_equal(truncate(in_directory(name), (off_t)(size + bytes)), 0);
}

/* Write a TGA whose header declares side x side pixels in runs, followed by this number of zero
 * bytes. */
static void put_large_claim(const char *name, uint16_t side, size_t bytes) {
    const unsigned char low = (unsigned char)side, high = (unsigned char)(side >> 8);
    const unsigned char head[18] = {0, 0, 10, [12] = low, high, low, high, 24};
    put_head(name, head, sizeof head, bytes);
}

/* Open a file in a child with a peak memory below this number of MiB. part: expected in the
 * message; NULL: the file opens. */
static void open_in(const char *name, const gf_limits *limits, long mebibytes, const char *part) {
    const pid_t child = fork();
    int status;
    if (child == 0) {
        struct rusage self, below;
        gf_source *source;
        const gf_status opened = gf_source_open(in_directory(name), limits, &source, &why);
        if (opened != (part != NULL ? GF_FAILED : GF_OK) ||
            (part != NULL && strstr(why.message, part) == NULL))
            _exit(1);
        (void)getrusage(RUSAGE_SELF, &self);
        (void)getrusage(RUSAGE_CHILDREN, &below);
        const long max = mebibytes * 1024 * RSS_FACTOR; /* KiB */
        _exit(self.ru_maxrss < max && below.ru_maxrss < max ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void reject_claim(const char *part) {
    open_in("x.tga", NULL, 64, part);
}

TEST(rejects_large_claims_in_little_memory) {
    put_large_claim("x.tga", 65500, 2000);
    reject_claim("ends too early");
    /* Only the beginning of a large file is read. */
    put_large_claim("x.tga", 65500, (size_t)200 << 20);
    reject_claim("the file and its image are over the limit");
    /* Within the limits, but without data. */
    put_large_claim("x.tga", 30000, 2000);
    reject_claim("x.tga: ");
    /* Missing data is not filled in: 8000x8000 pixels. */
    put_bytes(in_directory("x.tga"),
              "BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x18\0\0\0"
              "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\3\2\1\0\6\5\4",
              61);
    reject_claim("ends too early");
    /* A GIF cannot hold the pixels of its frame, or does not. */
    put_bytes(in_directory("x.tga"),
              "GIF89a\x20\x4e\x20\x4e\x80\0\0\x0a\x14\x1e\xff\xff\xff"
              ",\0\0\0\0\x20\x4e\x20\x4e\0\2\2D\1\0;",
              35);
    reject_claim("ends too early");
    put_bytes(in_directory("x.tga"),
              "GIF89a\xd0\x07\xd0\x07\x80\0\0\x0a\x14\x1e\xff\xff\xff"
              ",\1\0\0\0\xd0\x07\x01\0\0\2\2D\1\0;",
              35);
    reject_claim("pixels of the GIF are missing");
}

/* A file that cannot be an image is not read completely. */
TEST(reads_the_beginning_of_invalid_files) {
    const size_t large = (size_t)100 << 20;
    put_head("x.tga", "\xff\xff\xff", 3, large);
    open_in("x.tga", NULL, 64, "not that of a TGA");
    put_head("x.psd", "8BPS\0\1\0\0\0\0\0\0\0\4\0\0\0\4\0\0\0\4\0\x08\0\4", 26, large);
    open_in("x.psd", NULL, 64, "PSD other than RGB or grey");
    put_head("x.gif", "GIF89a\4\0\4\0\0\0\0\x55", 14, large);
    open_in("x.gif", NULL, 64, "the GIF has no frame");
    put_head("x.hdr", "#?RADIANCE\nnothing\n\n", 20, large);
    open_in("x.hdr", NULL, 64, "cannot decode");
}

/* A large file is in memory once, including the data after its pixels. */
TEST(loads_a_large_file_once) {
    const char head[] =
        "BM\0\0\0\0\0\0\0\0\x36\4\0\0\x28\0\0\0\4\0\0\0\4\0\0\0\1\0\x08\0"
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    put_head("x.bmp", head, sizeof head, (size_t)100 << 20);
    open_in("x.bmp", NULL, 130, NULL);
}

/* Reading from an endless pipe stops at the limit. */
TEST(stops_at_the_limit_of_a_pipe) {
    const gf_limits limits = {.max_memory = ((uint64_t)32 << 20) + 1000};
    static unsigned char zeros[1 << 16];
    put_large_claim("head.tga", 2000, sizeof zeros);
    assert_int_equal(mkfifo(in_directory("x.tga"), 0600), 0);
    const pid_t writer = fork();
    if (writer == 0) {
        size_t size;
        unsigned char *head = test_bytes(in_directory("head.tga"), &size);
        const int pipe = open(in_directory("x.tga"), O_WRONLY);
        while (write(pipe, head, size) > 0)
            memset(head, 0, size);
        _exit(0);
    }
    open_in("x.tga", &limits, 48, "over the limit of 33555432");
    (void)kill(writer, SIGKILL);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
}

int main(void) {
    return test_main_in_directory();
}
