/* A compromised decoder: this file replaces raster.c, which runs in the sandbox, by a function that
 * returns forged results. */

#include <sys/wait.h>

#include "io/stb/raster.h"
#include "io_util.h"

/* Result to return. The child has a copy. */
static gf_raster_result forged;

void gf_raster_decode(void *context) {
    const gf_raster_file *file = context;
    *(gf_raster_result *)(void *)file->shared.base = forged;
    memset(file->shared.base + GF_RASTER_PIXELS_AT, 7, 4096);
}

static gf_status open_forged(const gf_limits *limits, gf_format *format, unsigned char **pixels) {
    why = (gf_error){0};
    return load_image(in_directory("x.bmp"), limits, 5, format, pixels, NULL, &why);
}

static int make_file(void **state) {
    static const char bmp[] =
        "BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\1\0\0\0\xfe\xff\xff\xff\1\0\x18\0\0\0\0\0\0\0\0\0"
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\3\2\1\0\6\5\4\0";
    if (make_directory(state) != 0)
        return 1;
    put_bytes(in_directory("x.bmp"), bmp, sizeof bmp - 1);
    return 0;
}

static const gf_raster_result valid = {
    .outcome = GF_RASTER_READ, .channels = 3, .type = GF_U8, .width = 10, .height = 20};

/* Each case changes one field. */
TEST(rejects_forged_results) {
    const gf_limits limits = {.max_memory = (uint64_t)1 << 20};
    const struct {
        gf_raster_result forged;
        const char *part; /* expected in the message; NULL: accepted */
    } cases[] = {
        {{GF_RASTER_READ, 3, GF_U8, 10, 20, "", 0, 0, 0, 0, 0, 0}, NULL},
        {{GF_RASTER_NONE, 3, GF_U8, 10, 20, "", 0, 0, 0, 0, 0, 0},
         "the decoder crashed and was stopped"},
        {{12345, 3, GF_U8, 10, 20, "", 0, 0, 0, 0, 0, 0}, "the decoder crashed and was stopped"},
        {{UINT32_MAX, 3, GF_U8, 10, 20, "", 0, 0, 0, 0, 0, 0},
         "the decoder crashed and was stopped"},
        {{GF_RASTER_READ, 0, GF_U8, 10, 20, "", 0, 0, 0, 0, 0, 0}, "0 channels"},
        {{GF_RASTER_READ, 5, GF_U8, 10, 20, "", 0, 0, 0, 0, 0, 0}, "5 channels"},
        {{GF_RASTER_READ, UINT32_MAX, GF_U8, 10, 20, "", 0, 0, 0, 0, 0, 0}, "channels"},
        {{GF_RASTER_READ, 3, 3, 10, 20, "", 0, 0, 0, 0, 0, 0}, "unknown sample type"},
        {{GF_RASTER_READ, 3, UINT32_MAX, 10, 20, "", 0, 0, 0, 0, 0, 0}, "unknown sample type"},
        {{GF_RASTER_READ, 3, GF_U8, 0, 20, "", 0, 0, 0, 0, 0, 0}, "empty"},
        {{GF_RASTER_READ, 3, GF_U8, 10, 0, "", 0, 0, 0, 0, 0, 0}, "empty"},
        {{GF_RASTER_READ, 3, GF_U8, UINT64_MAX, UINT64_MAX, "", 0, 0, 0, 0, 0, 0}, "--max-pixels"},
        {{GF_RASTER_READ, 3, GF_U8, UINT64_C(1) << 32, UINT64_C(1) << 32, "", 0, 0, 0, 0, 0, 0},
         "--max-pixels"},
        {{GF_RASTER_READ, 3, GF_U8, 1 << 20, 1, "", 0, 0, 0, 0, 0, 0}, "--max-memory"},
        /* Rejections without a valid reason. */
        {{GF_RASTER_OVER_LIMIT, 3, GF_U8, 10, 20, "", 0, 0, 0, 0, 0, 0}, "stopped"},
        {{GF_RASTER_OVER_LIMIT, 3, GF_U8, 1 << 20, 1, "", 0, 0, 0, 0, 0, 0}, "--max-memory"},
        {{GF_RASTER_DAMAGED, 3, GF_U8, 10, 20, "say \x1b[2J\n\x80", 0, 0, 0, 0, 0, 0},
         "cannot decode (say ?[2J?"},
        {{GF_RASTER_OVER_MEMORY, 3, GF_U8, 10, 20, "", 0, 0, 0, 0, 0, 0}, "out of memory"},
        {{GF_RASTER_UNSUPPORTED, 3, GF_U8, 10, 20, "say \x1b[2J", 0, 0, 0, 0, 0, 0},
         "x.bmp: say ?[2J is not"},
        {{GF_RASTER_NO_PAGE, 3, GF_U8, 10, 20, "", 0, 0, 7, 0, 0, 0}, "choose one from 1 to 7"},
        {{GF_RASTER_READ, 3, GF_U8, 10, 20, "", UINT64_MAX, UINT32_MAX, UINT32_MAX, 0, 0, 0}, NULL},
    };
    gf_format format;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO(free) unsigned char *pixels;
        forged = cases[i].forged;
        const gf_status status = open_forged(&limits, &format, &pixels);
        if (cases[i].part != NULL && status == GF_OK)
            fail_msg("result %zu was accepted", i);
        if (cases[i].part != NULL)
            assert_message(&why, cases[i].part);
        else if (status != GF_OK)
            fail_msg("%s", why.message);
    }
}

TEST(truncates_a_long_reason) {
    gf_format format;
    unsigned char *pixels;
    forged = valid;
    forged.outcome = GF_RASTER_DAMAGED;
    memset(forged.reason, 'x', sizeof forged.reason); /* not terminated */
    assert_error(open_forged(NULL, &format, &pixels), GF_FAILED, "xxx); get an intact copy");
    assert_int_equal(strspn(strchr(why.message, '(') + 1, "x"), sizeof forged.reason - 1);
}

/* An image within the limits may be larger than the shared memory, which is less than they allow if
 * the address space is short. */
TEST(rejects_pixels_behind_the_memory) {
    const gf_limits limits = {.max_memory = UINT64_MAX, .max_pixels = UINT64_MAX};
    gf_format format;
    unsigned char *pixels;
    forged = valid;
    forged.width = (uint64_t)1 << 46;
    assert_error(open_forged(&limits, &format, &pixels), GF_FAILED,
                 "the decoder crashed and was stopped");
}

/* The pixels are those in the shared memory. They remain valid when the rest of it is unmapped. */
TEST(uses_the_pixels_in_shared_memory) {
    gf_format format;
    AUTO(free) unsigned char *pixels;
    forged = valid;
    assert_ok(open_forged(NULL, &format, &pixels));
    for (size_t i = 0; i < 600; i++)
        assert_int_equal(pixels[i], 7);
}

/* Random numbers either fail with a message or produce rows that can all be read. */
TEST(survives_random_numbers) {
    const gf_limits limits = {.max_memory = (uint64_t)1 << 20, .no_sandbox = true};
    static const uint64_t odd[] = {0,
                                   1,
                                   2,
                                   3,
                                   4,
                                   64,
                                   1000,
                                   4096,
                                   65536,
                                   (uint64_t)1 << 20,
                                   ((uint64_t)1 << 21) - 1,
                                   (uint64_t)1 << 31,
                                   UINT32_MAX,
                                   (uint64_t)1 << 32,
                                   (uint64_t)1 << 63,
                                   UINT64_MAX};
    enum { ODD = sizeof odd / sizeof *odd };
    uint32_t seed = 7;
    int accepted = 0;
    for (int round = 0; round < 5000; round++) {
        gf_format format;
        AUTO(free) unsigned char *pixels;
        forged = (gf_raster_result){
            .outcome =
                next_random(&seed) % 3 != 0 ? (uint32_t)GF_RASTER_READ : next_random(&seed) % 12,
            .channels = next_random(&seed) % 6,
            .type = next_random(&seed) % 4,
            .width = odd[next_random(&seed) % ODD] + next_random(&seed) % 3,
            .height = odd[next_random(&seed) % ODD] - next_random(&seed) % 3,
        };
        if (open_forged(&limits, &format, &pixels) == GF_OK)
            accepted++;
        else
            assert_message(&why, "x.bmp: ");
    }
    assert_in_range(accepted, 50, 4000);
}

/* The description uses only bytes of the file, even if the decoder accepts very few bytes. */
TEST(describes_bytes_of_the_file) {
    gf_source *source;
    forged = valid;
    for (size_t size = GF_RASTER_MIN_BYTES; size < 40; size++) {
        put_bytes(in_directory("short.bmp"),
                  "BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0\0\0\0\0\0\0\0\0\1\0"
                  "\x18\0\0\0\0\0\0\0\0\0\0\0",
                  size);
        if (gf_source_open(in_directory("short.bmp"), NULL, &source, &why) == GF_OK)
            source->ops->close(source);
        else
            assert_message(&why, "ends too early");
    }
}

int main(void) {
    return test_main(&(test_fixture){make_file, remove_directory});
}
