/* Broken PNG files: the reader and libpng reject the same files, except for the "Differences from
 * libpng" in docs/design-files.md, and decode the others to the same image. */
#include "png_broken.h"

TEST(truncated_files_are_rejected) {
    static const png_extra late = {"tEXt", 2, "Title\0after", 11, false};
    uint32_t seed = 4;
    for (int i = 0; i < 12; i++) {
        png_spec spec = random_spec(&seed, 20);
        AUTO(free) png_bytes file;
        spec.window_bits = 0;
        spec.interlaced = false;
        spec.extras = &late;
        spec.extra_count = 1;
        png_make(&spec, &file, NULL, NULL);
        for (size_t size = 8; size < file.size; size++) {
            outcome fast = load(&file, size, NULL, gf_png_codec.open_source, 3);
            assert_message(&fast.error, "x.png: the PNG ends too early; get a complete copy");
            clear(&fast);
        }
    }
}

static void check_flips(const png_spec *spec, int step, tally *count) {
    AUTO(free) png_bytes file;
    png_make(spec, &file, NULL, NULL);
    for (size_t bit = 64; bit < 8 * file.size; bit += (size_t)step) {
        AUTO(free) png_bytes broken = copy_of(&file);
        broken.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        check_same(&broken, "bit", bit, count);
        repair_checksums(&broken);
        check_same(&broken, "bit, valid checksum,", bit, count);
    }
}

/* Flip the bits of small files, and every seventh bit of random files. The environment variable
 * GF_PNG_FLIPS sets the number of random files (default: 4). */
TEST(flipped_bits_have_equal_results) {
    const char *more = getenv("GF_PNG_FLIPS");
    tally count = {0};
    uint32_t seed = 21;
    check_flips(&(png_spec){.width = 9, .height = 9, .color = 2, .depth = 8}, 1, &count);
    check_flips(&(png_spec){.width = 8, .height = 7, .depth = 16, .idat_bytes = 1}, 3, &count);
    check_flips(&(png_spec){.width = 30, .height = 9, .color = 3, .depth = 4, .idat_bytes = 50}, 1,
                &count);
    check_flips(&(png_spec){.width = 11, .height = 9, .color = 6, .depth = 8, .strategy = Z_FIXED},
                1, &count);
    check_flips(&(png_spec){.width = 11, .height = 3, .color = 4, .depth = 8, .level = -1}, 1,
                &count);
    for (int i = 0; i < (more != NULL ? atoi(more) : 4); i++) {
        const png_spec spec = random_spec(&seed, 40);
        check_flips(&spec, 7, &count);
    }
    print_tally(&count);
    assert_true(count.accepted > 0 && count.accepted < count.files);
}

/* ---- broken chunks --------------------------------------------------------------------------- */

TEST(misplaced_chunks) {
    static const struct {
        const char *name;
        const char *data;
        size_t size;
    } others[] = {
        {"IDAT", "", 0},
        {"IDAT", "12345", 5},
        {"tEXt", "A\0b", 3},
        {"tRNS", "\0\1", 2},
        {"PLTE", "\1\2\3", 3},
        {"IHDR", "\0\0\0\x0a", 4},
        {"gAMA", "\0\0\1\1", 4},
        {"ABCD", "x", 1},
        {"abCd", "x", 1},
        {"ab1d", "x", 1},
        {"\xff\xff\xff\xff", "", 0},
        {"IEND", "", 0},
        {"IEND", "x", 1},
    };
    setting s;
    size_t size;
    char long_data[300] = "";
    set_up(&s);
    AUTO(free) unsigned char *stream = stream_of(s.raw, RAW, &size);
    for (size_t i = 0; i <= sizeof others / sizeof *others; i++)
        for (int damaged = 0; damaged < 2; damaged++) {
            const bool is_long = i == sizeof others / sizeof *others;
            const char *name = is_long ? "IDAT" : others[i].name;
            const void *data = is_long ? long_data : others[i].data;
            const size_t bytes = is_long ? sizeof long_data : others[i].size;
            png_bytes middle = {0};
            /* Insert the chunk before, within and after the image data, and after other chunks. */
            for (size_t at = 0; at <= size; at += at < 4 || at + 6 > size ? 1 : 5) {
                png_put_chunk(&middle, "IDAT", stream, at, false);
                png_put_chunk(&middle, name, data, bytes, damaged);
                png_put_chunk(&middle, "IDAT", stream + at, size - at, false);
                (void)try_middle(&s, &middle, name);
            }
            png_put_chunk(&middle, "IDAT", stream, size, false);
            png_put_chunk(&middle, "gAMA", "\0\0\1\1", 4, false);
            png_put_chunk(&middle, name, data, bytes, damaged);
            png_put_chunk(&middle, name, data, bytes, false);
            (void)try_middle(&s, &middle, name);
            /* Inserted IDAT data may follow the rows. A difference is allowed there. */
            if (memcmp(name, "IDAT", 4) != 0)
                assert_int_equal(s.count.by[END_IS_DAMAGED], 0);
            s.count.by[END_IS_DAMAGED] = 0;
        }
    assert_true(s.count.accepted > 20);
    tear_down(&s);
}

TEST(invalid_chunk_lengths) {
    setting s;
    set_up(&s);
    for (size_t at = 8; at + 12 <= s.file.size; at += 12 + get32(s.file.data + at))
        for (unsigned bit = 0; bit < 32; bit++) {
            AUTO(free) png_bytes broken = copy_of(&s.file);
            broken.data[at + bit / 8] ^= (unsigned char)(0x80u >> bit % 8);
            check_same(&broken, "length", at, &s.count);
        }
    assert_int_equal(s.count.accepted, 0);
    tear_down(&s);
}

int main(void) {
    return test_main(NULL);
}
