/* Metadata of BMP, PSD, GIF, HDR and TGA files. The bytes are untrusted; damaged metadata is
 * omitted. */
#include <stdlib.h>

#include "io/bytes.h"
#include "io/stb/raster.h"

/* Append an item, unless it is empty or the second one of this name. */
static void metadata_append(gf_raster_file *file, const char *item, const void *data, size_t size) {
    if (size != 0 && !gf_metadata_find(&file->metadata, item))
        gf_metadata_add(&file->metadata, item, false, data, size);
}

/* Append bytes of the file, unless they extend past its end. */
static void metadata_append_range(gf_raster_file *file, const char *item, uint64_t at,
                                  uint64_t size) {
    if (at <= file->size && size <= file->size - at)
        metadata_append(file, item, file->data + at, (size_t)size);
}

static void metadata_append_resolution(gf_raster_file *file, gf_resolution resolution) {
    if (resolution.x > 0 && resolution.y > 0)
        metadata_append(file, GF_ITEM_RESOLUTION, &resolution, sizeof resolution);
}

/* The info header begins at 14 and has 40 bytes with a resolution, and 124 with a profile. */
static void metadata_read_bmp(gf_raster_file *file) {
    enum { INFO = 14, PLAIN = 40, WITH_PROFILE = 124 };
    const unsigned char *data = file->data;
    if (file->size < INFO + PLAIN || gf_little32(data + INFO) < PLAIN)
        return;
    metadata_append_resolution(
        file, gf_resolution_of_metre(gf_little32(data + 38), gf_little32(data + 42)));
    if (file->size >= INFO + WITH_PROFILE && gf_little32(data + INFO) >= WITH_PROFILE &&
        memcmp(data + 70, "DEBM", 4) == 0) /* an embedded profile */
        metadata_append_range(file, GF_ITEM_ICC, (uint64_t)INFO + gf_little32(data + 126),
                              gf_little32(data + 130));
}

/* Append the image resources that are items: their data, or all of them for IPTC. The others are
 * settings of the editor and thumbnails. */
static void metadata_read_psd(gf_raster_file *file) {
    enum { COLORS = 26, RESOLUTION = 1005, ICC = 1039, EXIF = 1058, XMP = 1060 };
    const uint64_t at =
        file->size < COLORS + 4 ? file->size : COLORS + 8 + (uint64_t)gf_big32(file->data + COLORS);
    gf_resource r = {0};
    if (at > file->size || at < COLORS)
        return;
    const unsigned char *resources = file->data + at;
    const size_t left = file->size - at, size = gf_big32(resources - 4);
    while (gf_resource_next(resources, size < left ? size : left, &r)) {
        const unsigned char *data = resources + r.data;
        const char *item = r.id == ICC    ? GF_ITEM_ICC
                           : r.id == EXIF ? GF_ITEM_EXIF
                           : r.id == XMP  ? GF_ITEM_XMP
                                          : NULL;
        if (r.id == RESOLUTION && r.size >= 16)
            /* Per inch, with 16 fraction bits. The units are those of a dialog. */
            metadata_append_resolution(file,
                                       (gf_resolution){gf_big32(data) / 65536.0,
                                                       gf_big32(data + 8) / 65536.0, GF_PER_INCH});
        else if (r.id == GF_RESOURCE_IPTC)
            metadata_append(file, GF_ITEM_8BIM, resources + r.start, r.end - r.start);
        else if (item)
            metadata_append(file, item, data, r.size);
    }
}

/* Append the joined data of the sub-blocks at `at`, which begin with their size. */
static void metadata_append_blocks(gf_raster_file *file, const char *item, size_t at) {
    const unsigned char *data = file->data;
    size_t size = 0;
    if (data[at] == 0 || gf_metadata_find(&file->metadata, item))
        return;
    unsigned char *joined = malloc(file->size);
    if (!joined) {
        file->metadata.missing = file->size;
        return;
    }
    for (; at < file->size && data[at] != 0 && data[at] < file->size - at;
         at += 1 + (size_t)data[at]) {
        memcpy(joined + size, data + at + 1, data[at]);
        size += data[at];
    }
    metadata_append(file, item, joined, size);
    free(joined);
}

/* Visit the extensions before the first frame. */
static void metadata_read_gif(gf_raster_file *file) {
    enum { EXTENSION = '!', COMMENT = 0xfe, APPLICATION = 0xff, APPLICATION_BYTES = 12 };
    const unsigned char *data = file->data;
    for (size_t at = gf_gif_first_block(data);
         at && at + 2 + APPLICATION_BYTES < file->size && data[at] == EXTENSION;
         at = gf_gif_skip_blocks(data, file->size, at + 2)) {
        const unsigned char *id = data + at + 3;
        if (data[at + 1] == COMMENT)
            metadata_append_blocks(file, GF_ITEM_COMMENT, at + 2);
        else if (data[at + 1] == APPLICATION && memcmp(id, "ICCRGBG1012", 11) == 0)
            metadata_append_blocks(file, GF_ITEM_ICC, at + 2 + APPLICATION_BYTES);
        else if (data[at + 1] == APPLICATION && memcmp(id, "XMP DataXMP", 11) == 0)
            file->dropped |= GF_DROPPED_XMP;
    }
}

/* Report comments other than that of stb_image_write. The header ends with an empty line. */
static void metadata_read_hdr(gf_raster_file *file) {
    const unsigned char *line = file->data, *limit = line + file->size, *end;
    for (; (end = memchr(line, '\n', (size_t)(limit - line))) && end != line; line = end + 1)
        if (*line == '#' && line != file->data &&
            strncmp((const char *)line, "# Written by stb_image", 22) != 0)
            file->dropped |= GF_DROPPED_TEXT;
}

gf_status gf_raster_metadata(gf_raster_file *file, gf_error *error) {
    enum { TGA_HEADER = 18 };
    const gf_raster_kind kind = gf_raster_find(file->data);
    if (kind == GF_RASTER_BMP)
        metadata_read_bmp(file);
    else if (kind == GF_RASTER_PSD)
        metadata_read_psd(file);
    else if (kind == GF_RASTER_GIF)
        metadata_read_gif(file);
    else if (kind == GF_RASTER_HDR)
        metadata_read_hdr(file);
    else
        metadata_append_range(file, GF_ITEM_COMMENT, TGA_HEADER, file->data[0]);
    return gf_metadata_check(&file->metadata, file->name, error);
}
