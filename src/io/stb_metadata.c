/* Metadata of BMP, PSD, GIF, HDR and TGA files. The bytes are untrusted; damaged metadata is
 * omitted. */
#include <stdlib.h>

#include "core/error.h"
#include "io/bytes.h"
#include "io/raster.h"

/* Append an item, unless it is empty or the second one of this name. */
static gf_status metadata_append(gf_raster_file *file, const char *item, const void *data,
                                 size_t size, gf_error *error) {
    return size == 0 || gf_metadata_find(&file->metadata, item)
               ? GF_OK
               : gf_metadata_append(&file->metadata, item, false, data, size, file->name, error);
}

/* Append bytes of the file, unless they extend past its end. */
static gf_status metadata_append_range(gf_raster_file *file, const char *item, uint64_t at,
                                       uint64_t size, gf_error *error) {
    return at > file->size || size > file->size - at
               ? GF_OK
               : metadata_append(file, item, file->data + at, (size_t)size, error);
}

static gf_status metadata_append_resolution(gf_raster_file *file, gf_resolution resolution,
                                            gf_error *error) {
    return resolution.x > 0 && resolution.y > 0
               ? metadata_append(file, GF_ITEM_RESOLUTION, &resolution, sizeof resolution, error)
               : GF_OK;
}

/* The info header begins at 14 and has 40 bytes with a resolution, and 124 with a profile. */
static gf_status metadata_read_bmp(gf_raster_file *file, gf_error *error) {
    enum { INFO = 14, PLAIN = 40, WITH_PROFILE = 124 };
    const unsigned char *data = file->data;
    if (file->size < INFO + PLAIN || gf_little32(data + INFO) < PLAIN)
        return GF_OK;
    const gf_status status = metadata_append_resolution(
        file, gf_resolution_of_metre(gf_little32(data + 38), gf_little32(data + 42)), error);
    if (status || file->size < INFO + WITH_PROFILE || gf_little32(data + INFO) < WITH_PROFILE ||
        memcmp(data + 70, "DEBM", 4) != 0) /* an embedded profile */
        return status;
    return metadata_append_range(file, GF_ITEM_ICC, (uint64_t)INFO + gf_little32(data + 126),
                                 gf_little32(data + 130), error);
}

/* Append the image resources that are items: their data, or all of them for IPTC. The others are
 * settings of the editor and thumbnails. */
static gf_status metadata_read_psd(gf_raster_file *file, gf_error *error) {
    enum { COLORS = 26, RESOLUTION = 1005, ICC = 1039, EXIF = 1058, XMP = 1060 };
    const uint64_t at =
        file->size < COLORS + 4 ? file->size : COLORS + 8 + (uint64_t)gf_big32(file->data + COLORS);
    gf_status status = GF_OK;
    gf_resource r = {0};
    if (at > file->size || at < COLORS)
        return GF_OK;
    const unsigned char *resources = file->data + at;
    const size_t left = file->size - at, size = gf_big32(resources - 4);
    while (!status && gf_resource_next(resources, size < left ? size : left, &r)) {
        const unsigned char *data = resources + r.data;
        const char *item = r.id == ICC    ? GF_ITEM_ICC
                           : r.id == EXIF ? GF_ITEM_EXIF
                           : r.id == XMP  ? GF_ITEM_XMP
                                          : NULL;
        if (r.id == RESOLUTION && r.size >= 16)
            /* Per inch, with 16 fraction bits. The units are those of a dialog. */
            status = metadata_append_resolution(file,
                                                (gf_resolution){gf_big32(data) / 65536.0,
                                                                gf_big32(data + 8) / 65536.0,
                                                                GF_PER_INCH},
                                                error);
        else if (r.id == GF_RESOURCE_IPTC)
            status =
                metadata_append(file, GF_ITEM_8BIM, resources + r.start, r.end - r.start, error);
        else if (item)
            status = metadata_append(file, item, data, r.size, error);
    }
    return status;
}

/* Append the joined data of the sub-blocks at `at`, which begin with their size. */
static gf_status metadata_append_blocks(gf_raster_file *file, const char *item, size_t at,
                                        gf_error *error) {
    const unsigned char *data = file->data;
    size_t size = 0;
    if (data[at] == 0 || gf_metadata_find(&file->metadata, item))
        return GF_OK;
    unsigned char *joined = malloc(file->size);
    if (!joined)
        return gf_fail_memory(error, file->name, file->size, "metadata");
    for (; at < file->size && data[at] != 0 && data[at] < file->size - at;
         at += 1 + (size_t)data[at]) {
        memcpy(joined + size, data + at + 1, data[at]);
        size += data[at];
    }
    const gf_status status = metadata_append(file, item, joined, size, error);
    free(joined);
    return status;
}

/* Visit the extensions before the first frame. */
static gf_status metadata_read_gif(gf_raster_file *file, gf_error *error) {
    enum { EXTENSION = '!', COMMENT = 0xfe, APPLICATION = 0xff, APPLICATION_BYTES = 12 };
    const unsigned char *data = file->data;
    gf_status status = GF_OK;
    for (size_t at = gf_gif_first_block(data);
         !status && at && at + 2 + APPLICATION_BYTES < file->size && data[at] == EXTENSION;
         at = gf_gif_skip_blocks(data, file->size, at + 2)) {
        const unsigned char *id = data + at + 3;
        if (data[at + 1] == COMMENT)
            status = metadata_append_blocks(file, GF_ITEM_COMMENT, at + 2, error);
        else if (data[at + 1] == APPLICATION && memcmp(id, "ICCRGBG1012", 11) == 0)
            status = metadata_append_blocks(file, GF_ITEM_ICC, at + 2 + APPLICATION_BYTES, error);
        else if (data[at + 1] == APPLICATION && memcmp(id, "XMP DataXMP", 11) == 0)
            file->dropped |= GF_DROPPED_XMP;
    }
    return status;
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
    switch (gf_raster_find(file->data)) {
    case GF_RASTER_BMP:
        return metadata_read_bmp(file, error);
    case GF_RASTER_PSD:
        return metadata_read_psd(file, error);
    case GF_RASTER_GIF:
        return metadata_read_gif(file, error);
    case GF_RASTER_HDR:
        metadata_read_hdr(file);
        return GF_OK;
    default:
        return metadata_append_range(file, GF_ITEM_COMMENT, TGA_HEADER, file->data[0], error);
    }
}
