/* Metadata of BMP, PSD, GIF and TGA files. The bytes are untrusted; damaged metadata is omitted. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "io/bytes.h"
#include "io/stb.h"

/* A file in memory, and where its metadata goes. */
typedef struct stb_metadata {
    const unsigned char *data;
    size_t size;
    gf_metadata *metadata;
    uint32_t *dropped;
    const char *name;
    gf_error *error;
} stb_metadata;

static uint32_t big16(const unsigned char *p) {
    return (uint32_t)p[0] << 8 | p[1];
}

/* Append bytes of the file. Return GF_OK without them if they extend past its end, and for a
 * second item of this name. */
static gf_status metadata_append_range(const stb_metadata *file, const char *item, uint64_t at,
                                       uint64_t size) {
    if (size == 0 || at > file->size || size > file->size - at ||
        gf_metadata_find(file->metadata, item))
        return GF_OK;
    return gf_metadata_append(file->metadata, item, false, file->data + at, (size_t)size,
                              file->name, file->error);
}

static gf_status metadata_append_resolution(const stb_metadata *file, gf_resolution resolution) {
    if (!(resolution.x > 0 && resolution.y > 0) ||
        gf_metadata_find(file->metadata, GF_ITEM_RESOLUTION))
        return GF_OK;
    return gf_metadata_append(file->metadata, GF_ITEM_RESOLUTION, false, &resolution,
                              sizeof resolution, file->name, file->error);
}

/* ---- BMP ------------------------------------------------------------------------------------- */

/* The info header begins at 14 and has 40 bytes with a resolution, and 124 with a profile. */
static gf_status bmp_metadata(const stb_metadata *file) {
    enum { INFO = 14, PLAIN = 40, WITH_PROFILE = 124 };
    const unsigned char *data = file->data;
    if (file->size < INFO + PLAIN || gf_little32(data + INFO) < PLAIN)
        return GF_OK;
    const gf_status status = metadata_append_resolution(
        file, gf_resolution_of_metre(gf_little32(data + 38), gf_little32(data + 42)));
    if (status || file->size < INFO + WITH_PROFILE || gf_little32(data + INFO) < WITH_PROFILE ||
        memcmp(data + 70, "DEBM", 4) != 0) /* an embedded profile */
        return status;
    return metadata_append_range(file, GF_ITEM_ICC, (uint64_t)INFO + gf_little32(data + 126),
                                 gf_little32(data + 130));
}

/* ---- PSD ------------------------------------------------------------------------------------- */

/* Append an image resource: its data, or the whole block for IPTC. */
static gf_status psd_append(const stb_metadata *file, uint32_t id, uint64_t block, uint64_t at,
                            uint64_t size) {
    enum { RESOLUTION = 1005, IPTC = 1028, ICC = 1039, EXIF = 1058, XMP = 1060 };
    const unsigned char *data = file->data + at;
    switch (id) {
    case RESOLUTION: /* per inch, with 16 fraction bits; the units are those of a dialog */
        return size < 16 ? GF_OK
                         : metadata_append_resolution(
                               file, (gf_resolution){gf_big32(data) / 65536.0,
                                                     gf_big32(data + 8) / 65536.0, GF_PER_INCH});
    case IPTC:
        return metadata_append_range(file, GF_ITEM_8BIM, block, at + size + size % 2 - block);
    case ICC:
        return metadata_append_range(file, GF_ITEM_ICC, at, size);
    case EXIF:
        return metadata_append_range(file, GF_ITEM_EXIF, at, size);
    case XMP:
        return metadata_append_range(file, GF_ITEM_XMP, at, size);
    default: /* settings of the editor, thumbnails */
        return GF_OK;
    }
}

/* A resource: "8BIM", number, name with its length, size, data. Name and data have even sizes. */
static gf_status psd_metadata(const stb_metadata *file) {
    enum { COLORS = 26, HEAD = 12 };
    const unsigned char *data = file->data;
    gf_status status = GF_OK;
    if (file->size < COLORS + 4)
        return GF_OK;
    uint64_t at = COLORS + 4 + (uint64_t)gf_big32(data + COLORS);
    if (at + 4 > file->size)
        return GF_OK;
    uint64_t end = at + 4 + gf_big32(data + at);
    end = end < file->size ? end : file->size;
    for (at += 4; at + HEAD <= end && !status && memcmp(data + at, "8BIM", 4) == 0;) {
        const uint64_t block = at, name = (uint64_t)data[at + 6] + 1;
        at += 6 + name + name % 2;
        if (at + 4 > end)
            return GF_OK;
        const uint64_t size = gf_big32(data + at);
        at += 4;
        if (size > end - at)
            return GF_OK;
        status = psd_append(file, big16(data + block + 4), block, at, size);
        at += size + size % 2;
    }
    return status;
}

/* ---- GIF ------------------------------------------------------------------------------------- */

/* Copy the data of sub-blocks, which begin with their size, and return the sum of the sizes. to:
 * NULL to count only. */
static size_t gif_join(const stb_metadata *file, size_t at, unsigned char *to) {
    size_t size = 0;
    while (at < file->size && file->data[at] != 0 && file->data[at] < file->size - at) {
        if (to)
            memcpy(to + size, file->data + at + 1, file->data[at]);
        size += file->data[at];
        at += 1 + (size_t)file->data[at];
    }
    return size;
}

static gf_status gif_append(const stb_metadata *file, const char *item, size_t at) {
    const size_t size = gif_join(file, at, NULL);
    if (size == 0 || gf_metadata_find(file->metadata, item))
        return GF_OK;
    unsigned char *joined = malloc(size);
    if (!joined)
        return gf_fail_memory(file->error, file->name, size, "metadata");
    (void)gif_join(file, at, joined);
    const gf_status status =
        gf_metadata_append(file->metadata, item, false, joined, size, file->name, file->error);
    free(joined);
    return status;
}

/* Visit the extensions before the first frame. */
static gf_status gif_metadata(const stb_metadata *file) {
    enum {
        SCREEN = 13,
        EXTENSION = '!',
        COMMENT = 0xfe,
        APPLICATION = 0xff,
        APPLICATION_BYTES = 12
    };
    const unsigned char *data = file->data;
    gf_status status = GF_OK;
    if (file->size < SCREEN)
        return GF_OK;
    size_t at = SCREEN + ((data[10] & 0x80) != 0 ? (size_t)3 << ((data[10] & 7) + 1) : 0);
    while (at + 2 + APPLICATION_BYTES < file->size && data[at] == EXTENSION && !status) {
        const unsigned char *id = data + at + 3;
        if (data[at + 1] == COMMENT)
            status = gif_append(file, GF_ITEM_COMMENT, at + 2);
        else if (data[at + 1] == APPLICATION && memcmp(id, "ICCRGBG1012", 11) == 0)
            status = gif_append(file, GF_ITEM_ICC, at + 2 + APPLICATION_BYTES);
        else if (data[at + 1] == APPLICATION && memcmp(id, "XMP DataXMP", 11) == 0)
            *file->dropped |= GF_DROPPED_XMP;
        for (at += 2; at < file->size && data[at] != 0;)
            at += 1 + (size_t)data[at];
        at++;
    }
    return status;
}

/* ---- all formats ----------------------------------------------------------------------------- */

gf_status gf_stb_metadata(const unsigned char *data, size_t size, gf_metadata *metadata,
                          uint32_t *dropped, const char *name, gf_error *error) {
    const stb_metadata file = {data, size, metadata, dropped, name, error};
    enum { TGA_HEADER = 18 };
    if (memcmp(data, "BM", 2) == 0)
        return bmp_metadata(&file);
    if (memcmp(data, "8BPS", 4) == 0)
        return psd_metadata(&file);
    if (memcmp(data, "GIF8", 4) == 0)
        return gif_metadata(&file);
    if (gf_stb_is_hdr(data))
        return GF_OK;
    return metadata_append_range(&file, GF_ITEM_COMMENT, TGA_HEADER, data[0]); /* TGA */
}
