/* A decoder that was taken over: it is this file's gf_stb_decode that runs in the sandbox, and
 * writes into its result what it likes. */

#include <sys/wait.h>

#include "io/stb.h"
#include "io_util.h"

/* What it writes; the child has a copy. */
static gf_stb_result lie;

void gf_stb_decode(const gf_stb_task *task) {
    *task->result = lie;
    /* Somewhere in the memory that it has. */
    memset(task->arena->base + 64, 7, 4096);
}

static gf_status open_lie(const gf_limits *limits, gf_format *format, unsigned char **pixels,
                          gf_error *error) {
    memset(error, 0, sizeof *error);
    return load_image(in_folder("x.bmp"), limits, 5, format, pixels, NULL, error);
}

static int make_file(void **state) {
    static const char bmp[] =
        "BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\1\0\0\0\xfe\xff\xff\xff\1\0\x18\0\0\0\0\0\0\0\0\0"
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\3\2\1\0\6\5\4\0";
    if (make_folder(state) != 0)
        return 1;
    put_bytes(in_folder("x.bmp"), bmp, sizeof bmp - 1);
    return 0;
}

static const gf_stb_result truth = {.outcome = GF_STB_DECODED,
                                    .channels = 3,
                                    .type = GF_U8,
                                    .width = 10,
                                    .height = 20,
                                    .offset = 64};

/* Each of these changes one thing in it. */
static void believes_none_of_it(void **state) {
    const gf_limits limits = {.max_memory = (uint64_t)1 << 20};
    const struct {
        gf_stb_result lie;
        const char *part; /* of the message; NULL: accepted */
    } lies[] = {
        {{GF_STB_DECODED, 3, GF_U8, 10, 20, 64, ""}, NULL},
        {{GF_STB_NONE, 3, GF_U8, 10, 20, 64, ""}, "the decoder crashed and was stopped"},
        {{12345, 3, GF_U8, 10, 20, 64, ""}, "the decoder crashed and was stopped"},
        {{UINT32_MAX, 3, GF_U8, 10, 20, 64, ""}, "the decoder crashed and was stopped"},
        {{GF_STB_DECODED, 0, GF_U8, 10, 20, 64, ""}, "0 channels"},
        {{GF_STB_DECODED, 5, GF_U8, 10, 20, 64, ""}, "5 channels"},
        {{GF_STB_DECODED, UINT32_MAX, GF_U8, 10, 20, 64, ""}, "channels"},
        {{GF_STB_DECODED, 3, 3, 10, 20, 64, ""}, "unknown sample type"},
        {{GF_STB_DECODED, 3, UINT32_MAX, 10, 20, 64, ""}, "unknown sample type"},
        {{GF_STB_DECODED, 3, GF_U8, 0, 20, 64, ""}, "empty"},
        {{GF_STB_DECODED, 3, GF_U8, 10, 0, 64, ""}, "empty"},
        {{GF_STB_DECODED, 3, GF_U8, UINT64_MAX, UINT64_MAX, 64, ""}, "--max-pixels"},
        {{GF_STB_DECODED, 3, GF_U8, UINT64_C(1) << 32, UINT64_C(1) << 32, 64, ""}, "--max-pixels"},
        {{GF_STB_DECODED, 3, GF_U8, 1 << 20, 1, 64, ""}, "--max-memory"},
        /* Within the limits, but not within the arena. */
        {{GF_STB_DECODED, 3, GF_U8, 10, 20, UINT64_MAX, ""}, "stopped"},
        {{GF_STB_DECODED, 3, GF_U8, 10, 20, UINT64_MAX - 595, ""}, "stopped"},
        {{GF_STB_DECODED, 3, GF_U8, 10, 20, (2 << 20) - 596, ""}, "stopped"},
        {{GF_STB_DECODED, 3, GF_U8, 10, 20, 2 << 20, ""}, "stopped"},
        {{GF_STB_DECODED, 3, GF_F32, 10, 20, 65, ""}, "stopped"},
        /* Refusals that are none. */
        {{GF_STB_OVER_LIMIT, 3, GF_U8, 10, 20, 64, ""}, "stopped"},
        {{GF_STB_OVER_LIMIT, 3, GF_U8, 1 << 20, 1, 64, ""}, "--max-memory"},
        {{GF_STB_REJECTED, 3, GF_U8, 10, 20, 64, "say \x1b[2J\n\x80"}, "cannot decode (say ?[2J?"},
        {{GF_STB_OVER_MEMORY, 3, GF_U8, 10, 20, 64, ""}, "raise it with --max-memory"},
    };
    gf_format format;
    unsigned char *pixels;
    gf_error error;

    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        lie = lies[i].lie;
        const gf_status status = open_lie(&limits, &format, &pixels, &error);
        if (lies[i].part != NULL && status == GF_OK)
            fail_msg("lie %zu was believed", i);
        if (lies[i].part != NULL)
            assert_message(&error, lies[i].part);
        else if (status != GF_OK)
            fail_msg("%s", error.message);
        free(pixels);
    }
}

static void cuts_a_reason_off(void **state) {
    gf_format format;
    unsigned char *pixels;
    gf_error error;

    (void)state;
    lie = truth;
    lie.outcome = GF_STB_REJECTED;
    memset(lie.reason, 'x', sizeof lie.reason); /* and no end */
    assert_int_equal(open_lie(NULL, &format, &pixels, &error), GF_FAILED);
    assert_message(&error, "xxx); get an intact copy");
    assert_int_equal(strspn(strchr(error.message, '(') + 1, "x"), sizeof lie.reason - 1);
}

/* The pixels that come are those in the shared memory, and stay when the rest of it is gone. */
static void takes_the_pixels_where_they_are(void **state) {
    gf_format format;
    unsigned char *pixels;
    gf_error error;

    (void)state;
    lie = truth;
    assert_int_equal(open_lie(NULL, &format, &pixels, &error), GF_OK);
    for (size_t i = 0; i < 600; i++)
        assert_int_equal(pixels[i], 7);
    free(pixels);
}

/* Any numbers: refused with a line, or rows that can all be read. */
static void survives_any_numbers(void **state) {
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

    (void)state;
    for (int round = 0; round < 5000; round++) {
        gf_format format;
        unsigned char *pixels;
        gf_error error;
        lie = (gf_stb_result){
            .outcome =
                next_random(&seed) % 3 != 0 ? (uint32_t)GF_STB_DECODED : next_random(&seed) % 12,
            .channels = next_random(&seed) % 6,
            .type = next_random(&seed) % 4,
            .width = odd[next_random(&seed) % ODD] + next_random(&seed) % 3,
            .height = odd[next_random(&seed) % ODD] - next_random(&seed) % 3,
            .offset = odd[next_random(&seed) % ODD] & ~(uint64_t)(next_random(&seed) % 4),
        };
        if (open_lie(&limits, &format, &pixels, &error) == GF_OK)
            accepted++;
        else
            assert_message(&error, "x.bmp: ");
        free(pixels);
    }
    assert_in_range(accepted, 50, 4000);
}

/* What is told of a file is in it, though the decoder says that so few bytes are an image. */
static void describes_no_more_than_there_is(void **state) {
    gf_error error = {0};
    gf_source *source;

    (void)state;
    lie = truth;
    for (size_t size = GF_STB_MIN_BYTES; size < 40; size++) {
        put_bytes(in_folder("short.bmp"),
                  "BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0\0\0\0\0\0\0\0\0\1\0"
                  "\x18\0\0\0\0\0\0\0\0\0\0\0",
                  size);
        if (gf_source_open(in_folder("short.bmp"), NULL, &source, &error) == GF_OK)
            source->ops->close(source);
        else
            assert_message(&error, "ends too early");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(believes_none_of_it),
        cmocka_unit_test(cuts_a_reason_off),
        cmocka_unit_test(takes_the_pixels_where_they_are),
        cmocka_unit_test(survives_any_numbers),
        cmocka_unit_test(describes_no_more_than_there_is),
    };

    return cmocka_run_group_tests(tests, make_file, remove_folder);
}
