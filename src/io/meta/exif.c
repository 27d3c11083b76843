/* EXIF data. */
#include "io/meta/metadata.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tiff.h>

enum { HEADER_BYTES = 8, INTEGERS = 1 << TIFF_SHORT | 1 << TIFF_LONG };

bool gf_exif_open(gf_ifd *ifd, const gf_chunk *exif) {
    return gf_ifd_open(ifd, &(gf_ifd_file){.data = exif->data, .size = exif->size}) &&
           ifd->form == &gf_ifd_classic;
}

/* Find an entry of the first directory, as gf_ifd_find. */
static bool exif_find(gf_ifd *ifd, const gf_chunk *exif, uint32_t tag, uint32_t types,
                      gf_ifd_entry *entry) {
    return gf_exif_open(ifd, exif) && gf_ifd_find(ifd, ifd->first, tag, types, entry);
}

/* Return an integer of a directory; 0 if there is none. */
static uint64_t exif_integer(gf_ifd *ifd, uint64_t directory, uint32_t tag, uint32_t types) {
    gf_ifd_entry entry;
    return gf_ifd_find(ifd, directory, tag, types, &entry) ? gf_ifd_integer(ifd, &entry) : 0;
}

uint32_t gf_exif_orientation(const gf_chunk *exif) {
    enum { MAX = 8 };
    gf_ifd ifd;
    gf_ifd_entry entry;
    const bool found = exif_find(&ifd, exif, TIFFTAG_ORIENTATION, 1 << TIFF_SHORT, &entry);
    const uint64_t orientation = found ? gf_ifd_integer(&ifd, &entry) : 0;
    return orientation <= MAX ? (uint32_t)orientation : 0;
}

bool gf_exif_set_orientation(const gf_chunk *exif, uint32_t orientation) {
    gf_ifd ifd;
    gf_ifd_entry entry;
    const bool found = exif_find(&ifd, exif, TIFFTAG_ORIENTATION, 1 << TIFF_SHORT, &entry) &&
                       entry.inside && entry.count;
    if (found)
        gf_ifd_put(&ifd, entry.value, orientation, 2);
    return found;
}

/* Return a rational number or an integer; 0 if there is none. */
static double exif_real(gf_ifd *ifd, uint64_t directory, uint32_t tag) {
    gf_ifd_entry entry;
    if (!gf_ifd_find(ifd, directory, tag, 1 << TIFF_RATIONAL, &entry))
        return (double)exif_integer(ifd, directory, tag, INTEGERS | 1 << TIFF_LONG8);
    const bool valid = entry.inside && entry.count;
    const uint64_t denominator = valid ? gf_ifd_number(ifd, entry.value + 4, 4) : 0;
    return denominator ? (double)gf_ifd_number(ifd, entry.value, 4) / (double)denominator : 0;
}

bool gf_exif_resolution(gf_ifd *ifd, uint64_t directory, gf_resolution *resolution) {
    const double unit = exif_real(ifd, directory, TIFFTAG_RESOLUTIONUNIT);
    resolution->x = exif_real(ifd, directory, TIFFTAG_XRESOLUTION);
    resolution->y = exif_real(ifd, directory, TIFFTAG_YRESOLUTION);
    resolution->unit = unit == GF_PER_NONE ? GF_PER_NONE
                       : unit == GF_PER_CM ? GF_PER_CM
                                           : GF_PER_INCH; /* also without the tag */
    return resolution->x > 0 && resolution->y > 0;
}

void gf_exif_swap_resolution(const gf_chunk *exif) {
    gf_ifd ifd;
    gf_ifd_entry x, y;
    if (!exif_find(&ifd, exif, TIFFTAG_XRESOLUTION, 1 << TIFF_RATIONAL, &x) ||
        !gf_ifd_find(&ifd, ifd.first, TIFFTAG_YRESOLUTION, 1 << TIFF_RATIONAL, &y))
        return;
    /* The offsets of the values. */
    const uint64_t offset = gf_ifd_number(&ifd, x.at + 8, 4);
    gf_ifd_put(&ifd, x.at + 8, gf_ifd_number(&ifd, y.at + 8, 4), 4);
    gf_ifd_put(&ifd, y.at + 8, offset, 4);
}

bool gf_exif_image(const gf_chunk *index, uint32_t i, uint32_t *kind, uint32_t *offset) {
    enum { TAG_IMAGES = 0xb002, IMAGE_BYTES = 16 };
    const uint64_t at = (uint64_t)i * IMAGE_BYTES;
    gf_ifd ifd;
    gf_ifd_entry entry;
    if (!exif_find(&ifd, index, TAG_IMAGES, 1 << TIFF_UNDEFINED, &entry) ||
        at + IMAGE_BYTES > entry.count)
        return false;
    *kind = (uint32_t)gf_ifd_number(&ifd, entry.value + at, 4);
    *offset = (uint32_t)gf_ifd_number(&ifd, entry.value + at + 8, 4);
    return entry.value + at + IMAGE_BYTES <= index->size;
}

/* Find the end of a part whose name follows `at`: an element of XML that begins there, or behind
 * white space an attribute, or a line of ImageJ, whose value has no white space. Return NULL if an
 * element has no end. */
static char *text_part_end(char *at, const char *name) {
    if (*at != '<')
        return at + 1 + strcspn(at + 1, " \t\r\n/>");
    const size_t length = strcspn(name, " ");
    while ((at = strstr(at + 1, "</")) && strncmp(at + 2, name, length) != 0)
        continue;
    if (at)
        at += strcspn(at, ">");
    return at && *at ? at + 1 : at;
}

size_t gf_text_cut(char *text, const char *const *names) {
    char *to = text, *from = text, *end = text;
    while (*from && end) {
        const char *const *name = names;
        const bool begins = strchr("< \t\r\n", *from);
        while (*name && !(begins && strncmp(from + 1, *name, strlen(*name)) == 0))
            name++;
        end = *name ? text_part_end(from, *name) : from;
        if (end > from)
            from = end;
        else if (end)
            *to++ = *from++;
    }
    /* A part without an end ends the loop: the time is linear. */
    const size_t rest = strlen(from), removed = (size_t)(from - to);
    memmove(to, from, rest + 1);
    memset(to + rest, 0, removed);
    return removed;
}

/* Remove from a text of EXIF data what is not true for an output. same: it has the sizes, type and
 * pages of the input. Return the number of bytes removed. */
static size_t exif_update_text(char *text, const gf_format *image, bool same, bool whole,
                               uint32_t *dropped) {
    static const char *const statistics[] = {"Item name=\"STATISTICS_", NULL};
    static const char *const stack[] = {
        "images=", "channels=", "slices=", "frames=", "hyperstack=", "mode=", "min=", "max=", NULL};
    if (strncmp(text, "ImageJ=", 7) == 0)
        return gf_text_cut(text, whole ? stack + 6 : stack);
    char shape[64]; /* the end of that of tifffile */
    snprintf(shape, sizeof shape,
             image->channels > 1 ? "%" PRIu64 ", %" PRIu64 ", %" PRIu32 "]"
                                 : "%" PRIu64 ", %" PRIu64 "]",
             image->height, image->width, image->channels);
    if (strncmp(text, "{\"shape\"", 8) == 0 ? whole && strstr(text, shape)
                                            : same || !strstr(text, "<OME "))
        return gf_text_cut(text, statistics); /* of GDAL */
    *dropped |= GF_DROPPED_TEXT;
    const size_t removed = strlen(text);
    memset(text, 0, removed);
    return removed;
}

/* Set an integer, which need not be there. */
static void exif_set_integer(gf_ifd *ifd, uint64_t directory, uint32_t tag, uint64_t number) {
    gf_ifd_entry entry;
    if (!gf_ifd_find(ifd, directory, tag, INTEGERS, &entry) ||
        gf_ifd_integer(ifd, &entry) == number)
        return;
    gf_ifd_put(ifd, entry.at + 2, TIFF_LONG, 2);
    gf_ifd_put(ifd, entry.at + 4, 1, 4);
    gf_ifd_put(ifd, entry.at + 8, number, 4);
}

size_t gf_exif_update(const gf_chunk *exif, const gf_format *image, bool same, bool whole,
                      uint32_t *dropped) {
    static const uint32_t widths[] = {TIFFTAG_IMAGEWIDTH, EXIFTAG_PIXELXDIMENSION},
                          heights[] = {TIFFTAG_IMAGELENGTH, EXIFTAG_PIXELYDIMENSION},
                          texts[] = {TIFFTAG_IMAGEDESCRIPTION, TIFFTAG_GDAL_METADATA},
                          offsets[] = {TIFFTAG_JPEGIFOFFSET, TIFFTAG_STRIPOFFSETS},
                          sizes[] = {TIFFTAG_JPEGIFBYTECOUNT, TIFFTAG_STRIPBYTECOUNTS};
    gf_ifd ifd;
    gf_ifd_entry text;
    if (!gf_exif_open(&ifd, exif))
        return exif->size;
    const uint64_t camera = exif_integer(&ifd, ifd.first, TIFFTAG_EXIFIFD, INTEGERS);
    for (size_t i = 0; i < 2; i++) {
        const uint64_t directory = i && camera ? camera : ifd.first;
        exif_set_integer(&ifd, directory, widths[i], image->width);
        exif_set_integer(&ifd, directory, heights[i], image->height);
        /* Shorter texts are within the entry. */
        if (!gf_ifd_find(&ifd, ifd.first, texts[i], 1 << TIFF_ASCII, &text) || !text.inside ||
            text.bytes <= 4 || text.value < HEADER_BYTES || exif->data[text.value + text.bytes - 1])
            continue;
        const uint64_t left = text.bytes - exif_update_text((char *)exif->data + text.value, image,
                                                            same, whole, dropped);
        gf_ifd_put(&ifd, text.at + 4, left > 4 ? left : 5, 4);
    }
    /* Clear the thumbnail that the second directory describes, with the link to this directory. */
    (void)gf_ifd_start(&ifd, ifd.first);
    const uint64_t link = ifd.link, second = gf_ifd_number(&ifd, link, 4);
    size_t size = exif->size;
    for (size_t i = 0; second && i < 2; i++) {
        const uint64_t start = exif_integer(&ifd, second, offsets[i], INTEGERS);
        const uint64_t end = start + exif_integer(&ifd, second, sizes[i], INTEGERS);
        if (start < HEADER_BYTES || start >= size || (start < link + 4 && end > ifd.first))
            continue;
        memset(exif->data + start, 0, (end < size ? end : size) - start);
        size = end < size ? size : start;
    }
    if (second)
        gf_ifd_put(&ifd, link, 0, 4);
    return size;
}
