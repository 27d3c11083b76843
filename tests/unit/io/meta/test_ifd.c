/* The cursor for image file directories: the same entries in a file and in memory, from any bytes.
 */
#include "io/meta/ifd.h"

#include "testing.h"

enum { SIZE = 20000, FIRST = 5000, ENTRIES = 600 };

static gf_status read_bytes(void *context, void *data, size_t bytes, uint64_t offset,
                            gf_error *error) {
    const unsigned char *from = context;
    if (!from)
        return gf_set_error(error, GF_FAILED, "cannot be read");
    assert_true(bytes <= SIZE && offset <= SIZE - bytes);
    memcpy(data, from + offset, bytes);
    return GF_OK;
}

/* Return a file with a directory of random entries. Most values lie within it. */
static unsigned char *make_file(test_random *random, bool little, bool big) {
    unsigned char *data = test_zeros(SIZE);
    const gf_ifd_form *form = big ? &gf_ifd_big : &gf_ifd_classic;
    gf_ifd ifd = {.file = {.data = data, .size = SIZE}, .little = little};
    memcpy(data, little ? "II" : "MM", 2);
    gf_ifd_put(&ifd, 2, big ? 43 : 42, 2);
    gf_ifd_put(&ifd, form->offset, FIRST, form->offset);
    gf_ifd_put(&ifd, FIRST, ENTRIES, form->count);
    for (size_t k = 0; k < ENTRIES; k++) {
        const size_t at = FIRST + form->count + k * form->entry;
        gf_ifd_put(&ifd, at, k, 2);
        gf_ifd_put(&ifd, at + 2, test_below(random, 20), 2);
        gf_ifd_put(&ifd, at + 4, test_below(random, 4 << k % 8), form->offset);
        gf_ifd_put(&ifd, at + 4 + form->offset, test_below(random, SIZE + SIZE / 16), form->offset);
    }
    gf_ifd_put(&ifd, FIRST + form->count + ENTRIES * form->entry, 1234, form->offset);
    return data;
}

TEST(files_and_memory_are_the_same) {
    test_random random = {test_environment("GF_TEST_SEED", 3)};
    for (uint64_t round = 0; round < 64; round++) {
        AUTO(free) unsigned char *data = make_file(&random, round & 1, round & 2);
        /* Every other file is cut within the directory. */
        const uint64_t size = round & 4 ? FIRST + 8 + test_below(&random, ENTRIES * 12) : SIZE;
        gf_ifd file, memory;
        gf_ifd_entry one, other;
        uint64_t count = 0, inside = 0;
        assert_true(gf_ifd_open(&file, &(gf_ifd_file){read_bytes, data, size, "x", NULL}));
        assert_true(gf_ifd_open(&memory, &(gf_ifd_file){.data = data, .size = size}));
        assert_int_equal(gf_ifd_start(&file, FIRST), size == SIZE);
        assert_int_equal(gf_ifd_start(&memory, FIRST), size == SIZE);
        assert_int_equal(file.first, FIRST);
        assert_int_equal(gf_ifd_number(&file, file.link, file.form->offset),
                         size == SIZE ? 1234 : 0);
        for (; gf_ifd_next(&file, &one); count++) {
            assert_true(gf_ifd_next(&memory, &other));
            assert_memory_equal(&one, &other, offsetof(gf_ifd_entry, inside));
            assert_int_equal(one.inside, other.inside);
            assert_int_equal(one.tag, count);
            assert_int_equal(gf_ifd_integer(&file, &one), gf_ifd_integer(&memory, &other));
            if (!one.inside)
                continue;
            unsigned char value[5000];
            inside++;
            assert_int_equal(one.bytes, one.count * gf_ifd_type_bytes(one.type));
            assert_true(one.bytes <= size && one.value <= size - one.bytes);
            assert_true(one.bytes <= sizeof value);
            assert_true(gf_ifd_read(&file, value, one.bytes, one.value));
            assert_memory_equal(value, data + one.value, one.bytes);
        }
        assert_false(gf_ifd_next(&memory, &other));
        assert_int_equal(
            count, size == SIZE ? ENTRIES : (size - FIRST - file.form->count) / file.form->entry);
        assert_true(size < SIZE || (inside > ENTRIES / 2 && inside < ENTRIES));
    }
}

/* Directories that are not in the file have no entries. A failure of a read remains. */
TEST(refuses_what_is_not_there) {
    static const uint64_t directories[] = {0, SIZE - 1, SIZE, UINT64_MAX - 1, UINT64_MAX};
    test_random random = {1};
    AUTO(free) unsigned char *data = make_file(&random, true, true);
    gf_ifd ifd;
    gf_ifd_entry entry;
    assert_true(gf_ifd_open(&ifd, &(gf_ifd_file){read_bytes, data, SIZE, "x", NULL}));
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
        assert_false(gf_ifd_start(&ifd, directories[i]));
        assert_false(gf_ifd_next(&ifd, &entry));
        assert_false(gf_ifd_find(&ifd, directories[i], 0, UINT32_MAX, &entry));
        assert_int_equal(gf_ifd_number(&ifd, directories[i] ? directories[i] : SIZE, 8), 0);
    }
    for (uint64_t size = 0; size < 16; size++) /* the header is cut */
        assert_false(gf_ifd_open(&ifd, &(gf_ifd_file){read_bytes, data, size, "x", NULL}));
    assert_int_equal(ifd.cause.status, GF_OK);
    assert_false(gf_ifd_open(&ifd, &(gf_ifd_file){read_bytes, NULL, SIZE, "x", NULL}));
    assert_int_equal(ifd.cause.status, GF_FAILED);
    ifd.file.context = data;
    assert_false(gf_ifd_start(&ifd, FIRST));
    assert_false(gf_ifd_read(&ifd, &entry, 1, 0));
}

int main(void) {
    return test_main(NULL);
}
