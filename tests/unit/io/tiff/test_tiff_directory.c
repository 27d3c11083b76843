/* TIFF directories: reading and writing of lists of entries, from any bytes. */
#include "io/tiff/directory.h"

#include <tiff.h>

#include "io/meta/metadata.h"
#include "testing.h"

enum {
    ALL = 1 << GF_TIFF_IMAGE | 1 << GF_TIFF_RESOLUTION | 1 << GF_TIFF_GEO | 1 << GF_TIFF_EXIF |
          1 << GF_TIFF_INTEROP | 1 << GF_TIFF_GPS,
    MAX = 2048
};

/* ---- TIFF structures in any form ------------------------------------------------------------- */

typedef struct layout {
    bool little, big; /* byte order; BigTIFF */
} layout;

typedef struct block {
    layout form;
    size_t size;
    unsigned char data[MAX];
} block;

static void put(block *b, size_t at, uint64_t number, size_t bytes) {
    assert_true(at + bytes <= MAX);
    for (size_t i = 0; i < bytes; i++)
        b->data[at + i] = (unsigned char)(number >> (8 * (b->form.little ? i : bytes - 1 - i)));
    b->size = at + bytes > b->size ? at + bytes : b->size;
}

static block begin(layout form, uint64_t first) {
    block b = {.form = form};
    memcpy(b.data, form.little ? "II" : "MM", 2);
    put(&b, 2, form.big ? 43 : 42, 2);
    if (form.big) {
        put(&b, 4, 8, 2);
        put(&b, 6, 0, 2);
    }
    put(&b, form.big ? 8 : 4, first, form.big ? 8 : 4);
    return b;
}

/* Write entry k of the directory at an offset. The value has up to 4 bytes, or is an offset. */
static void put_entry(block *b, size_t directory, size_t k, uint32_t tag, uint32_t type,
                      uint64_t count, uint64_t value, size_t bytes) {
    const size_t wide = b->form.big ? 8 : 4;
    const size_t at = directory + (b->form.big ? 8 : 2) + k * (4 + 2 * wide);
    put(b, at, tag, 2);
    put(b, at + 2, type, 2);
    put(b, at + 4, count, wide);
    put(b, at + 4 + wide, 0, wide);
    put(b, at + 4 + wide, value, bytes);
}

static void put_count(block *b, size_t directory, uint64_t count) {
    put(b, directory, count, b->form.big ? 8 : 2);
    put_entry(b, directory, (size_t)count, 0, 0, 0, 0, 4); /* no further directory */
}

/* A structure with all four directories, and with tags that are not copied. */
static block make_full(layout form) {
    enum { FIRST = 16, EXIF = 300, INTEROP = 500, GPS = 600, TEXT = 800, RATIONALS = 840 };
    block b = begin(form, FIRST);
    const size_t wide = form.big ? 8 : 4;
    put_count(&b, FIRST, 8);
    put_entry(&b, FIRST, 0, 256, 4, 1, 17, 4);
    put_entry(&b, FIRST, 1, 270, 2, 12, TEXT, wide);
    memcpy(b.data + TEXT, "description", 12);
    put_entry(&b, FIRST, 2, 274, 3, 1, 5, 2);
    put_entry(&b, FIRST, 3, 282, 5, 1, form.big ? 300u : RATIONALS, 4);
    put_entry(&b, FIRST, 4, 306, 2, 3, 0, 4);
    put_entry(&b, FIRST, 5, TIFFTAG_EXIFIFD, form.big ? 16 : 4, 1, EXIF, wide);
    put_entry(&b, FIRST, 6, TIFFTAG_GPSIFD, 4, 1, GPS, 4);
    put_entry(&b, FIRST, 7, 305, 13, 1, GPS, 4); /* an offset where a text belongs */
    if (form.big)
        put(&b, FIRST + 8 + 3 * 20 + 16, 1, 4); /* 300 / 1 in the entry */
    put(&b, RATIONALS, 300, 4);
    put(&b, RATIONALS + 4, 1, 4);
    put(&b, RATIONALS + 8, 1, 4);
    put(&b, RATIONALS + 12, 250, 4);
    put(&b, RATIONALS + 16, 0, 4);
    put_count(&b, EXIF, 4);
    put_entry(&b, EXIF, 0, 33434, 5, 1, form.big ? 1u : RATIONALS + 8u, 4); /* ExposureTime */
    if (form.big)
        put(&b, EXIF + 8 + 16, 250, 4);
    put_entry(&b, EXIF, 1, 37500, 7, 20, TEXT, wide); /* MakerNote */
    put_entry(&b, EXIF, 2, 41486, 77, 1, 9, 4);       /* unknown type */
    put_entry(&b, EXIF, 3, TIFFTAG_INTEROPERABILITYIFD, 13, 1, INTEROP, 4);
    put_count(&b, INTEROP, 1);
    put_entry(&b, INTEROP, 0, 1, 2, 4, 0, 4);
    put(&b, INTEROP + (form.big ? 8u : 2u) + 4 + wide, form.little ? 0x383952 : 0x52393800, 4);
    put_count(&b, GPS, 1);
    put_entry(&b, GPS, 0, 6, 10, 1, form.big ? 300u : RATIONALS, 4);
    if (form.big)
        put(&b, GPS + 8 + 16, 1, 4);
    return b;
}

/* ---- reading --------------------------------------------------------------------------------- */

static const gf_tiff_entry *find(const gf_tiff_list *list, gf_tiff_group group, uint32_t tag) {
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].group == group && list->entries[i].tag == tag)
            return &list->entries[i];
    return NULL;
}

static uint32_t word(const gf_tiff_entry *entry, size_t i) {
    uint32_t value;
    assert_non_null(entry);
    memcpy(&value, (const unsigned char *)entry->value + 4 * i, 4);
    return value;
}

static void check_full(const gf_tiff_list *list) {
    const gf_tiff_entry *text = find(list, GF_TIFF_IMAGE, 270);
    const gf_tiff_entry *orientation = find(list, GF_TIFF_IMAGE, 274);
    const gf_tiff_entry *note = find(list, GF_TIFF_EXIF, 37500);
    uint16_t value = 0;
    assert_int_equal(list->count, 8);
    assert_true(text && text->count == 12);
    assert_string_equal((const char *)text->value, "description");
    assert_true(orientation && orientation->count == 1);
    memcpy(&value, orientation->value, 2);
    assert_int_equal(value, 5);
    assert_non_null(find(list, GF_TIFF_IMAGE, 306));
    assert_int_equal(word(find(list, GF_TIFF_RESOLUTION, 282), 0), 300);
    assert_int_equal(word(find(list, GF_TIFF_RESOLUTION, 282), 1), 1);
    assert_int_equal(word(find(list, GF_TIFF_EXIF, 33434), 1), 250);
    assert_true(note && note->count == 20 && note->type == 7);
    assert_memory_equal(note->value, "description\0\0\0\0\0\0\0\0", 20);
    assert_string_equal((const char *)find(list, GF_TIFF_INTEROP, 1)->value, "R98");
    assert_int_equal(word(find(list, GF_TIFF_GPS, 6), 0), 300);
}

static const layout forms[] = {{true, false}, {false, false}, {true, true}, {false, true}};
enum { FORMS = sizeof forms / sizeof *forms };

/* Read a copy of exactly this size, so that ASan detects reads past its end. */
static gf_status read_copy(gf_tiff_list *list, const unsigned char *data, size_t size,
                           uint32_t groups) {
    AUTO(free) unsigned char *copy = test_alloc(size ? size : 1);
    memcpy(copy, data, size);
    return gf_tiff_list_read(list, copy, size, groups, &why);
}

TEST(reads_every_form) {
    for (size_t f = 0; f < FORMS; f++) {
        const block b = make_full(forms[f]);
        gf_tiff_list list = {.name = "x"};
        assert_ok(read_copy(&list, b.data, b.size, ALL));
        check_full(&list);
        gf_tiff_list_clear(&list);
        assert_ok(read_copy(&list, b.data, b.size, 1 << GF_TIFF_GPS));
        assert_int_equal(list.count, 1);
        gf_tiff_list_clear(&list);
        assert_ok(read_copy(&list, b.data, b.size, 1 << GF_TIFF_IMAGE));
        assert_int_equal(list.count, 3);
        gf_tiff_list_clear(&list);
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

static void add(gf_tiff_list *list, gf_tiff_entry entry) {
    assert_ok(gf_tiff_list_add(list, &entry, NULL));
}

/* Write a list as a file whose directories start at `offset`. */
static size_t write_list(const gf_tiff_list *list, uint64_t offset, bool big, unsigned char *file) {
    const block head = begin((layout){true, big}, offset);
    gf_tiff_bytes bytes = {0};
    assert_ok(gf_tiff_list_write(list, ALL | 1 << GF_TIFF_OTHER, offset, big, &bytes, &why));
    assert_true(offset + bytes.size <= MAX);
    memset(file, 0xa5, MAX);
    memcpy(file, head.data, head.size);
    memcpy(file + offset, bytes.data, bytes.size);
    free(bytes.data);
    return (size_t)(offset + bytes.size);
}

TEST(writes_what_it_reads) {
    for (size_t f = 0; f < FORMS; f++)
        for (int big = 0; big < 2; big++)
            for (uint64_t offset = 16; offset < 100; offset += 42) {
                const block b = make_full(forms[f]);
                unsigned char file[MAX];
                gf_tiff_list list = {.name = "x"}, again = {.name = "x"};
                assert_ok(read_copy(&list, b.data, b.size, ALL));
                const size_t size = write_list(&list, offset, big, file);
                assert_ok(read_copy(&again, file, size, ALL));
                check_full(&again);
                gf_tiff_list_clear(&list);
                gf_tiff_list_clear(&again);
            }
}

/* Tags ascend, the first of equal ones is written, and values are at even offsets. */
TEST(writes_directories_in_order) {
    static const uint64_t offsets[] = {1, UINT32_MAX, 3};
    unsigned char file[MAX];
    gf_tiff_list list = {.name = "x"};
    for (uint32_t tag = 500; tag-- > 490;)
        add(&list, (gf_tiff_entry){GF_TIFF_OTHER, tag, 7, tag - 485, "0123456789abcd"});
    add(&list, (gf_tiff_entry){GF_TIFF_GEO, 494, 3, 1, "no"});
    add(&list, (gf_tiff_entry){GF_TIFF_IMAGE, 10, 16, 3, offsets});
    for (int big = 0; big < 2; big++) {
        const size_t entry = big ? 20 : 12, wide = big ? 8 : 4;
        const size_t size = write_list(&list, 20, big, file);
        const unsigned char *at = file + 20 + (big ? 8 : 2);
        assert_int_equal(file[20], 11);
        assert_int_equal(at[0], 10);
        assert_int_equal(at[2], big ? 16 : 4); /* LONG8 or LONG */
        const unsigned char *values = file + at[4 + wide] + 256 * at[5 + wide];
        assert_int_equal(values[0], 1);
        assert_int_equal(values[wide], 0xff);
        assert_int_equal(values[wide + 4], big ? 0 : 3);
        for (uint32_t k = 0; k < 10; k++) {
            at += entry;
            const uint32_t tag = at[0] + 256u * at[1], offset = at[4 + wide] + 256u * at[5 + wide];
            assert_int_equal(tag, 490 + k);
            assert_int_equal(at[2], 7);
            assert_int_equal(at[4], 5 + k);
            assert_true(5 + k <= wide || (offset % 2 == 0 && offset < size));
            assert_memory_equal(5 + k <= wide ? at + 4 + wide : file + offset, "0123456789abcd",
                                5 + k);
        }
        assert_memory_equal(at + entry, "\0\0\0\0\0\0\0\0", wide);
    }
    gf_tiff_list_clear(&list);
}

/* A classic directory lacks 64-bit integers that do not fit. */
TEST(omits_large_integers) {
    static const uint64_t numbers[] = {1, UINT64_C(1) << 32};
    unsigned char file[MAX];
    gf_tiff_list list = {.name = "x"};
    for (uint32_t count = 1; count <= 2; count++)
        add(&list, (gf_tiff_entry){GF_TIFF_EXIF, count, TIFF_LONG8, count, numbers});
    add(&list, (gf_tiff_entry){GF_TIFF_EXIF, 3, 17, 1, numbers});
    for (int big = 0; big < 2; big++) {
        gf_tiff_list again = {.name = "x"};
        const size_t size = write_list(&list, 16, big, file);
        assert_ok(read_copy(&again, file, size, ALL));
        assert_int_equal(again.count, big ? 3 : 1);
        assert_int_equal(again.entries[0].type, big ? TIFF_LONG8 : TIFF_LONG);
        gf_tiff_list_clear(&again);
    }
    gf_tiff_list_clear(&list);
}

TEST(writes_an_empty_directory) {
    unsigned char file[MAX];
    const gf_tiff_list list = {.name = "x"};
    assert_int_equal(write_list(&list, 16, false, file), 16 + 2 + 4);
    assert_memory_equal(file + 16, "\0\0\0\0\0\0", 6);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void expect_damaged(const block *b, uint32_t groups) {
    gf_tiff_list list = {.name = "x"};
    assert_error(read_copy(&list, b->data, b->size, groups), GF_FAILED, "damaged");
    gf_tiff_list_clear(&list);
}

TEST(damage_is_reported) {
    for (size_t f = 0; f < FORMS; f++) {
        const size_t wide = forms[f].big ? 8 : 4, first = forms[f].big ? 24 : 18;
        const size_t entry = 4 + 2 * wide;
        block b = make_full(forms[f]);
        b.data[0] = 'X';
        expect_damaged(&b, ALL);
        b = make_full(forms[f]);
        put(&b, 2, 44, 2);
        expect_damaged(&b, ALL);
        b = begin(forms[f], MAX); /* a directory past the end */
        expect_damaged(&b, ALL);
        b = make_full(forms[f]);
        put(&b, 16, forms[f].big ? UINT64_MAX : UINT16_MAX, wide == 8 ? 8 : 2); /* its count */
        expect_damaged(&b, ALL);
        b = make_full(forms[f]);
        put(&b, first + entry + 4, forms[f].big ? UINT64_MAX / 2 : UINT32_MAX, wide);
        expect_damaged(&b, ALL); /* the number of values */
        b = make_full(forms[f]);
        put(&b, first + entry + 4 + wide, b.size - 11, wide); /* a value that ends past the end */
        expect_damaged(&b, ALL);
        b = make_full(forms[f]);
        put(&b, first + 6 * entry + 4 + wide, b.size, 4); /* the GPS directory */
        expect_damaged(&b, ALL);
        gf_tiff_list list = {.name = "x"};
        assert_ok(read_copy(&list, b.data, b.size, 1 << GF_TIFF_EXIF));
        gf_tiff_list_clear(&list);
    }
}

/* Directories that refer to themselves and to each other end. */
TEST(loops_end) {
    for (size_t f = 0; f < FORMS; f++) {
        block b = begin(forms[f], 16);
        gf_tiff_list list = {.name = "x"};
        put_count(&b, 16, 3);
        put_entry(&b, 16, 0, TIFFTAG_EXIFIFD, 4, 1, 16, 4);
        put_entry(&b, 16, 1, TIFFTAG_GPSIFD, 4, 1, 16, 4);
        put_entry(&b, 16, 2, TIFFTAG_INTEROPERABILITYIFD, 4, 1, 16, 4);
        assert_ok(read_copy(&list, b.data, b.size, ALL));
        assert_true(list.count < 12);
        gf_tiff_list_clear(&list);
    }
}

/* Values may share bytes. */
TEST(reads_shared_values) {
    for (size_t f = 0; f < FORMS; f++) {
        block b = begin(forms[f], 16);
        gf_tiff_list list = {.name = "x"};
        put_count(&b, 16, 2);
        put_entry(&b, 16, 0, 271, 2, 400, 100, forms[f].big ? 8 : 4);
        put_entry(&b, 16, 1, 272, 2, 400, 100, forms[f].big ? 8 : 4);
        put(&b, 100, 'x', 1);
        put(&b, 499, 0, 1);
        assert_ok(read_copy(&list, b.data, b.size, ALL));
        assert_int_equal(list.count, 2);
        assert_memory_equal(list.entries[1].value, b.data + 100, 400);
        gf_tiff_list_clear(&list);
    }
}

/* Values that overlap cannot take much more memory than the file. */
TEST(amplification_is_damage) {
    block b = begin((layout){true, false}, 16);
    put_count(&b, 16, 100);
    for (size_t k = 0; k < 100; k++)
        put_entry(&b, 16, k, 270, 7, 1000, 0, 4);
    expect_damaged(&b, ALL);
}

/* Any bytes are accepted: truncations, and random changes. Lists that were read can be written. */
TEST(survives_any_bytes) {
    test_random random = {test_environment("GF_TEST_SEED", 77)};
    const int rounds = (int)test_environment("GF_TEST_ROUNDS", 20000);
    int read = 0;
    for (int round = 0; round < rounds; round++) {
        block b = make_full(forms[round % FORMS]);
        unsigned char file[4 * MAX];
        gf_tiff_list list = {.name = "x"};
        gf_tiff_bytes bytes = {0};
        gf_resolution resolution;
        if (round < (int)b.size)
            b.size = (size_t)round;
        else
            for (uint64_t k = 0; k <= test_below(&random, 4); k++)
                b.data[test_below(&random, round % 2 ? 400 : b.size)] =
                    (unsigned char)test_next(&random);
        gf_chunk item = {GF_ITEM_EXIF, false, b.size, b.data};
        (void)gf_exif_orientation(&item);
        (void)gf_metadata_resolution(&(gf_metadata){.chunks = &item, .count = 1}, &resolution);
        if (read_copy(&list, b.data, b.size, ALL) == GF_OK) {
            read++;
            assert_ok(gf_tiff_list_write(&list, ALL, 8, round & 1, &bytes, &why));
            assert_true(bytes.size + 8 < sizeof file);
            free(bytes.data);
        }
        gf_tiff_list_clear(&list);
    }
    assert_true(read > rounds / 10 && read < rounds);
}

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct file {
    const block *block;
    bool broken; /* no read succeeds */
} file;

static gf_status read_block_at(void *context, void *data, size_t size, uint64_t offset,
                               gf_error *error) {
    const file *f = context;
    if (f->broken)
        return gf_set_error(error, GF_FAILED, "cannot be read");
    assert_true(offset <= f->block->size && size <= f->block->size - offset);
    memcpy(data, f->block->data + offset, size);
    return GF_OK;
}

static gf_status read_tags(const block *b, bool broken, uint64_t max_chunk, gf_metadata *items,
                           gf_tiff_tags *tags) {
    const gf_limits limits = {.max_chunk = max_chunk};
    file f = {b, broken};
    *items = (gf_metadata){0};
    return gf_tiff_read_metadata(&(gf_ifd_file){read_block_at, &f, b->size, "x.tif", NULL}, 16,
                                 items, tags, &limits, &why);
}

static gf_status read_items(const block *b, bool broken, uint64_t max_chunk, gf_metadata *items) {
    gf_tiff_tags tags;
    return read_tags(b, broken, max_chunk, items, &tags);
}

TEST(reads_the_items_of_files) {
    for (size_t f = 0; f < FORMS; f++) {
        block b = make_full(forms[f]);
        gf_metadata items;
        /* IPTC data of type LONG, which are bytes; a GeoTIFF tag; a profile. */
        const size_t wide = forms[f].big ? 8 : 4;
        put_entry(&b, 16, 0, TIFFTAG_ICCPROFILE, 7, 9, 800, wide);
        put_entry(&b, 16, 7, TIFFTAG_RICHTIFFIPTC, 4, 3, 800, wide);
        put_entry(&b, 16, 4, 34735, 3, 6, 804, wide);
        gf_tiff_tags tags;
        assert_ok(read_tags(&b, false, 1 << 20, &items, &tags));
        assert_int_equal(tags.dropped, GF_DROPPED_OTHER); /* an unknown type */
        assert_string_equal(items.damaged, "");
        assert_int_equal(items.count, 4); /* without YResolution there is no resolution */
        const gf_chunk *icc = gf_metadata_find(&items, GF_ITEM_ICC);
        const gf_chunk *iptc = gf_metadata_find(&items, GF_ITEM_8BIM);
        const gf_chunk *exif = gf_metadata_find(&items, GF_ITEM_EXIF);
        const gf_chunk *geo = gf_metadata_find(&items, GF_ITEM_GEO);
        assert_true(icc && iptc && exif && geo);
        assert_int_equal(icc->size, 9);
        assert_memory_equal(icc->data, "descripti", 9);
        assert_int_equal(iptc->size, 24);
        assert_memory_equal(iptc->data,
                            "8BIM\4\4\0\0\0\0\0\x0c"
                            "description",
                            24);
        assert_int_equal(gf_exif_orientation(exif), 5);
        assert_true(gf_exif_set_orientation(exif, 3));
        assert_int_equal(gf_exif_orientation(exif), 3);
        gf_tiff_list list = {.name = "x"};
        assert_ok(read_copy(&list, geo->data, geo->size, ALL));
        assert_int_equal(list.count, 1);
        assert_int_equal(list.entries[0].tag, 34735);
        gf_tiff_list_clear(&list);
        gf_metadata_clear(&items);
        /* Limits and damage. */
        assert_error(read_items(&b, false, 11, &items), GF_FAILED, "--max-chunk");
        gf_metadata_clear(&items);
        assert_error(read_items(&b, false, 40, &items), GF_FAILED,
                     "--max-chunk"); /* all values together */
        gf_metadata_clear(&items);
        /* A file that ends too early is damaged; one that cannot be read is reported. */
        block cut = b;
        cut.size = 40;
        assert_ok(read_items(&cut, false, 1 << 20, &items));
        assert_string_equal(items.damaged, "EXIF");
        assert_int_equal(items.count, 0);
        gf_metadata_clear(&items);
        assert_int_equal(read_items(&b, true, 1 << 20, &items), GF_FAILED);
        assert_string_equal(why.message, "cannot be read");
        gf_metadata_clear(&items);
    }
}

/* Tags that are not copied count, too: libtiff holds their values. */
TEST(limits_all_tags) {
    for (size_t f = 0; f < FORMS; f++) {
        const uint64_t wide = forms[f].big ? 8 : 4;
        block b = begin(forms[f], 16);
        AUTO(metadata) gf_metadata items;
        gf_tiff_tags tags;
        put_count(&b, 16, 5);
        put_entry(&b, 16, 0, TIFFTAG_STRIPOFFSETS, 4, 200, 300, wide);
        put_entry(&b, 16, 1, 325, 4, 200, 300, wide);
        put_entry(&b, 16, 2, 330, 13, 25, 300, wide); /* SubIFDs */
        put_entry(&b, 16, 3, 65000, 1, 100, 300, wide);
        put_entry(&b, 16, 4, 65001, 1, 5000, 300, wide); /* ends after the file */
        put(&b, 1200, 0, 1);
        assert_ok(read_tags(&b, false, 100, &items, &tags));
        assert_int_equal(tags.bytes, 200);
        put_entry(&b, 16, 4, 270, 2, 1, 0, 4);
        assert_error(read_tags(&b, false, 100, &items, &tags), GF_FAILED,
                     "tag 270 has 1 values of 1 bytes; raise");
        assert_error(read_tags(&b, false, 99, &items, &tags), GF_FAILED,
                     "tag 330 has 25 values of 4 bytes; raise");
        put_entry(&b, 16, 2, 305, 2, 1, 0, 4);
        assert_error(read_tags(&b, false, 99, &items, &tags), GF_FAILED,
                     "tag 65000 has 100 values of 1 bytes; raise");
    }
}

/* IPTC data in a tag of its own is added to Photoshop resources that have none. */
TEST(joins_iptc_and_resources) {
    static const char angle[] = "8BIM\4\x0d\2ab\0\0\0\0\4\0\0\0\x1e"; /* with a name */
    static const char own[] = "8BIM\4\4\0\0\0\0\0\1x";                /* padded with the NUL */
    static const char iptc[] = "8BIM\4\4\0\0\0\0\0\4iptc";
    static const struct {
        const char *resources;
        size_t size;
        bool added;
    } cases[] = {{angle, sizeof angle - 1, true},
                 {own, sizeof own, false},
                 {angle, 13, true}, /* damaged: cut */
                 {angle, 16, true},
                 {"8BIM", 4, true},
                 {"x", 1, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        block b = begin(forms[0], 16);
        AUTO(metadata) gf_metadata items;
        const size_t size = cases[i].size, before = cases[i].added ? sizeof iptc - 1 : 0;
        put_count(&b, 16, 2);
        put_entry(&b, 16, 0, TIFFTAG_RICHTIFFIPTC, TIFF_BYTE, 4, 0, 4);
        memcpy(b.data + 16 + 2 + 8, "iptc", 4);
        put_entry(&b, 16, 1, TIFFTAG_PHOTOSHOP, TIFF_BYTE, size, 800, 4);
        memcpy(b.data + (size > 4 ? 800 : 16 + 2 + 12 + 8), cases[i].resources, size);
        b.size = 900;
        assert_ok(read_items(&b, false, 1 << 20, &items));
        assert_int_equal(items.count, 1);
        assert_string_equal(items.chunks[0].name, GF_ITEM_8BIM);
        assert_int_equal(items.chunks[0].size, before + size);
        assert_memory_equal(items.chunks[0].data, iptc, before);
        assert_memory_equal(items.chunks[0].data + before, cases[i].resources, size);
    }
}

/* Readers accept the unit as SHORT, as the specification says, and as LONG. */
TEST(reads_resolutions) {
    static const uint32_t types[] = {TIFF_SHORT, TIFF_LONG};
    for (size_t f = 0; f < FORMS; f++)
        for (size_t t = 0; t < 2; t++) {
            block b = begin(forms[f], 16);
            AUTO(metadata) gf_metadata items;
            gf_resolution r;
            put_count(&b, 16, 3);
            for (size_t k = 0; k < 2; k++) {
                put_entry(&b, 16, k, TIFFTAG_XRESOLUTION + (uint32_t)k, TIFF_RATIONAL, 1, 800, 4);
                if (b.form.big) { /* the value is in the entry */
                    put(&b, 16 + 8 + k * 20 + 12, 50, 4);
                    put(&b, 16 + 8 + k * 20 + 16, 4, 4);
                }
            }
            put(&b, 800, 50, 4);
            put(&b, 804, 4, 4);
            put_entry(&b, 16, 2, TIFFTAG_RESOLUTIONUNIT, types[t], 1, GF_PER_CM, t ? 4 : 2);
            assert_ok(read_items(&b, false, 1 << 20, &items));
            assert_true(gf_metadata_resolution(&items, &r));
            assert_true(r.x == 12.5 && r.y == 12.5);
            assert_int_equal(r.unit, GF_PER_CM);
        }
}

TEST(sets_the_orientation) {
    for (size_t f = 0; f < 2; f++) {
        block b = make_full(forms[f]);
        put(&b, 4, 16, 4);
        const gf_chunk item = {.data = b.data, .size = b.size};
        assert_true(gf_exif_set_orientation(&item, 8));
        assert_int_equal(gf_exif_orientation(&item), 8);
        put_entry(&b, 16, 2, 275, 3, 1, 5, 2);
        assert_false(gf_exif_set_orientation(&item, 8));
    }
}

int main(void) {
    return test_main(NULL);
}
