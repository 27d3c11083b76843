/* Reading and writing of TIFF directories. */
#include "io/tiff/directory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tiff.h>

#include "core/c_locale.h"
#include "core/error.h"
#include "io/bytes.h"
#include "io/file/input.h"

/* ---- tags and types -------------------------------------------------------------------------- */

/* Return the bytes of the numbers that a value consists of. */
static size_t type_unit(uint32_t type) {
    return type == TIFF_RATIONAL || type == TIFF_SRATIONAL ? 4 : gf_ifd_type_bytes(type);
}

static uint64_t entry_bytes(const gf_tiff_entry *entry) {
    return entry->count * gf_ifd_type_bytes(entry->type);
}

static gf_tiff_group tag_group(uint32_t tag) {
    static const struct {
        uint16_t first, last, group;
    } tags[] = {
        {254, 259, GF_TIFF_LAYOUT},     /* subfile, size, bits, compression */
        {262, 266, GF_TIFF_LAYOUT},     /* photometric, cells of a halftone, fill order */
        {269, 272, GF_TIFF_IMAGE},      /* DocumentName, ImageDescription, Make, Model */
        {273, 273, GF_TIFF_LAYOUT},     /* strips */
        {274, 274, GF_TIFF_IMAGE},      /* Orientation */
        {277, 281, GF_TIFF_LAYOUT},     /* samples, strips, min and max */
        {282, 283, GF_TIFF_RESOLUTION}, /* XResolution, YResolution */
        {284, 284, GF_TIFF_LAYOUT},     /* planes */
        {285, 285, GF_TIFF_IMAGE},      /* PageName */
        {288, 289, GF_TIFF_LAYOUT},     /* unused bytes */
        {291, 291, GF_TIFF_COLOUR},     /* grey response curve */
        {292, 293, GF_TIFF_LAYOUT},     /* fax options */
        {296, 296, GF_TIFF_RESOLUTION}, /* ResolutionUnit */
        {297, 297, GF_TIFF_LAYOUT},     /* PageNumber: an output has other pages */
        {301, 301, GF_TIFF_COLOUR},     /* transfer function */
        {305, 306, GF_TIFF_IMAGE},      /* Software, DateTime */
        {315, 316, GF_TIFF_IMAGE},      /* Artist, HostComputer */
        {317, 317, GF_TIFF_LAYOUT},     /* predictor */
        {318, 319, GF_TIFF_COLOUR},     /* white point, chromaticities */
        {320, 320, GF_TIFF_LAYOUT},     /* colour map */
        {322, 328, GF_TIFF_LAYOUT},     /* tiles, quality of a fax */
        {330, 330, GF_TIFF_LAYOUT},     /* other directories */
        {338, 341, GF_TIFF_LAYOUT},     /* extra samples, sample format, min and max */
        {347, 347, GF_TIFF_LAYOUT},     /* tables of JPEG */
        {512, 532, GF_TIFF_LAYOUT},     /* JPEG, YCbCr */
        {559, 559, GF_TIFF_LAYOUT},     /* rows of strips */
        {700, 700, GF_TIFF_OTHER},      /* XMP */
        {18246, 18246, GF_TIFF_IMAGE},  /* Rating */
        {18249, 18249, GF_TIFF_IMAGE},  /* RatingPercent */
        {32995, 32998, GF_TIFF_LAYOUT}, /* alpha, sample format, depth */
        {33432, 33432, GF_TIFF_IMAGE},  /* Copyright */
        {33550, 33550, GF_TIFF_GEO},    /* ModelPixelScale */
        {33723, 33723, GF_TIFF_OTHER},  /* IPTC */
        {33922, 33922, GF_TIFF_GEO},    /* ModelTiepoint */
        {34264, 34264, GF_TIFF_GEO},    /* ModelTransformation */
        {34377, 34377, GF_TIFF_OTHER},  /* Photoshop resources */
        {34675, 34675, GF_TIFF_OTHER},  /* ICC profile */
        {34735, 34737, GF_TIFF_GEO},    /* GeoKeyDirectory and its parameters */
        {40091, 40095, GF_TIFF_IMAGE},  /* XPTitle to XPSubject */
        {42112, 42113, GF_TIFF_GEO},    /* GDAL: metadata, nodata */
        {50674, 50674, GF_TIFF_LAYOUT}, /* parameters of LERC */
    };
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (tag >= tags[i].first && tag <= tags[i].last)
            return (gf_tiff_group)tags[i].group;
    return GF_TIFF_UNKNOWN;
}

/* Return whether a tag has offsets or sizes of strips or tiles. */
static bool tag_locates_pixels(uint32_t tag) {
    return tag == TIFFTAG_STRIPOFFSETS || tag == TIFFTAG_STRIPBYTECOUNTS ||
           tag == TIFFTAG_TILEOFFSETS || tag == TIFFTAG_TILEBYTECOUNTS;
}

/* Directories, numbered as their groups, in the order in which they are read and written, and the
 * entry in the first directory, or in its parent, that has the offset of each. */
enum { FIRST, EXIF = GF_TIFF_EXIF, INTEROP, GPS, DIRECTORIES };

static const uint64_t no_offset; /* an offset that is not known yet */

static const struct {
    unsigned parent;
    gf_tiff_entry entry;
} directories[DIRECTORIES] = {
    [EXIF] = {FIRST, {0, TIFFTAG_EXIFIFD, TIFF_LONG8, 1, &no_offset}},
    [INTEROP] = {EXIF, {0, TIFFTAG_INTEROPERABILITYIFD, TIFF_LONG8, 1, &no_offset}},
    [GPS] = {FIRST, {0, TIFFTAG_GPSIFD, TIFF_LONG8, 1, &no_offset}},
};

/* Return the directory that an entry with this tag refers to; 0 for other entries. */
static unsigned directory_target(unsigned parent, uint32_t tag) {
    for (unsigned d = FIRST + 1; d < DIRECTORIES; d++)
        if (directories[d].parent == parent && directories[d].entry.tag == tag)
            return d;
    return 0;
}

static unsigned group_directory(gf_tiff_group group) {
    return group <= GF_TIFF_GPS ? (unsigned)group : FIRST;
}

/* ---- lists ----------------------------------------------------------------------------------- */

void gf_tiff_list_clear(gf_tiff_list *list) {
    for (size_t i = 0; i < list->count; i++)
        free((void *)list->entries[i].value);
    free(list->entries);
    *list = (gf_tiff_list){.name = list->name};
}

uint64_t gf_tiff_list_bytes(const gf_tiff_list *list) {
    uint64_t bytes = list->count * sizeof *list->entries;
    for (size_t i = 0; i < list->count; i++)
        bytes += entry_bytes(&list->entries[i]);
    return bytes;
}

gf_status gf_tiff_list_add(gf_tiff_list *list, const gf_tiff_entry *entry, gf_error *error) {
    const uint64_t size = entry_bytes(entry);
    /* The capacity is a power of two: the array is full when the count is 0 or a power of two. */
    const size_t count = list->count, capacity = count ? 2 * count : 1;
    gf_tiff_entry *entries = list->entries;
    if ((count & (count - 1)) == 0 && !(entries = realloc(entries, capacity * sizeof *entries)))
        return gf_fail_memory(error, list->name, capacity * sizeof *entries, "metadata");
    list->entries = entries;
    unsigned char *value = calloc(1, size ? size : 1);
    if (!value)
        return gf_fail_memory(error, list->name, size, "metadata");
    if (entry->value)
        memcpy(value, entry->value, size);
    list->groups |= 1u << entry->group;
    entries[count] = *entry;
    entries[list->count++].value = value;
    return GF_OK;
}

/* Return the first entry with this tag in the first directory; an empty one if there is none. */
static const gf_tiff_entry *list_find(const gf_tiff_list *list, uint32_t tag) {
    static const gf_tiff_entry none = {.value = ""};
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].tag == tag && group_directory(list->entries[i].group) == FIRST)
            return &list->entries[i];
    return &none;
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct directory_reader {
    gf_ifd ifd;
    gf_tiff_list *list;
    uint64_t offsets[DIRECTORIES]; /* of the directories that are found */
    gf_ifd_entry entry;            /* the current one, ... */
    gf_tiff_group group;           /* ... and its group */
    uint32_t groups;               /* groups to read */
    uint64_t max;                  /* bytes of one value; 0: unlimited */
    uint64_t left;                 /* bytes of values that may still be counted */
    gf_tiff_tags tags;
    bool damaged; /* reason for a failure */
} directory_reader;

static gf_status reader_fail(directory_reader *reader, gf_error *error) {
    const gf_status status = gf_return_error(&reader->ifd.cause, error);
    reader->damaged = !status;
    return status ? status
                  : gf_fail(error, GF_FAILED,
                            "%s: the EXIF data is damaged; get an intact copy, or omit metadata "
                            "with --strip",
                            reader->ifd.file.name);
}

static bool reader_next(directory_reader *reader, unsigned directory) {
    const bool found = gf_ifd_next(&reader->ifd, &reader->entry);
    reader->group = directory == FIRST ? tag_group(reader->entry.tag) : directory;
    return found;
}

/* Return whether the entry is read: its type is known, and has no offsets of directories. */
static bool reader_takes(const directory_reader *reader) {
    const uint32_t type = reader->entry.type;
    return reader->groups >> reader->group & 1 && gf_ifd_type_bytes(type) && type != TIFF_IFD &&
           type != TIFF_IFD8;
}

/* Count the value of the entry against the limits. In a file, those that are not read count, too:
 * each handle of libtiff holds all values but the offsets and sizes of strips and tiles. */
static gf_status reader_count(directory_reader *reader, gf_error *error) {
    const gf_ifd_entry *entry = &reader->entry;
    const gf_ifd_file *file = &reader->ifd.file;
    const size_t bytes = gf_ifd_type_bytes(entry->type);
    if (bytes == 0 || (reader->max ? tag_locates_pixels(entry->tag) : !reader_takes(reader)))
        return GF_OK;
    if (reader->max && entry->count > file->size / bytes)
        return GF_OK; /* damaged: it is not read */
    if (reader->max && (entry->count > reader->max / bytes || entry->count > reader->left / bytes))
        return gf_fail(error, GF_FAILED,
                       "%s: the metadata is larger than the limit: tag %" PRIu32 " has %" PRIu64
                       " values of %zu bytes; raise the limit with --max-chunk",
                       file->name, entry->tag, entry->count, bytes);
    if (entry->count > reader->left / bytes)
        return reader_fail(reader, error);
    reader->left -= entry->count * bytes;
    return GF_OK;
}

/* Read one directory. Note the offsets of those that it refers to. */
static gf_status reader_read_directory(directory_reader *reader, unsigned directory,
                                       gf_error *error) {
    enum { OFFSETS = 1 << TIFF_LONG | 1 << TIFF_IFD | 1 << TIFF_LONG8 | 1 << TIFF_IFD8 };
    const gf_ifd_entry *entry = &reader->entry;
    gf_tiff_list *list = reader->list;
    gf_tiff_tags *tags = &reader->tags;
    if (!gf_ifd_start(&reader->ifd, reader->offsets[directory]))
        return reader_fail(reader, error);
    gf_status status = GF_OK;
    while (!status && reader_next(reader, directory)) {
        status = reader_count(reader, error);
        if (directory == FIRST && tag_locates_pixels(entry->tag) && entry->count < tags->located)
            tags->located = entry->count;
        if (directory == FIRST && entry->tag == TIFFTAG_EXTRASAMPLES)
            tags->extras = entry->count;
    }
    (void)gf_ifd_start(&reader->ifd, reader->offsets[directory]);
    while (!status && reader_next(reader, directory)) {
        const unsigned target = directory_target(directory, entry->tag);
        const gf_tiff_entry copy = {reader->group, entry->tag, entry->type, entry->count, NULL};
        if (target) {
            if (entry->type < 32 && (unsigned)OFFSETS >> entry->type & 1)
                reader->offsets[target] = gf_ifd_integer(&reader->ifd, entry);
        } else if (!reader_takes(reader)) {
            tags->dropped |= reader->group == GF_TIFF_COLOUR   ? GF_DROPPED_COLOUR
                             : reader->group != GF_TIFF_LAYOUT ? GF_DROPPED_OTHER
                                                               : 0;
        } else if (!entry->inside) {
            status = reader_fail(reader, error);
        } else if (!(status = gf_tiff_list_add(list, &copy, error))) {
            unsigned char *value = (unsigned char *)list->entries[list->count - 1].value;
            /* Some writers give IPTC data, which consists of bytes, the type LONG. */
            const size_t unit = entry->tag == TIFFTAG_RICHTIFFIPTC ? 1 : type_unit(entry->type);
            if (gf_ifd_read(&reader->ifd, value, entry->bytes, entry->value))
                gf_copy_order(value, value, entry->bytes / unit, unit, reader->ifd.little);
            else
                status = reader_fail(reader, error);
        }
    }
    return reader->ifd.cause.status && !status ? reader_fail(reader, error) : status;
}

/* Read a directory and those that it refers to. first: its offset; 0: the first one. */
static gf_status reader_read(directory_reader *reader, const gf_ifd_file *file, uint64_t first,
                             gf_error *error) {
    if (!gf_ifd_open(&reader->ifd, file))
        return reader_fail(reader, error);
    reader->offsets[FIRST] = first ? first : reader->ifd.first;
    gf_status status = GF_OK;
    for (unsigned d = FIRST; d < DIRECTORIES && !status; d++)
        if (reader->offsets[d] && (d == FIRST || reader->groups >> d & 1))
            status = reader_read_directory(reader, d, error);
    return status;
}

gf_status gf_tiff_list_read(gf_tiff_list *list, const unsigned char *exif, size_t size,
                            uint32_t groups, gf_error *error) {
    /* Some writers store equal values once. Without a limit, entries that share a value could take
     * thousands of times the data. */
    enum { MAX_RATIO = 4 };
    const gf_ifd_file file = {.data = (unsigned char *)exif, .size = size, .name = list->name};
    directory_reader reader = {.list = list, .groups = groups, .left = MAX_RATIO * (uint64_t)size};
    return reader_read(&reader, &file, 0, error);
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* Count up to `max` pages from a directory on, and return the directory of page `wanted`, or 0.
 * Damage, a cycle, and 2 * GF_MAX_PAGE directories end the list. with_reduced: count thumbnails,
 * levels of a pyramid and masks, too. libtiff would parse all tags of each directory. */
static uint64_t page_count(gf_ifd *ifd, uint64_t first, uint64_t wanted, uint64_t max,
                           bool with_reduced, uint64_t *pages) {
    uint64_t found = 0, marked = 0, left = ifd->file.size, at = first;
    *pages = 0;
    for (uint64_t steps = 0; at != 0 && *pages < max && steps < 2 * GF_MAX_PAGE; steps++) {
        gf_ifd_entry entry;
        bool reduced = false;
        /* A cycle returns to the first directory, or to one that is marked at a power of two.
         * Directories do not overlap: together they are not larger than the file. */
        if (at == marked || (steps && at == first) || !gf_ifd_start(ifd, at) ||
            ifd->link - at > left)
            break;
        left -= ifd->link - at;
        while (gf_ifd_next(ifd, &entry) && entry.tag <= TIFFTAG_OSUBFILETYPE) {
            const uint64_t value = gf_ifd_integer(ifd, &entry);
            reduced |= entry.tag == TIFFTAG_SUBFILETYPE
                           ? (value & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) != 0
                           : entry.tag == TIFFTAG_OSUBFILETYPE && value == OFILETYPE_REDUCEDIMAGE;
        }
        const uint64_t next = gf_ifd_number(ifd, ifd->link, ifd->form->offset);
        if (ifd->cause.status)
            break;
        if ((!reduced || with_reduced) && ++*pages == wanted)
            found = at;
        if ((steps & (steps + 1)) == 0)
            marked = at;
        at = next;
    }
    return found;
}

gf_status gf_tiff_find_page(const gf_ifd_file *file, uint64_t wanted, gf_page_place *place,
                            uint64_t *directory, uint64_t *pages, gf_error *error) {
    const uint64_t counted = place ? GF_MAX_PAGE : GF_TIFF_PAGES_COUNTED;
    const uint64_t max = wanted < counted ? counted : wanted;
    gf_page_place found = {.page = wanted};
    gf_ifd ifd;
    if (!gf_ifd_open(&ifd, file) && !ifd.cause.status)
        return gf_fail_short(file->name, error);
    if (place && place->page != 0 && place->page <= wanted) {
        const uint64_t steps = wanted - place->page + 1;
        found = *place;
        *directory = page_count(&ifd, place->offset, steps, steps, place->all, pages);
    } else {
        *directory = page_count(&ifd, ifd.first, wanted, max, false, &found.pages);
        found.all = found.pages == 0;
        if (found.all)
            *directory = page_count(&ifd, ifd.first, wanted, max, true, &found.pages);
    }
    if (gf_return_error(&ifd.cause, error))
        return ifd.cause.status;
    *pages = found.pages;
    if (*pages == 0)
        return gf_fail(error, GF_FAILED,
                       "%s: the TIFF has no readable directory; get an intact copy", file->name);
    if (!*directory)
        return gf_fail_page(file->name, wanted, *pages, error);
    found.page = wanted;
    found.offset = *directory;
    if (place)
        *place = found;
    return GF_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* An entry to write. */
typedef struct written_entry {
    uint64_t key; /* orders entries: directory, tag, position in the list; 16, 16 and 32 bits */
    const gf_tiff_entry *entry;
    unsigned target; /* the directory that it refers to; 0: none */
} written_entry;

static written_entry written_make(unsigned directory, const gf_tiff_entry *entry, unsigned target,
                                  size_t index) {
    return (written_entry){(uint64_t)directory << 48 | (uint64_t)entry->tag << 32 | index, entry,
                           target};
}

static int written_compare(const void *left, const void *right) {
    const written_entry *a = left, *b = right;
    return a->key < b->key ? -1 : a->key > b->key;
}

/* Return whether a directory can store the numbers of an entry: a classic one has no 64-bit
 * integers. */
static bool written_fits(const gf_tiff_entry *entry, bool big) {
    const uint64_t *numbers = entry->value;
    if (big || entry->type != TIFF_LONG8)
        return big || entry->type != TIFF_SLONG8;
    for (uint64_t i = 0; i < entry->count; i++)
        if (numbers[i] > UINT32_MAX)
            return false;
    return true;
}

/* Select and sort the entries, and those that refer to directories. Return their number. */
static size_t written_select(const gf_tiff_list *list, uint32_t groups, bool big,
                             written_entry *out) {
    bool used[DIRECTORIES] = {true};
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        const gf_tiff_entry *entry = &list->entries[i];
        const unsigned directory = group_directory(entry->group);
        if (!(groups >> entry->group & 1) || directory_target(directory, entry->tag) ||
            !written_fits(entry, big))
            continue;
        used[directory] = true;
        out[count++] = written_make(directory, entry, 0, i);
    }
    used[EXIF] |= used[INTEROP];
    for (unsigned d = FIRST + 1; d < DIRECTORIES; d++)
        if (used[d])
            out[count++] =
                written_make(directories[d].parent, &directories[d].entry, d, UINT32_MAX);
    qsort(out, count, sizeof *out, written_compare);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || out[i].key >> 32 != out[kept - 1].key >> 32)
            out[kept++] = out[i];
    return kept;
}

typedef struct directory_writer {
    gf_ifd ifd;                  /* file.data is zero from `size` on */
    uint64_t offset, size;       /* of the data in the file */
    uint64_t links[DIRECTORIES]; /* places of the offsets of the directories */
} directory_writer;

/* Write a directory and link it. Values that do not fit into an entry follow at even offsets. */
static void writer_put_directory(directory_writer *writer, unsigned directory,
                                 const written_entry *entries, size_t count) {
    gf_ifd *ifd = &writer->ifd;
    const gf_ifd_form *form = ifd->form;
    const uint64_t start = writer->size;
    uint64_t at = start + form->count;
    if (writer->links[directory])
        gf_ifd_put(ifd, writer->links[directory], writer->offset + start, form->offset);
    gf_ifd_put(ifd, start, count, form->count);
    writer->size = at + count * form->entry + form->offset;
    for (size_t i = 0; i < count; i++, at += form->entry) {
        const gf_tiff_entry *entry = entries[i].entry;
        const bool narrowed = entry->type == TIFF_LONG8 && form->offset < 8;
        const uint64_t *numbers = entry->value, size = entry_bytes(entry) >> narrowed;
        const size_t unit = type_unit(entry->type);
        uint64_t value = at + 4 + form->offset;
        if (entries[i].target)
            writer->links[entries[i].target] = value;
        gf_ifd_put(ifd, at, entry->tag, 2);
        gf_ifd_put(ifd, at + 2, narrowed ? TIFF_LONG : entry->type, 2);
        gf_ifd_put(ifd, at + 4, entry->count, form->offset);
        if (size > form->offset) {
            gf_ifd_put(ifd, value, writer->offset + writer->size, form->offset);
            value = writer->size;
            writer->size += size + (size & 1);
        }
        for (uint64_t k = 0; narrowed && k < entry->count; k++)
            gf_ifd_put(ifd, value + 4 * k, numbers[k], 4);
        if (!narrowed)
            gf_copy_order(ifd->file.data + value, entry->value, size / unit, unit, true);
    }
    writer->links[directory] = at;
}

gf_status gf_tiff_list_write(const gf_tiff_list *list, uint32_t groups, uint64_t offset, bool big,
                             gf_tiff_bytes *bytes, gf_error *error) {
    static const unsigned char header[8] = "II*";
    enum { LINK = 4, MAX_FIXED = DIRECTORIES * (8 + 20 + 8) };
    const size_t max = list->count + DIRECTORIES;
    const uint64_t max_bytes = bytes->size + sizeof header + MAX_FIXED + gf_tiff_list_bytes(list);
    directory_writer writer = {.ifd = {.form = big ? &gf_ifd_big : &gf_ifd_classic, .little = true},
                               .offset = offset,
                               .size = bytes->size,
                               .links = {bytes->next}};
    written_entry *entries = malloc(max * sizeof *entries);
    if (!entries)
        return gf_fail_memory(error, list->name, max * sizeof *entries, "metadata");
    unsigned char *data = realloc(bytes->data, max_bytes);
    if (!data) {
        free(entries);
        return gf_fail_memory(error, list->name, max_bytes, "metadata");
    }
    writer.ifd.file.data = data;
    memset(data + bytes->size, 0, max_bytes - bytes->size);
    if (offset == 0 && bytes->size == 0) {
        memcpy(data, header, sizeof header);
        writer.size = sizeof header;
        writer.links[FIRST] = LINK;
    }
    size_t count = written_select(list, groups, big, entries), next = 0;
    for (unsigned d = FIRST; d < DIRECTORIES; d++) {
        const size_t first = next;
        while (next < count && entries[next].key >> 48 == d)
            next++;
        if (d == FIRST || next > first)
            writer_put_directory(&writer, d, entries + first, next - first);
    }
    *bytes = (gf_tiff_bytes){data, writer.size, writer.links[FIRST]};
    free(entries);
    return GF_OK;
}

/* ---- metadata of TIFF files ------------------------------------------------------------------ */

/* Append an item that is a TIFF structure of the entries of some groups. */
static void metadata_add_list(gf_metadata *metadata, const char *item, const gf_tiff_list *list,
                              uint32_t groups) {
    gf_tiff_bytes bytes = {0};
    if (gf_tiff_list_write(list, groups, 0, false, &bytes, NULL))
        metadata->missing = sizeof bytes + gf_tiff_list_bytes(list);
    else
        gf_metadata_add(metadata, item, false, bytes.data, bytes.size);
    free(bytes.data);
}

/* Return the value that GDAL marks missing samples with. */
static gf_nodata metadata_nodata(const gf_tiff_list *list) {
    const gf_tiff_entry *entry = list_find(list, TIFFTAG_GDAL_NODATA);
    char text[32] = "", *end;
    if (entry->type != TIFF_ASCII || entry->count >= sizeof text)
        return (gf_nodata){.declared = false};
    memcpy(text, entry->value, (size_t)entry->count);
    gf_c_locale scope = gf_c_locale_enter();
    const float value = (float)strtod(text, &end);
    gf_c_locale_leave(&scope);
    return (gf_nodata){end != text, value};
}

gf_status gf_tiff_read_metadata(const gf_ifd_file *file, uint64_t directory, gf_metadata *metadata,
                                gf_tiff_tags *tags, const gf_limits *limits, gf_error *error) {
    gf_tiff_list list = {.name = file->name};
    directory_reader reader = {.list = &list,
                               .groups = GF_TIFF_ALL,
                               .max = limits->max_chunk,
                               .tags.located = UINT64_MAX,
                               .left = 2 * limits->max_chunk};
    gf_resolution resolution;
    gf_status status = reader_read(&reader, file, directory, error);
    if (status && reader.damaged) {
        memcpy(metadata->damaged, GF_ITEM_EXIF, sizeof metadata->damaged);
        status = GF_OK;
    } else if (!status) {
        const gf_tiff_entry *resources = list_find(&list, TIFFTAG_PHOTOSHOP);
        const gf_tiff_entry *iptc = list_find(&list, TIFFTAG_RICHTIFFIPTC);
        size_t size;
        reader.tags.nodata = metadata_nodata(&list);
        for (size_t i = 0; i < GF_ITEM_KINDS; i++) {
            const gf_item_kind *kind = &gf_item_kinds[i];
            const gf_tiff_entry *value = list_find(&list, kind->tag);
            if (kind->type && value != resources && value->count)
                gf_metadata_add(metadata, kind->name, false, value->value, entry_bytes(value));
        }
        /* IPTC data becomes a Photoshop resource. */
        unsigned char *joined = gf_resources_join(iptc->value, entry_bytes(iptc), resources->value,
                                                  entry_bytes(resources), &size);
        if (!joined)
            metadata->missing = size + 1;
        else if (size)
            gf_metadata_add(metadata, GF_ITEM_8BIM, false, joined, size);
        free(joined);
        if (gf_exif_resolution(&reader.ifd, directory, &resolution))
            gf_metadata_add(metadata, GF_ITEM_RESOLUTION, false, &resolution, sizeof resolution);
        if (list.groups & GF_TIFF_DESCRIPTION)
            metadata_add_list(metadata, GF_ITEM_EXIF, &list,
                              GF_TIFF_DESCRIPTION | 1 << GF_TIFF_RESOLUTION);
        if (list.groups & 1 << GF_TIFF_GEO)
            metadata_add_list(metadata, GF_ITEM_GEO, &list, 1 << GF_TIFF_GEO);
        status = reader.ifd.cause.status ? gf_return_error(&reader.ifd.cause, error)
                                         : gf_metadata_check(metadata, file->name, error);
    }
    for (size_t i = 0; i < list.count; i++)
        reader.tags.dropped |= written_fits(&list.entries[i], false) ? 0 : GF_DROPPED_OTHER;
    reader.tags.bytes = 2 * limits->max_chunk - reader.left;
    *tags = reader.tags;
    gf_tiff_list_clear(&list);
    return status;
}
