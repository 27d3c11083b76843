/* Directories of TIFF files and of EXIF data: entries read from any bytes can be written, and are
 * read again from there as the same entries. */
#include "fuzz.h"

#include "io/meta/metadata.h"
#include "io/tiff/directory.h"

enum { GROUPS = (1 << GF_TIFF_GROUPS) - 1 - (1 << GF_TIFF_OTHER), FIRST = 16 };

static gf_status read_at(void *context, void *data, size_t size, uint64_t offset, gf_error *error) {
    const fuzz_bytes *bytes = context;
    if (offset > bytes->size || size > bytes->size - offset)
        return gf_set_error(error, GF_FAILED, "past the end");
    memcpy(data, bytes->data + offset, size);
    return GF_OK;
}

/* Write the directories after a header, read and write them again: the bytes must be equal. */
static void check_round_trip(const gf_tiff_list *list, bool big) {
    gf_tiff_list again = {.name = "x"};
    AUTO(free) gf_tiff_bytes one = {0}, two = {0};
    gf_error error;
    gf_status status = gf_tiff_list_write(list, GROUPS, FIRST, big, &one, &error);
    FUZZ_CHECK(!status, "%s", error.message);
    AUTO(free) unsigned char *file = calloc(1, FIRST + one.size);
    if (file == NULL)
        abort();
    memcpy(file, big ? "II+\0\x08\0\0\0\x10" : "II*\0\x10", big ? 9 : 5);
    memcpy(file + FIRST, one.data, one.size);
    status = gf_tiff_list_read(&again, file, FIRST + one.size, GROUPS, &error);
    FUZZ_CHECK(!status, "%s", error.message);
    status = gf_tiff_list_write(&again, GROUPS, FIRST, big, &two, &error);
    FUZZ_CHECK(!status, "%s", error.message);
    FUZZ_CHECK(one.size == two.size && memcmp(one.data, two.data, one.size) == 0,
               "different directories");
    gf_tiff_list_clear(&again);
}

static void check_metadata(const uint8_t *data, size_t size, uint64_t first) {
    const gf_limits limits = {.max_chunk = 1 << 12};
    fuzz_bytes bytes = {data, size};
    gf_tiff_tags tags;
    gf_error error = {0};
    AUTO(metadata) gf_metadata metadata = (gf_metadata){0};
    const gf_status status = gf_tiff_read_metadata(&(gf_ifd_file){read_at, &bytes, size, "x", NULL},
                                                   first, &metadata, &tags, &limits, &error);
    FUZZ_CHECK(tags.bytes <= 2 * limits.max_chunk, "tags of %" PRIu64 " bytes", tags.bytes);
    if (status)
        fuzz_check_error(status, &error);
    for (size_t i = 0; i < metadata.count; i++)
        FUZZ_CHECK(metadata.chunks[i].size < 4 * (limits.max_chunk + size), "item of %zu bytes",
                   metadata.chunks[i].size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gf_tiff_list list = {.name = "x"};
    gf_resolution resolution;
    gf_error error = {0};
    const gf_status status = gf_tiff_list_read(&list, data, size, GROUPS, &error);
    if (status)
        fuzz_check_error(status, &error);
    else
        for (int big = 0; big < 2; big++)
            check_round_trip(&list, big);
    gf_tiff_list_clear(&list);
    gf_chunk item = {GF_ITEM_EXIF, false, size, (unsigned char *)data}; /* only read */
    FUZZ_CHECK(gf_exif_orientation(&item) <= 8, "orientation");
    (void)gf_metadata_resolution(&(gf_metadata){.chunks = &item, .count = 1}, &resolution);
    check_metadata(data, size, size ? data[size - 1] : 0);
    return 0;
}
