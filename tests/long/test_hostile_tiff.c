/* Damaged TIFF files of every kind: each must be rejected with one line or be read, in limited time
 * and memory, with the same result for any number of threads. */
#include "tiff_file.h"

#include "hostile.h"

static hostile totals;

static outcome load_tiff(const png_bytes *file, uint32_t threads) {
    const gf_limits small = {.max_pixels = 100000,
                             .max_memory = 1 << 22,
                             .max_chunk = 1 << 12,
                             .threads = threads,
                             .segment = 300,
                             .no_sandbox = true}; /* all codecs */
    return load(file, file->size, &small, gf_tiff_codec.open_source, 5);
}

/* The reason, which libtiff gives in parentheses, depends on what a thread has decoded before. */
static void try_tiff(const png_bytes *file, const char *what, size_t where, hostile *to) {
    const double start = cpu_seconds();
    outcome one = load_tiff(file, 1), some = load_tiff(file, 3);
    const bool accepted = one.error.status == GF_OK;
    if (!accepted)
        assert_message(&one.error, "x.png: ");
    if (accepted != (some.error.status == GF_OK) || (accepted && !same_image(&one, &some)) ||
        (!accepted &&
         strncmp(one.error.message, some.error.message, strcspn(one.error.message, "(")) != 0))
        fail_msg("%s at %zu: different with three threads: %s, %s", what, where, one.error.message,
                 some.error.message);
    hostile_count(to, accepted, start, what, where);
    clear(&one);
    clear(&some);
}

/* Change some bytes, mostly in the header and the directories, which are at both ends. */
static void damage(png_bytes *file, test_random *random) {
    static const uint32_t values[] = {
        0,     1,          2,          3,          7,      255,     32768,      65535,
        65536, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffff, 1 << 20, 0xffffffff, 0x10000001};
    for (uint64_t changes = 1 + test_below(random, 4); changes != 0; changes--) {
        const uint64_t end = file->size < 400 || test_below(random, 4) == 0 ? file->size : 400;
        const bool at_end = test_below(random, 3) != 0;
        const uint64_t offset = test_below(random, end);
        const size_t at = (size_t)(at_end ? file->size - end + offset : offset);
        const uint32_t value = values[test_below(random, sizeof values / sizeof *values)];
        const size_t bytes = (size_t)1 << test_below(random, 3);
        switch (test_below(random, 6)) {
        case 0:
            file->data[at] ^= (unsigned char)(1u << test_below(random, 8));
            break;
        case 1:
            file->data[at] = (unsigned char)test_below(random, 256);
            break;
        case 2: /* the tag of a directory entry, or a value in it */
            file->data[at] = (unsigned char)(test_below(random, 70) + (at % 2 ? 0 : 254));
            break;
        case 3:
            file->size = test_below(random, 8) == 0 && at > 8 ? at : file->size;
            break;
        default:
            for (size_t i = 0; i < bytes && at + i < file->size; i++)
                file->data[at + i] = (unsigned char)(value >> 8 * i);
        }
    }
}

TEST(damaged_files) {
    const uint64_t seed = test_environment("GF_TEST_SEED", 1);
    const uint64_t files = hostile_all() ? 2500 : test_rounds(100);
    for (uint64_t i = 0; i < files; i++) {
        enum { VARIANTS = 40 };
        test_random random = test_seeded(seed + i);
        const tiff_spec spec = tiff_random(&random, i % 20 == 0 ? 150 : 40);
        AUTO(free) png_bytes file;
        assert_true(tiff_write(in_directory("x.tif"), &spec, 1, &random));
        file.data = test_bytes(in_directory("x.tif"), &file.size);
        for (size_t k = 0; k < VARIANTS; k++) {
            AUTO(free) png_bytes made = copy_of(&file);
            damage(&made, &random);
            try_tiff(&made, "seed", (size_t)(seed + i), &totals);
        }
    }
    hostile_print(&totals);
}

int main(void) {
    return test_main_in_directory();
}
