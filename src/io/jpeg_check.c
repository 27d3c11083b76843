/* stb_image before 2.28 writes past its tables for a Huffman table of more than 256 codes. This
 * walk visits every table that stb does, and maybe more: it takes each marker that stb may take for
 * one. */
#include "io/jpeg_check.h"

enum { DHT = 0xc4, SOI = 0xd8, EOI = 0xd9 };
enum { TABLE_BYTES = 17, MOST_CODES = 256 };

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
