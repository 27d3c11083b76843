/* Metadata of images in memory: items in the form of the file that they were read from, and their
 * conversion to the forms of other file formats. */
#ifndef GF_METADATA_H
#define GF_METADATA_H

#include "io/meta/ifd.h"

/* One item of metadata: a PNG chunk, under its name, or an item that several formats can store,
 * under one of the names below. PNG files yield only chunks, other files only the items below. */
typedef struct gf_chunk {
    char name[5];
    bool late; /* follows the pixels, in the input and in the output; PNG only */
    size_t size;
    unsigned char *data;
} gf_chunk;

#define GF_ITEM_ICC "ICC "        /* ICC profile */
#define GF_ITEM_EXIF "EXIF"       /* TIFF structure with its header and directories */
#define GF_ITEM_XMP "XMP "        /* XMP packet, UTF-8 */
#define GF_ITEM_8BIM "8BIM"       /* Photoshop image resources, which contain IPTC data */
#define GF_ITEM_RESOLUTION "RES " /* a gf_resolution */
#define GF_ITEM_COMMENT "TEXT"    /* comment of a JPEG, in an unspecified character set */
#define GF_ITEM_GEO "GEO "        /* TIFF only: TIFF structure of GeoTIFF and GDAL tags */
#define GF_ITEM_APP1 "APP1"       /* JPEG only: APP1 segment that extends the items above */

/* Kind of an item that several formats can store, and its forms in files. */
typedef struct gf_item_kind {
    const char *name;       /* of the item */
    const char *label;      /* for people; NULL: the name */
    const char *chunk;      /* of a PNG; NULL: it cannot store the item */
    const char *keyword;    /* first bytes of the chunk: a text, its NUL, ... */
    uint32_t keyword_bytes; /* ... and bytes that are written only; 0: any */
    int marker;             /* of a segment of a JPEG; 0: it cannot store the item */
    const char *head;       /* first bytes of the segment, ... */
    uint32_t head_bytes;    /* ... with a NUL at the end */
    uint32_t tag;           /* of a TIFF; 0: it cannot store the item */
    uint32_t type;          /* of the values; 0: the item is not the value of a tag */
    uint32_t dropped;       /* bit of gf_dropped */
} gf_item_kind;

enum { GF_ITEM_KINDS = 8 };
extern const gf_item_kind gf_item_kinds[GF_ITEM_KINDS];

/* Return the kind of an item, or of a PNG chunk that stores one; NULL for other chunks. */
const gf_item_kind *gf_item_kind_of(const gf_chunk *item);

/* Data of an image other than its pixels; zeroed at first. */
typedef struct gf_metadata {
    gf_chunk *chunks;
    size_t count;
    size_t missing;   /* bytes of an item for which memory was short; 0: none */
    char damaged[5];  /* name of an item that is not copied because it is damaged, or "" */
    double pfm_scale; /* absolute value of the scale in a PFM header; 0 for other formats */
    /* The alpha channel is associated: the other channels are premultiplied by it. Unlike the
     * items, this belongs to the pixels and cannot be omitted. */
    bool associated_alpha;
    gf_format image;    /* of the file, which descriptions in it describe; all zero: unknown */
    uint64_t seen;      /* PNG chunks that a file has once: bits of those read */
    uint32_t raw;       /* number of texts of ImageMagick */
    gf_remarks remarks; /* about the file; complete after the source has finished */
} gf_metadata;

typedef enum gf_resolution_unit {
    GF_PER_NONE = 1,
    GF_PER_INCH = 2,
    GF_PER_CM = 3
} gf_resolution_unit;

/* Forms of metadata in files. */
typedef enum gf_metadata_form {
    GF_FORM_NONE, /* the format stores no metadata */
    GF_FORM_PNG,
    GF_FORM_JPEG,
    GF_FORM_TIFF
} gf_metadata_form;

/* Pixels per unit, as TIFF stores them. */
typedef struct gf_resolution {
    double x, y;
    gf_resolution_unit unit; /* GF_PER_NONE: only the ratio of x and y has a meaning */
} gf_resolution;

void gf_metadata_clear(gf_metadata *metadata);

/* Record damage in the pixels that is read all the same. The first one is kept. With strict, return
 * GF_FAILED. name: of the file, for the message. */
gf_status gf_damage(gf_remarks *remarks, bool strict, const char *name, gf_error *error,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Append a note unless it is present or does not fit. */
void gf_note(gf_remarks *remarks, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Append the remarks `from` to those before. */
void gf_remarks_add(gf_remarks *remarks, const gf_remarks *from);

/* Append a copy of an item. name has 4 characters. If memory is short, set `missing` instead. */
void gf_metadata_add(gf_metadata *metadata, const char *name, bool late, const void *data,
                     size_t size);
/* Return GF_FAILED if memory was short for an item. file: name for the message, in all functions.
 */
gf_status gf_metadata_check(const gf_metadata *metadata, const char *file, gf_error *error);
/* Append a copy of a PNG chunk. A text in which ImageMagick stores EXIF data becomes an eXIf chunk.
 * Omit a chunk that is invalid, repeated or not preserved, and set a bit of gf_dropped. */
gf_status gf_metadata_append_chunk(gf_metadata *metadata, const gf_chunk *chunk, uint32_t *dropped,
                                   const char *file, gf_error *error);
/* Return true for an ancillary PNG chunk that stays valid when samples change: one that is known,
 * or whose name says so. bKGD, hIST, sBIT and sPLT depend on the stored samples. */
bool gf_png_preserves(const unsigned char name[4]);
/* Return the first item of this name that precedes the pixels; NULL if there is none. */
const gf_chunk *gf_metadata_find(const gf_metadata *metadata, const char *name);

/* Convert the items that have a PNG form to PNG chunks, and append them. PNG chunks are copied. */
gf_status gf_metadata_to_png(const gf_metadata *metadata, gf_metadata *chunks, const char *file,
                             gf_error *error);
/* Convert the PNG chunks that have another form to GF_ITEM items, and append them, late ones as if
 * they preceded the pixels. Items are copied; other chunks are omitted. Return GF_FAILED for a
 * damaged chunk, too. */
gf_status gf_metadata_to_items(const gf_metadata *metadata, gf_metadata *items, const char *file,
                               gf_error *error);

/* Return the kinds of the items that a format cannot store, as bits of gf_dropped. An sRGB chunk,
 * and gamma and chromaticities that repeat it, are not counted: without them readers assume sRGB.
 */
uint32_t gf_metadata_lost(const gf_metadata *metadata, gf_metadata_form form);

/* Return the name of an item for people: "ICC", "tEXt". */
const char *gf_metadata_label(const gf_chunk *item);

/* Convert pixels per metre to pixels per inch if these are whole numbers, else per centimetre. */
gf_resolution gf_resolution_of_metre(double x, double y);

/* Adapt the items to the image of an output: set the sizes in EXIF data, and remove what describes
 * other pixels (thumbnails, statistics, shapes of stacks), parts of the input behind the image, and
 * ICC profiles that do not apply. whole: the output has all pages of the input. Add bits of
 * gf_dropped, or append a note, where information is lost. A second call changes nothing. */
gf_status gf_metadata_update(gf_metadata *metadata, const gf_format *image, bool whole,
                             uint32_t *dropped, const char *file, gf_error *error);

/* Return the EXIF orientation, 1 to 8; 0 if there is none. */
uint32_t gf_metadata_orientation(const gf_metadata *metadata);
/* Mark the pixels as turned upright: set the orientation to 1. transposed: rows became columns;
 * swap the resolutions, too. */
void gf_metadata_set_upright(gf_metadata *metadata, bool transposed);
/* Return the resolution: that of the file format, or else of the EXIF data. Return false if there
 * is none. */
bool gf_metadata_resolution(const gf_metadata *metadata, gf_resolution *resolution);

/* A Photoshop image resource: signature, number, name with its length, size, data. Name and data
 * are padded to even sizes. */
typedef struct gf_resource {
    uint32_t id;             /* 0: the signature is not 8BIM */
    size_t start, data, end; /* offsets of the resource, its data, and the next resource */
    size_t size;             /* of the data */
} gf_resource;

enum { GF_RESOURCE_IPTC = 1028 };

/* Step to the next resource of any bytes; from a zeroed one, to the first. Return false if there is
 * none. */
bool gf_resource_next(const unsigned char *data, size_t size, gf_resource *resource);
/* Return resources, preceded by one with IPTC data unless they contain some, as JPEG files store
 * it. Both sizes may be 0. The caller frees the result; NULL if out of memory. */
unsigned char *gf_resources_join(const void *iptc, size_t iptc_size, const void *resources,
                                 size_t size, size_t *joined_size);

/* EXIF data: a TIFF structure (header, directories, values) without pixels. Any bytes are accepted;
 * values are changed in place. */

/* Open EXIF data, which is borrowed. Return false unless it begins with the header of a classic
 * TIFF. */
bool gf_exif_open(gf_ifd *ifd, const gf_chunk *exif);
/* Return the orientation in the first directory, 1 to 8; 0 if there is none. */
uint32_t gf_exif_orientation(const gf_chunk *exif);
/* Set the orientation in the first directory. Return false, without a change, if it has none. */
bool gf_exif_set_orientation(const gf_chunk *exif, uint32_t orientation);
/* Return the resolution in a directory. Return false if there is none. */
bool gf_exif_resolution(gf_ifd *ifd, uint64_t directory, gf_resolution *resolution);
/* Swap the resolutions in the first directory. */
void gf_exif_swap_resolution(const gf_chunk *exif);
/* Return the kind and the offset of image i of an MPO, from its index. Return false after the last
 * image. */
bool gf_exif_image(const gf_chunk *index, uint32_t i, uint32_t *kind, uint32_t *offset);
/* Adapt EXIF data, or the tags of GDAL, as gf_metadata_update. same: the image has the sizes, type
 * and pages of the input. Return the new size. */
size_t gf_exif_update(const gf_chunk *exif, const gf_format *image, bool same, bool whole,
                      uint32_t *dropped);
/* Remove the parts of a text whose names begin with one of the names, a list that ends with NULL,
 * and clear as many bytes at the end. Return their number. */
size_t gf_text_cut(char *text, const char *const *names);

#endif
