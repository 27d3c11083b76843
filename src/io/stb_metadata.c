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

/* Append an image resource: its data, or all of it for IPTC. */
static gf_status psd_append(const stb_metadata *file, const gf_resource *r) {
    enum { RESOLUTION = 1005, ICC = 1039, EXIF = 1058, XMP = 1060 };
    const unsigned char *data = file->data + r->data;
    switch (r->id) {
    case RESOLUTION: /* per inch, with 16 fraction bits; the units are those of a dialog */
        return r->size < 16 ? GF_OK
                            : metadata_append_resolution(
                                  file, (gf_resolution){gf_big32(data) / 65536.0,
                                                        gf_big32(data + 8) / 65536.0, GF_PER_INCH});
    case GF_RESOURCE_IPTC:
        return metadata_append_range(file, GF_ITEM_8BIM, r->start, r->end - r->start);
    case ICC:
        return metadata_append_range(file, GF_ITEM_ICC, r->data, r->size);
    case EXIF:
        return metadata_append_range(file, GF_ITEM_EXIF, r->data, r->size);
    case XMP:
        return metadata_append_range(file, GF_ITEM_XMP, r->data, r->size);
    default: /* settings of the editor, thumbnails */
        return GF_OK;
    }
}

static gf_status psd_metadata(const stb_metadata *file) {
    enum { COLORS = 26 };
    const uint64_t at =
        file->size < COLORS + 4 ? file->size : COLORS + 8 + (uint64_t)gf_big32(file->data + COLORS);
    stb_metadata resources = *file;
    gf_status status = GF_OK;
    gf_resource resource = {0};
    if (at > file->size || at < COLORS)
        return GF_OK;
    const size_t size = gf_big32(file->data + at - 4);
    resources.data += at;
    resources.size = size < file->size - at ? size : file->size - at;
    while (!status && gf_resource_next(resources.data, resources.size, &resource))
        status = psd_append(&resources, &resource);
    return status;
}

/* ---- GIF ------------------------------------------------------------------------------------- */

/* Append the joined data of the sub-blocks at `at`, which begin with their size. */
static gf_status gif_append(const stb_metadata *file, const char *item, size_t at) {
    const unsigned char *data = file->data;
    size_t size = 0;
    if (at >= file->size || data[at] == 0 || gf_metadata_find(file->metadata, item))
        return GF_OK;
    unsigned char *joined = malloc(file->size);
    if (!joined)
        return gf_fail_memory(file->error, file->name, file->size, "metadata");
    for (; at < file->size && data[at] != 0 && data[at] < file->size - at;
         at += 1 + (size_t)data[at]) {
        memcpy(joined + size, data + at + 1, data[at]);
        size += data[at];
    }
    const gf_status status = size ? gf_metadata_append(file->metadata, item, false, joined, size,
                                                       file->name, file->error)
                                  : GF_OK;
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

/* ---- HDR ------------------------------------------------------------------------------------- */

/* Report comments other than that of stb_image_write. The header ends with an empty line. */
static gf_status hdr_metadata(const stb_metadata *file) {
    const unsigned char *line = file->data, *limit = line + file->size, *end;
    for (; (end = memchr(line, '\n', (size_t)(limit - line))) && end != line; line = end + 1)
        if (*line == '#' && line != file->data &&
            strncmp((const char *)line, "# Written by stb_image", 22) != 0)
            *file->dropped |= GF_DROPPED_TEXT;
    return GF_OK;
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
        return hdr_metadata(&file);
    return metadata_append_range(&file, GF_ITEM_COMMENT, TGA_HEADER, data[0]); /* TGA */
}
