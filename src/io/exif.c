/* Values of EXIF data. */
#include "io/exif.h"

#include <string.h>

#include "io/bytes.h"

enum {
    HEADER_BYTES = 8,
    ENTRY_BYTES = 12,
    TAG_ORIENTATION = 0x112,
    TAG_X_RESOLUTION = 0x11a,
    TAG_Y_RESOLUTION = 0x11b,
    TAG_RESOLUTION_UNIT = 0x128
};

/* Types of values. */
enum { TYPE_SHORT = 3, TYPE_RATIONAL = 5 };

/* Read a number of 2 or 4 bytes in the byte order of the data. Return 0 past the end. */
static uint32_t exif_number(const unsigned char *exif, size_t size, uint64_t at, size_t bytes) {
    if (at > size || size - at < bytes)
        return 0;
    const unsigned char *p = exif + at;
    if (exif[0] == 'I')
        return bytes == 2 ? gf_little16(p) : gf_little32(p);
    return bytes == 2 ? (uint32_t)p[0] << 8 | p[1] : gf_big32(p);
}

bool gf_exif_is(const unsigned char *exif, size_t size) {
    return size >= HEADER_BYTES && (memcmp(exif, "II*", 4) == 0 || memcmp(exif, "MM\0*", 4) == 0);
}

/* Find an entry of the first directory by its tag and type. Return its offset; 0 if there is none.
 */
static uint64_t exif_find(const unsigned char *exif, size_t size, uint32_t tag, uint32_t type) {
    if (!gf_exif_is(exif, size))
        return 0;
    const uint64_t directory = exif_number(exif, size, 4, 4);
    const uint32_t count = exif_number(exif, size, directory, 2);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t entry = directory + 2 + (uint64_t)i * ENTRY_BYTES;
        if (entry + ENTRY_BYTES > size)
            return 0;
        if (exif_number(exif, size, entry, 2) == tag &&
            exif_number(exif, size, entry + 2, 2) == type)
            return entry;
    }
    return 0;
}

uint32_t gf_exif_orientation(const unsigned char *exif, size_t size) {
    enum { MAX = 8 };
    const uint64_t entry = exif_find(exif, size, TAG_ORIENTATION, TYPE_SHORT);
    const uint32_t orientation = entry ? exif_number(exif, size, entry + 8, 2) : 0;
    return orientation <= MAX ? orientation : 0;
}

bool gf_exif_set_orientation(unsigned char *exif, size_t size, uint32_t orientation) {
    const uint64_t entry = exif_find(exif, size, TAG_ORIENTATION, TYPE_SHORT);
    if (!entry)
        return false;
    const bool little = exif[0] == 'I';
    exif[entry + 8] = (unsigned char)(little ? orientation : orientation >> 8);
    exif[entry + 9] = (unsigned char)(little ? orientation >> 8 : orientation);
    return true;
}

/* Read a rational number of the first directory. Return 0 if it is missing or undefined. */
static double exif_rational(const unsigned char *exif, size_t size, uint32_t tag) {
    const uint64_t entry = exif_find(exif, size, tag, TYPE_RATIONAL);
    const uint64_t at = entry ? exif_number(exif, size, entry + 8, 4) : size;
    const uint32_t denominator = exif_number(exif, size, at + 4, 4);
    return denominator ? (double)exif_number(exif, size, at, 4) / denominator : 0;
}

bool gf_exif_resolution(const unsigned char *exif, size_t size, gf_resolution *resolution) {
    const uint64_t entry = exif_find(exif, size, TAG_RESOLUTION_UNIT, TYPE_SHORT);
    const uint32_t unit = entry ? exif_number(exif, size, entry + 8, 2) : GF_PER_INCH;
    resolution->x = exif_rational(exif, size, TAG_X_RESOLUTION);
    resolution->y = exif_rational(exif, size, TAG_Y_RESOLUTION);
    resolution->unit =
        unit == GF_PER_NONE || unit == GF_PER_CM ? (gf_resolution_unit)unit : GF_PER_INCH;
    return resolution->x > 0 && resolution->y > 0;
}
