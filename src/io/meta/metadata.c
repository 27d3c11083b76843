/* Metadata: lists of items, and conversion between PNG chunks and the items of other formats. */
#include "io/meta/metadata.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiff.h>
#include <zlib.h>

#include "core/error.h"
#include "core/image.h"
#include "io/bytes.h"

/* ---- lists ----------------------------------------------------------------------------------- */

gf_status gf_damage(gf_remarks *remarks, bool strict, const char *name, gf_error *error,
                    const char *format, ...) {
    char text[sizeof remarks->damage];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (strict)
        return gf_fail(error, GF_FAILED, "%s: %s; without --strict, this is a warning", name, text);
    if (!remarks->damage[0])
        memcpy(remarks->damage, text, sizeof text);
    return GF_OK;
}

/* Append the lines that are not present and fit. */
static void remarks_add_notes(gf_remarks *remarks, const char *lines) {
    while (*lines) {
        const size_t length = strcspn(lines, "\n"), used = strlen(remarks->notes);
        bool present = false;
        for (const char *at = remarks->notes; *at && !present; at += strcspn(at, "\n"), at += !!*at)
            present = strcspn(at, "\n") == length && memcmp(at, lines, length) == 0;
        if (!present && length && used + length + 2 <= sizeof remarks->notes)
            snprintf(remarks->notes + used, sizeof remarks->notes - used, "%s%.*s",
                     used ? "\n" : "", (int)length, lines);
        lines += length + (lines[length] == '\n');
    }
}

void gf_note(gf_remarks *remarks, const char *format, ...) {
    char text[sizeof remarks->notes];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    remarks_add_notes(remarks, text);
}

void gf_remarks_add(gf_remarks *remarks, const gf_remarks *from) {
    if (!remarks->damage[0])
        memcpy(remarks->damage, from->damage, sizeof remarks->damage);
    remarks_add_notes(remarks, from->notes);
    remarks->outside += from->outside;
    remarks->nodata += from->nodata;
}

void gf_metadata_clear(gf_metadata *metadata) {
    for (size_t i = 0; i < metadata->count; i++)
        free(metadata->chunks[i].data);
    free(metadata->chunks);
    *metadata = (gf_metadata){0};
}

/* Append an item and take ownership of its data; NULL: memory was short for it. */
static void metadata_own(gf_metadata *metadata, const char *name, bool late, unsigned char *data,
                         size_t size) {
    gf_chunk *chunks = metadata->chunks, chunk = {.late = late, .size = size, .data = data};
    const size_t count = metadata->count;
    /* The capacity is a power of two: the array is full when the count is 0 or a power of two. */
    if (data && (count & (count - 1)) == 0)
        chunks = realloc(chunks, (count ? 2 * count : 1) * sizeof *chunks);
    if (!data || !chunks) {
        metadata->missing = size + sizeof chunk;
        free(data);
        return;
    }
    memcpy(chunk.name, name, 4);
    chunks[metadata->count++] = chunk;
    metadata->chunks = chunks;
}

/* Return a head and data, joined, with a NUL at the end. */
static unsigned char *metadata_join(gf_metadata *metadata, const void *head, size_t head_size,
                                    const void *data, size_t size) {
    unsigned char *joined = calloc(1, head_size + size + 1);
    if (!joined)
        metadata->missing = head_size + size + 1;
    if (joined && head_size)
        memcpy(joined, head, head_size);
    if (joined && size)
        memcpy(joined + head_size, data, size);
    return joined;
}

void gf_metadata_add(gf_metadata *metadata, const char *name, bool late, const void *data,
                     size_t size) {
    metadata_own(metadata, name, late, metadata_join(metadata, NULL, 0, data, size), size);
}

gf_status gf_metadata_check(const gf_metadata *metadata, const char *file, gf_error *error) {
    return metadata->missing ? gf_fail_memory(error, file, metadata->missing, "metadata") : GF_OK;
}

static bool item_is(const gf_chunk *item, const char *name) {
    return memcmp(item->name, name, 4) == 0;
}

const gf_chunk *gf_metadata_find(const gf_metadata *metadata, const char *name) {
    for (size_t i = 0; i < metadata->count; i++)
        if (item_is(&metadata->chunks[i], name) && !metadata->chunks[i].late)
            return &metadata->chunks[i];
    return NULL;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

#define HEAD(text) text, sizeof(text)
#define NO_CHUNK NULL, "", 0
#define NO_TAG 0, 0

enum { APP0 = 0xe0, APP1, APP2, APP13 = 0xed, COM = 0xfe, GEO_KEYS = 34735 }; /* markers, a tag */

/* A segment of a JPEG is of the first kind whose head it has. After the keyword of an XMP chunk,
 * the flag of compression, the method, the language tag and the translated keyword are 0 or empty.
 */
const gf_item_kind gf_item_kinds[GF_ITEM_KINDS] = {
    {GF_ITEM_ICC, "ICC", "iCCP", "", 0, APP2, HEAD("ICC_PROFILE"), TIFFTAG_ICCPROFILE,
     TIFF_UNDEFINED, GF_DROPPED_ICC},
    {GF_ITEM_EXIF, NULL, "eXIf", "", 0, APP1, HEAD("Exif\0"), TIFFTAG_EXIFIFD, 0, GF_DROPPED_EXIF},
    {GF_ITEM_XMP, "XMP", "iTXt", HEAD("XML:com.adobe.xmp\0\0\0\0"), APP1,
     HEAD("http://ns.adobe.com/xap/1.0/"), TIFFTAG_XMLPACKET, TIFF_BYTE, GF_DROPPED_XMP},
    {GF_ITEM_8BIM, "IPTC", NO_CHUNK, APP13, HEAD("Photoshop 3.0"), TIFFTAG_PHOTOSHOP, TIFF_BYTE,
     GF_DROPPED_IPTC},
    {GF_ITEM_RESOLUTION, "resolution", "pHYs", "", 0, APP0, HEAD("JFIF"), TIFFTAG_XRESOLUTION, 0,
     GF_DROPPED_RESOLUTION},
    {GF_ITEM_COMMENT, "comment", "tEXt", HEAD("Comment"), COM, "", 0, NO_TAG, GF_DROPPED_TEXT},
    {GF_ITEM_APP1, NULL, NO_CHUNK, APP1, "", 0, NO_TAG, GF_DROPPED_OTHER},
    {GF_ITEM_GEO, "GeoTIFF", NO_CHUNK, 0, "", 0, GEO_KEYS, 0, GF_DROPPED_OTHER},
};

/* PNG chunks that are copied. Only PNG stores those that are not of a kind above. */
static const struct chunk_kind {
    const char *name;
    uint32_t dropped; /* bit of gf_dropped, unless the chunk is of a kind above */
    uint32_t bytes;   /* of the data; 0: any */
    bool early;       /* it precedes the pixels */
} chunk_kinds[] = {
    {"iCCP", 0, 0, false},
    {"eXIf", 0, 0, false},
    {"pHYs", 0, 9, true},
    {"tEXt", GF_DROPPED_TEXT, 0, false},
    {"zTXt", GF_DROPPED_TEXT, 0, false},
    {"iTXt", GF_DROPPED_TEXT, 0, false},
    {"sRGB", 0, 1, true},
    {"gAMA", GF_DROPPED_COLOUR, 4, true},
    {"cHRM", GF_DROPPED_COLOUR, 32, true},
    {"cICP", GF_DROPPED_COLOUR, 4, true},
    {"mDCV", GF_DROPPED_COLOUR, 24, true},
    {"cLLI", GF_DROPPED_COLOUR, 8, true},
    {"tIME", GF_DROPPED_OTHER, 7, false},
    {"", GF_DROPPED_OTHER, 0, false}, /* any other chunk */
};

const gf_item_kind *gf_item_kind_of(const gf_chunk *item) {
    for (const gf_item_kind *kind = gf_item_kinds; kind < gf_item_kinds + GF_ITEM_KINDS; kind++) {
        const size_t keyword = kind->keyword_bytes ? strlen(kind->keyword) + 1 : 0;
        if (item_is(item, kind->name) ||
            (kind->chunk && item_is(item, kind->chunk) && item->size >= keyword &&
             (keyword == 0 || memcmp(item->data, kind->keyword, keyword) == 0)))
            return kind;
    }
    return NULL;
}

/* Return whether a name is that of a GF_ITEM, not of a PNG chunk. */
static bool item_is_shared(const gf_chunk *item) {
    const gf_item_kind *kind = gf_item_kind_of(item);
    return kind && item_is(item, kind->name);
}

static const struct chunk_kind *chunk_find(const char *name) {
    const struct chunk_kind *kind = chunk_kinds;
    while (*kind->name && memcmp(name, kind->name, 4) != 0)
        kind++;
    return kind;
}

static uint32_t item_dropped(const gf_chunk *item) {
    const gf_item_kind *kind = gf_item_kind_of(item);
    return kind ? kind->dropped : chunk_find(item->name)->dropped;
}

const char *gf_metadata_label(const gf_chunk *item) {
    const char *label = item_is_shared(item) ? gf_item_kind_of(item)->label : NULL;
    return label ? label : item->name;
}

uint32_t gf_metadata_lost(const gf_metadata *metadata, gf_metadata_form form) {
    const bool srgb = gf_metadata_find(metadata, "sRGB");
    uint32_t lost = 0;
    for (size_t i = 0; i < metadata->count; i++) {
        const gf_chunk *item = &metadata->chunks[i];
        const gf_item_kind *kind = gf_item_kind_of(item);
        const bool kept = form == GF_FORM_PNG    ? !item_is_shared(item) || kind->chunk
                          : form == GF_FORM_JPEG ? kind && kind->marker && !item->late
                          : form == GF_FORM_TIFF ? kind && kind->tag
                                                 : false;
        /* A JPEG file stores metadata before the pixels only. */
        if (!kept && !(srgb && (item_is(item, "gAMA") || item_is(item, "cHRM"))))
            lost |= item_dropped(item);
        if (!kept && item_dropped(item) == GF_DROPPED_EXIF && gf_exif_orientation(item) > 1)
            lost |= GF_DROPPED_ORIENTATION;
    }
    return lost;
}

/* ---- PNG chunks ------------------------------------------------------------------------------ */

/* Return the offset after the text at `from`, which ends with a NUL, and `extra` bytes. Return 0 if
 * the chunk is too short. */
static size_t chunk_skip(const gf_chunk *chunk, size_t from, size_t extra) {
    const size_t left = chunk->size - from;
    const unsigned char *end = left ? memchr(chunk->data + from, 0, left) : NULL;
    const size_t at = end ? (size_t)(end - chunk->data) + 1 + extra : 0;
    return at <= chunk->size ? at : 0;
}

/* Return the offset of the profile of an iCCP chunk or of the text of another one, and whether it
 * is compressed. Return 0 if the chunk is too short, or compressed in an unknown way. */
static size_t chunk_payload_offset(const gf_chunk *chunk, bool *packed) {
    const bool international = item_is(chunk, "iTXt"), plain = item_is(chunk, "tEXt");
    size_t at = chunk_skip(chunk, 0, international ? 2 : !plain); /* the flags or the method */
    *packed = international ? at && chunk->data[at - 2] : !plain;
    if (at && *packed && (chunk->data[at - 1] || (international && chunk->data[at - 2] > 1)))
        return 0;
    for (int i = 0; i < 2 && at && international; i++) /* language tag, translated keyword */
        at = chunk_skip(chunk, at, 0);
    return at;
}

/* Return the profile of an iCCP chunk or the text of another one, decompressed to at most
 * GF_DEFAULT_MAX_CHUNK bytes, with a NUL; the caller frees it. Return NULL if it is damaged or too
 * large, or if memory is short, which metadata records. */
static unsigned char *chunk_payload(gf_metadata *metadata, const gf_chunk *chunk, size_t *size) {
    bool packed;
    const size_t at = chunk_payload_offset(chunk, &packed), left = chunk->size - at;
    *size = left;
    if (at && !packed)
        return metadata_join(metadata, NULL, 0, chunk->data + at, left);
    for (size_t capacity = 1 << 16; at && capacity <= GF_DEFAULT_MAX_CHUNK; capacity *= 4) {
        unsigned char *out = malloc(capacity);
        uLongf got = capacity - 1;
        const int result = out ? uncompress(out, &got, chunk->data + at, left) : Z_MEM_ERROR;
        if (result == Z_OK) {
            out[got] = '\0';
            *size = got;
            return out;
        }
        free(out);
        if (result == Z_MEM_ERROR)
            metadata->missing = capacity;
        if (result != Z_BUF_ERROR)
            break;
    }
    return NULL;
}

gf_resolution gf_resolution_of_metre(double x, double y) {
    const double per_inch = 0.0254;
    /* Whole numbers of pixels per inch are stored as rounded numbers per metre. */
    const double inch_x = rint(x * per_inch), inch_y = rint(y * per_inch);
    if (rint(inch_x / per_inch) == x && rint(inch_y / per_inch) == y)
        return (gf_resolution){inch_x, inch_y, GF_PER_INCH};
    return (gf_resolution){x / 100, y / 100, GF_PER_CM};
}

/* Return the resolution of a pHYs chunk; without a unit if its size is wrong. */
static gf_resolution chunk_resolution(const gf_chunk *chunk) {
    enum { BYTES = 9, PER_METRE = 1 };
    if (chunk->size != BYTES)
        return (gf_resolution){0};
    const double x = gf_big32(chunk->data), y = gf_big32(chunk->data + 4);
    return chunk->data[8] == PER_METRE ? gf_resolution_of_metre(x, y)
                                       : (gf_resolution){x, y, GF_PER_NONE};
}

/* Append a resolution in pixels per metre, unless it does not fit. */
static void chunk_append_resolution(gf_metadata *chunks, const gf_chunk *item) {
    gf_resolution r;
    unsigned char data[9];
    memcpy(&r, item->data, sizeof r);
    const double scale = r.unit == GF_PER_INCH ? 1 / 0.0254 : r.unit == GF_PER_CM ? 100 : 1;
    const double x = rint(r.x * scale), y = rint(r.y * scale);
    if (!(x >= 1 && x <= INT32_MAX && y >= 1 && y <= INT32_MAX))
        return;
    gf_put_big32(data, (uint32_t)x);
    gf_put_big32(data + 4, (uint32_t)y);
    data[8] = r.unit != GF_PER_NONE;
    gf_metadata_add(chunks, "pHYs", false, data, sizeof data);
}

static void chunk_append_icc(gf_metadata *chunks, const gf_chunk *item) {
    static const char head[] = "ICC profile\0"; /* with the NUL of the string: method 0 */
    uLongf size = compressBound(item->size);
    unsigned char *packed = malloc(size);
    if (packed && compress2(packed, &size, item->data, item->size, 9) == Z_OK)
        metadata_own(chunks, "iCCP", false, metadata_join(chunks, head, sizeof head, packed, size),
                     sizeof head + size);
    else
        chunks->missing = item->size + 1; /* compress2 has changed size */
    free(packed);
}

gf_status gf_metadata_to_png(const gf_metadata *metadata, gf_metadata *chunks, const char *file,
                             gf_error *error) {
    for (size_t i = 0; i < metadata->count; i++) {
        const gf_chunk *item = &metadata->chunks[i];
        const gf_item_kind *kind = gf_item_kind_of(item);
        const bool text = kind && kind->dropped == GF_DROPPED_TEXT;
        const size_t head = kind ? kind->keyword_bytes : 0;
        const size_t size = text ? strnlen((const char *)item->data, item->size) : item->size;
        if (!kind || !item_is(item, kind->name))
            gf_metadata_add(chunks, item->name, item->late, item->data, item->size);
        else if (kind->dropped == GF_DROPPED_ICC)
            chunk_append_icc(chunks, item);
        else if (kind->dropped == GF_DROPPED_RESOLUTION)
            chunk_append_resolution(chunks, item);
        else if (kind->chunk)
            metadata_own(chunks, kind->chunk, false,
                         metadata_join(chunks, kind->keyword, head, item->data, size), head + size);
    }
    return gf_metadata_check(chunks, file, error);
}

gf_status gf_metadata_to_items(const gf_metadata *metadata, gf_metadata *items, const char *file,
                               gf_error *error) {
    for (size_t i = 0; i < metadata->count; i++) {
        const gf_chunk *chunk = &metadata->chunks[i];
        const gf_item_kind *kind = gf_item_kind_of(chunk);
        if (kind && (item_is_shared(chunk) || kind->dropped == GF_DROPPED_EXIF)) {
            gf_metadata_add(items, kind->name, false, chunk->data, chunk->size);
        } else if (kind && kind->dropped == GF_DROPPED_RESOLUTION) {
            const gf_resolution resolution = chunk_resolution(chunk);
            if (resolution.unit)
                gf_metadata_add(items, kind->name, false, &resolution, sizeof resolution);
        } else if (kind) {
            size_t size;
            unsigned char *data = chunk_payload(items, chunk, &size);
            if (!data && !items->missing)
                return gf_fail(error, GF_FAILED,
                               "%s: the %s chunk is damaged; get an intact copy, or omit metadata "
                               "with --strip",
                               file, chunk->name);
            if (data)
                metadata_own(items, kind->name, false, data, size);
        }
    }
    return gf_metadata_check(items, file, error);
}

/* ---- chunks of a PNG ------------------------------------------------------------------------- */

bool gf_png_preserves(const unsigned char name[4]) {
    return *chunk_find((const char *)name)->name ||
           ((name[0] & 0x20) != 0 && (name[2] & 0x20) == 0 && (name[3] & 0x20) != 0);
}

static bool chunk_is_valid(const gf_chunk *chunk) {
    /* of tIME: month, day, hour, minute and second, after the year */
    static const unsigned char min[] = {1, 1, 0, 0, 0}, max[] = {12, 31, 23, 59, 60};
    enum { MAX_KEYWORD = 80 }; /* with its NUL */
    const struct chunk_kind *kind = chunk_find(chunk->name);
    const unsigned char *data = chunk->data;
    const size_t keyword = chunk_skip(chunk, 0, 0);
    const bool profile = item_is(chunk, "iCCP");
    bool packed;
    gf_ifd ifd;
    if (kind->bytes && (chunk->size != kind->bytes || (chunk->late && kind->early)))
        return false;
    for (size_t i = 0; item_is(chunk, "tIME") && i < sizeof min; i++)
        if (data[2 + i] < min[i] || data[2 + i] > max[i])
            return false;
    if (kind->bytes)
        return item_is(chunk, "sRGB")   ? data[0] <= 3
               : item_is(chunk, "gAMA") ? gf_big32(data) != 0
                                        : !item_is(chunk, "pHYs") || data[8] <= 1;
    if (profile || item_dropped(chunk) == GF_DROPPED_TEXT)
        return keyword > 1 && keyword <= MAX_KEYWORD && chunk_payload_offset(chunk, &packed) &&
               !(profile && chunk->late);
    return item_is(chunk, "eXIf") ? gf_exif_open(&ifd, chunk)
                                  : gf_png_preserves((const unsigned char *)chunk->name);
}

/* Replace a text in which ImageMagick stores EXIF data by the data: after the name and the size,
 * its bytes as hexadecimal digits. The caller frees *bytes. */
static void chunk_decode_exif(gf_metadata *metadata, gf_chunk *chunk, unsigned char **bytes) {
    static const char hex[] = "0123456789abcdef";
    size_t size, digits = 0, lines = 0;
    *bytes = chunk_payload(metadata, chunk, &size);
    if (!*bytes)
        return;
    for (size_t i = 1; i < size; i++) {
        const unsigned char c = (*bytes)[i];
        const char *digit = lines < 2 || !c ? NULL : strchr(hex, c);
        if (digit) /* the bytes are not longer than the text before them */
            (*bytes)[digits / 2] = (unsigned char)((*bytes)[digits / 2] << 4 | (digit - hex));
        digits += digit != NULL;
        lines += c == '\n';
    }
    const size_t head = digits > 12 && memcmp(*bytes, "Exif\0", 6) == 0 ? 6 : 0;
    const gf_chunk exif = {"eXIf", false, digits / 2 - head, *bytes + head};
    gf_ifd ifd;
    if (gf_exif_open(&ifd, &exif))
        *chunk = exif;
}

gf_status gf_metadata_append_chunk(gf_metadata *metadata, const gf_chunk *chunk, uint32_t *dropped,
                                   const char *file, gf_error *error) {
    static const char raw[] = "Raw profile type ";
    enum { MAX_RAW = 4 }; /* such texts, which limits the time */
    gf_chunk item = *chunk;
    unsigned char *decoded = NULL;
    if ((item_is(chunk, "zTXt") || item_is(chunk, "tEXt")) && chunk->size > sizeof raw &&
        memcmp(chunk->data, raw, sizeof raw - 1) == 0 && !chunk->late && metadata->raw++ < MAX_RAW)
        chunk_decode_exif(metadata, &item, &decoded);
    const struct chunk_kind *kind = chunk_find(item.name);
    /* A bit for a chunk that a file has once; 0 for others. */
    const uint64_t once =
        kind->bytes ? UINT64_C(1) << (16 + (kind - chunk_kinds))
                    : item_dropped(&item) & (GF_DROPPED_ICC | GF_DROPPED_EXIF | GF_DROPPED_XMP);
    if (!chunk_is_valid(&item) || once & metadata->seen)
        *dropped |= once & metadata->seen ? GF_DROPPED_OTHER : item_dropped(&item);
    else
        gf_metadata_add(metadata, item.name, item.late, item.data, item.size);
    metadata->seen |= once;
    free(decoded);
    return gf_metadata_check(metadata, file, error);
}

/* ---- Photoshop image resources ------------------------------------------------------------------
 */

bool gf_resource_next(const unsigned char *data, size_t size, gf_resource *resource) {
    enum { NAME = 6, MIN = 12 };
    const size_t start = resource->end, left = size - start;
    const unsigned char *at = data + start;
    const size_t head = left < MIN ? 0 : NAME + (at[NAME] + 2u) / 2 * 2 + 4;
    const size_t bytes = head && head <= left ? gf_big32(at + head - 4) : 0;
    if (!head || head + bytes > left)
        return false;
    const uint32_t id = memcmp(at, "8BIM", 4) == 0 ? gf_big16(at + 4) : 0;
    *resource = (gf_resource){id, start, start + head, start + head + bytes, bytes};
    resource->end += resource->end < size ? bytes % 2 : 0;
    return true;
}

/* Remove the thumbnails. Return the new size. */
static size_t resources_update(unsigned char *data, size_t size) {
    enum { OLD_THUMBNAIL = 1033, THUMBNAIL = 1036 };
    gf_resource r = {0};
    size_t kept = 0;
    while (gf_resource_next(data, size, &r)) {
        if (r.id == OLD_THUMBNAIL || r.id == THUMBNAIL)
            continue;
        memmove(data + kept, data + r.start, r.end - r.start);
        kept += r.end - r.start;
    }
    memmove(data + kept, data + r.end, size - r.end);
    return kept + size - r.end;
}

unsigned char *gf_resources_join(const void *iptc, size_t iptc_size, const void *resources,
                                 size_t size, size_t *joined_size) {
    static const unsigned char head[] = "8BIM\4\4\0"; /* with the NUL of the string: no name */
    enum { HEAD = sizeof head + 4 };
    gf_resource r = {0};
    while (size && gf_resource_next(resources, size, &r))
        iptc_size = r.id == GF_RESOURCE_IPTC ? 0 : iptc_size;
    const size_t before = iptc_size ? HEAD + iptc_size + iptc_size % 2 : 0;
    unsigned char *joined = calloc(1, before + size + 1);
    *joined_size = before + size;
    if (joined && iptc_size) {
        memcpy(joined, head, sizeof head);
        gf_put_big32(joined + sizeof head, (uint32_t)iptc_size);
        memcpy(joined + HEAD, iptc, iptc_size);
    }
    if (joined && size)
        memcpy(joined + before, resources, size);
    return joined;
}

/* ---- values ---------------------------------------------------------------------------------- */

static const gf_chunk *metadata_exif(const gf_metadata *metadata) {
    const gf_chunk *exif = gf_metadata_find(metadata, GF_ITEM_EXIF);
    return exif ? exif : gf_metadata_find(metadata, "eXIf");
}

uint32_t gf_metadata_orientation(const gf_metadata *metadata) {
    const gf_chunk *exif = metadata_exif(metadata);
    return exif ? gf_exif_orientation(exif) : 0;
}

static void item_exchange(const gf_chunk *item, uint64_t one, uint64_t other, size_t bytes) {
    unsigned char saved[sizeof(double)];
    memcpy(saved, item->data + one, bytes);
    memcpy(item->data + one, item->data + other, bytes);
    memcpy(item->data + other, saved, bytes);
}

void gf_metadata_set_upright(gf_metadata *metadata, bool transposed) {
    const gf_chunk *exif = metadata_exif(metadata);
    const gf_chunk *item = gf_metadata_find(metadata, GF_ITEM_RESOLUTION);
    const gf_chunk *phys = gf_metadata_find(metadata, "pHYs");
    if (exif)
        (void)gf_exif_set_orientation(exif, 1);
    if (transposed && exif)
        gf_exif_swap_resolution(exif);
    if (transposed && item)
        item_exchange(item, offsetof(gf_resolution, x), offsetof(gf_resolution, y), sizeof(double));
    if (transposed && phys && phys->size == 9)
        item_exchange(phys, 0, 4, 4);
}

bool gf_metadata_resolution(const gf_metadata *metadata, gf_resolution *resolution) {
    const gf_chunk *item = gf_metadata_find(metadata, GF_ITEM_RESOLUTION);
    const gf_chunk *phys = gf_metadata_find(metadata, "pHYs");
    const gf_chunk *exif = metadata_exif(metadata);
    if (item) {
        memcpy(resolution, item->data, sizeof *resolution);
        return true;
    }
    if (phys && (*resolution = chunk_resolution(phys)).unit)
        return true;
    gf_ifd ifd;
    return exif && gf_exif_open(&ifd, exif) && gf_exif_resolution(&ifd, ifd.first, resolution);
}

/* ---- other pixels ---------------------------------------------------------------------------- */

/* Return whether an ICC profile, or that of an iCCP chunk, is one for images with these channels,
 * or whether memory is short. */
static bool item_profile_fits(gf_metadata *metadata, const gf_chunk *item, uint32_t channels) {
    enum { SPACE = 16, SIGNATURE = 36, MIN = 132 };
    const bool packed = !item_is(item, GF_ITEM_ICC);
    size_t size = item->size;
    unsigned char *unpacked = packed ? chunk_payload(metadata, item, &size) : NULL;
    const unsigned char *profile = packed ? unpacked : item->data;
    const bool fits = profile && size >= MIN && gf_big32(profile) >= MIN &&
                      gf_big32(profile) <= size && memcmp(profile + SIGNATURE, "acsp", 4) == 0 &&
                      memcmp(profile + SPACE, channels < 3 ? "GRAY" : "RGB ", 4) == 0;
    free(unpacked);
    return fits || metadata->missing;
}

gf_status gf_metadata_update(gf_metadata *metadata, const gf_format *image, bool whole,
                             uint32_t *dropped, const char *file, gf_error *error) {
    static const char *const parts[] = {"GCamera:MicroVideo", "GCamera:MotionPhoto",
                                        "Container:Directory", "hdrgm:Version", NULL};
    static const char *const thumbnails[] = {"xmp:Thumbnails", NULL};
    const bool same = whole && gf_format_equal(image, &metadata->image);
    size_t kept = 0;
    for (size_t i = 0; i < metadata->count; i++) {
        gf_chunk item = metadata->chunks[i];
        const uint32_t kind = item_dropped(&item);
        if (kind == GF_DROPPED_EXIF || item_is(&item, GF_ITEM_GEO)) {
            item.size = gf_exif_update(&item, image, same, whole, dropped);
        } else if (kind == GF_DROPPED_IPTC) {
            item.size = resources_update(item.data, item.size);
        } else if (kind == GF_DROPPED_XMP) {
            bool packed = false; /* compressed texts stay as they are */
            const size_t at = item_is_shared(&item) ? 0 : chunk_payload_offset(&item, &packed);
            char *xmp = (char *)item.data + (packed ? item.size : at);
            const size_t removed = gf_text_cut(xmp, parts);
            if (removed)
                gf_note(&metadata->remarks, "the video or gain map behind the image is not copied");
            item.size -= removed + gf_text_cut(xmp, thumbnails);
        } else if (kind == GF_DROPPED_ICC && !item_profile_fits(metadata, &item, image->channels)) {
            *dropped |= item.size ? kind : 0;
            free(item.data);
            continue;
        }
        metadata->chunks[kept++] = item;
    }
    metadata->count = kept;
    return gf_metadata_check(metadata, file, error);
}
