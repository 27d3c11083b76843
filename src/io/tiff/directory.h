/* Directories of TIFF structures: of TIFF files, and of EXIF data in other files. They are read
 * into lists of entries, and written from them. Any bytes are accepted as input. */
#ifndef GF_TIFF_DIRECTORY_H
#define GF_TIFF_DIRECTORY_H

#include "io/limits.h"
#include "io/meta/metadata.h"

/* Groups of entries, stored in the first directory, which describes the image, or in their own. */
typedef enum gf_tiff_group {
    GF_TIFF_IMAGE,      /* descriptive tags and the orientation */
    GF_TIFF_EXIF,       /* EXIF directory: camera settings */
    GF_TIFF_INTEROP,    /* interoperability directory, which belongs to the EXIF directory */
    GF_TIFF_GPS,        /* the last group with a directory of its own */
    GF_TIFF_RESOLUTION, /* XResolution, YResolution, ResolutionUnit */
    GF_TIFF_GEO,        /* GeoTIFF and GDAL tags */
    GF_TIFF_OTHER,      /* tags that describe the pixels, or that have an item of metadata */
    GF_TIFF_GROUPS,
    /* Groups of tags in the first directory that are not read: */
    GF_TIFF_LAYOUT = GF_TIFF_GROUPS, /* storage of pixels or pages: an output lacks nothing */
    GF_TIFF_COLOUR,
    GF_TIFF_UNKNOWN
} gf_tiff_group;

/* Bits 1 << gf_tiff_group: of all groups that are read, and of those that describe the image. */
enum {
    GF_TIFF_ALL = (1 << GF_TIFF_GROUPS) - 1,
    GF_TIFF_DESCRIPTION =
        1 << GF_TIFF_IMAGE | 1 << GF_TIFF_EXIF | 1 << GF_TIFF_INTEROP | 1 << GF_TIFF_GPS
};

typedef struct gf_tiff_entry {
    gf_tiff_group group;
    uint32_t tag, type;
    uint64_t count;    /* number of values of this type */
    const void *value; /* in native byte order */
} gf_tiff_entry;

/* A list of entries and copies of their values, zeroed at first, apart from the name. */
typedef struct gf_tiff_list {
    const char *name; /* for messages */
    gf_tiff_entry *entries;
    size_t count;
    uint32_t groups; /* bits 1 << gf_tiff_group of the entries */
} gf_tiff_list;

void gf_tiff_list_clear(gf_tiff_list *list);
/* Return the bytes of the entries and their values. */
uint64_t gf_tiff_list_bytes(const gf_tiff_list *list);
/* Append a copy of an entry. value: NULL: all zero. */
gf_status gf_tiff_list_add(gf_tiff_list *list, const gf_tiff_entry *entry, gf_error *error);
/* Append the entries of some groups (bits 1 << gf_tiff_group, not GF_TIFF_OTHER) of EXIF data: a
 * TIFF structure in memory. Values may overlap up to 4 times its size. Return GF_FAILED if it is
 * damaged. */
gf_status gf_tiff_list_read(gf_tiff_list *list, const unsigned char *exif, size_t size,
                            uint32_t groups, gf_error *error);

/* Directories to write at an offset of a file, and the values that they refer to. */
typedef struct gf_tiff_bytes {
    unsigned char *data; /* the first directory is first; the caller frees it */
    uint64_t size;
    uint64_t next; /* place of the link to the next directory */
} gf_tiff_bytes;

/* Append the entries of some groups as directories of a little-endian file, sorted by tag; the
 * first one of equal tags is written. They are linked to those that the bytes contain. offset:
 * position of the bytes in the file, even; 0: precede them by the header of a classic file. big: as
 * in BigTIFF; otherwise 64-bit integers are omitted, unless they are unsigned and fit 32 bits. */
gf_status gf_tiff_list_write(const gf_tiff_list *list, uint32_t groups, uint64_t offset, bool big,
                             gf_tiff_bytes *bytes, gf_error *error);

enum { GF_TIFF_PAGES_COUNTED = 4096 }; /* a note and `info` state the number of pages up to this */

/* Find the directory of a page, numbered from 1. *pages receives the number of pages, counted up to
 * GF_TIFF_PAGES_COUNTED or the page; with a place, up to GF_MAX_PAGE. place: as in gf_limits. */
gf_status gf_tiff_find_page(const gf_ifd_file *file, uint64_t wanted, gf_page_place *place,
                            uint64_t *directory, uint64_t *pages, gf_error *error);

/* The tags of an image, apart from the offsets and sizes of strips and tiles. */
typedef struct gf_tiff_tags {
    uint64_t bytes;   /* of their values, which each handle of libtiff holds */
    uint32_t dropped; /* bits of gf_dropped: tags that are neither copied nor describe the pixels */
    uint64_t located; /* min number of offsets and of sizes of strips or tiles; UINT64_MAX: none */
    uint64_t extras;  /* number of declared extra samples */
    gf_nodata nodata; /* of GDAL */
} gf_tiff_tags;

/* Append the metadata of one image of a TIFF file: ICC profile, XMP packet, Photoshop resources
 * (IPTC data becomes one), resolution, GeoTIFF tags, and EXIF data made of the descriptive tags,
 * the resolution, and the EXIF and GPS directories. directory: offset of the directory of the
 * image. If it is damaged, metadata->damaged is set. Return GF_FAILED if the file cannot be read,
 * or if memory or a limit is exceeded: limits->max_chunk bytes of a tag, also of one that is not
 * copied, or twice as many of all tags. */
gf_status gf_tiff_read_metadata(const gf_ifd_file *file, uint64_t directory, gf_metadata *metadata,
                                gf_tiff_tags *tags, const gf_limits *limits, gf_error *error);

#endif
