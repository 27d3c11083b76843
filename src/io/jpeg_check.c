#include "io/jpeg_check.h"

#include <string.h>

#include "gpufilter.h"

enum { DHT = 0xc4, SOI = 0xd8, EOI = 0xd9, SOS = 0xda, APP1 = 0xe1, APP2 = 0xe2 };
enum { TABLE_BYTES = 17, MOST_CODES = 256 };

/* ---- tables -----------------------------------------------------------------------------------
 */

/* stb_image before 2.28 writes past its tables for a Huffman table of more than 256 codes. This
 * walk visits every table that stb does, and maybe more: it takes each marker that stb may take for
 * one. */

/* Past the end there are zeros, as stb has it. */
static unsigned byte_at(const unsigned char *data, size_t size, size_t at) {
    return at < size ? data[at] : 0;
}

/* Offset behind the next marker, or size. Zero behind 0xff stands for a 0xff in the data, and
 * restart markers belong to the data. */
static size_t next_marker(const unsigned char *data, size_t size, size_t at, unsigned *marker) {
    while (at < size) {
        if (data[at++] != 0xff)
            continue;
        while (at < size && data[at] == 0xff)
            at++;
        *marker = byte_at(data, size, at++);
        if (*marker != 0 && (*marker & 0xf8) != 0xd0)
            return at;
    }
    return size;
}

/* The tables of a DHT segment: a class and a number, the count of codes of each length, the codes.
 */
static bool segment_fits(const unsigned char *data, size_t size, size_t at, long left) {
    while (left > 0) {
        unsigned codes = 0;
        for (size_t i = 1; i < TABLE_BYTES; i++)
            codes += byte_at(data, size, at + i);
        if (codes > MOST_CODES)
            return false;
        at += TABLE_BYTES + codes;
        left -= (long)(TABLE_BYTES + codes);
    }
    return true;
}

bool gf_jpeg_tables_fit(const unsigned char *data, size_t size) {
    unsigned marker = 0;
    size_t at = next_marker(data, size, 0, &marker);

    while (at < size && marker != EOI) {
        if (marker != SOI) {
            size_t length = byte_at(data, size, at) << 8 | byte_at(data, size, at + 1);
            if (length < 2)
                return true; /* stb ends here, too */
            if (marker == DHT && !segment_fits(data, size, at + 2, (long)length - 2))
                return false;
            at += length;
        }
        at = next_marker(data, size, at, &marker);
    }
    return true;
}

/* ---- metadata ---------------------------------------------------------------------------------
 */

/* A number of 2 or 4 bytes in EXIF data, in its byte order; 0 past its end. */
static uint32_t exif_number(const unsigned char *exif, size_t size, size_t at, size_t bytes) {
    uint32_t number = 0;
    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | byte_at(exif, size, exif[0] == 'I' ? at + bytes - 1 - i : at + i);
    return number;
}

/* Does EXIF data, a TIFF file without pixels, ask for the picture to be turned or mirrored? */
static bool is_turned(const unsigned char *exif, size_t size) {
    enum { ENTRY_BYTES = 12, ORIENTATION = 0x112, UPRIGHT = 1, MOST = 8 };
    if (size < 8 || (memcmp(exif, "II*", 4) != 0 && memcmp(exif, "MM\0*", 4) != 0))
        return false;
    const size_t directory = exif_number(exif, size, 4, 4);
    const uint32_t count = exif_number(exif, size, directory, 2);
    for (uint32_t i = 0; i < count; i++) {
        const size_t entry = directory + 2 + (size_t)i * ENTRY_BYTES;
        if (entry + ENTRY_BYTES > size)
            return false;
        if (exif_number(exif, size, entry, 2) == ORIENTATION) {
            const uint32_t way = exif_number(exif, size, entry + 8, 2);
            return way > UPRIGHT && way <= MOST;
        }
    }
    return false;
}

uint32_t gf_jpeg_metadata(const unsigned char *data, size_t size) {
    static const char exif[] = "Exif\0", icc[] = "ICC_PROFILE"; /* each with a NUL byte more */
    uint32_t found = 0;
    unsigned marker = 0;
    size_t at = next_marker(data, size, 0, &marker);

    while (at < size && marker != EOI && marker != SOS) {
        if (marker != SOI) {
            const size_t length = byte_at(data, size, at) << 8 | byte_at(data, size, at + 1);
            if (length < 2 || length > size - at)
                break;
            const unsigned char *segment = data + at + 2;
            const size_t bytes = length - 2;
            if (marker == APP1 && bytes >= sizeof exif && memcmp(segment, exif, sizeof exif) == 0) {
                found |= GF_DROPPED_EXIF;
                if (is_turned(segment + sizeof exif, bytes - sizeof exif))
                    found |= GF_DROPPED_ORIENTATION;
            }
            if (marker == APP2 && bytes >= sizeof icc && memcmp(segment, icc, sizeof icc) == 0)
                found |= GF_DROPPED_ICC;
            at += length;
        }
        at = next_marker(data, size, at, &marker);
    }
    return found;
}
