/* Images that are sRGB: what their metadata says. The tables of sRGB are in core/srgb.c. */
#define _GNU_SOURCE /* memmem */

#include "io/stream/convert.h"

#include <math.h>
#include <string.h>

#include "core/error.h"
#include "io/bytes.h"

/* Return whether a text names sRGB and not linear light. wide: the characters have 2 bytes. */
static bool icc_says_srgb(const unsigned char *data, size_t size, bool wide) {
    return wide
               ? memmem(data, size, "\0s\0R\0G\0B", 8) && !memmem(data, size, "\0i\0n\0e\0a\0r", 10)
               : memmem(data, size, "sRGB", 4) && !memmem(data, size, "inear", 5);
}

/* Return whether a description tag names sRGB: a textDescriptionType or a
 * multiLocalizedUnicodeType. */
static bool icc_describes_srgb(const unsigned char *tag, size_t size) {
    enum { HEAD = 12, MLUC_HEAD = 16, RECORD = 12 };
    if (size < MLUC_HEAD)
        return false;
    if (memcmp(tag, "desc", 4) == 0) {
        const size_t length = gf_big32(tag + 8), rest = size - HEAD;
        return icc_says_srgb(tag + HEAD, length < rest ? length : rest, false);
    }
    if (memcmp(tag, "mluc", 4) != 0 || gf_big32(tag + 12) != RECORD)
        return false;
    const size_t records = gf_big32(tag + 8), fit = (size - MLUC_HEAD) / RECORD;
    for (size_t i = 0; i < records && i < fit; i++) {
        const unsigned char *record = tag + MLUC_HEAD + i * RECORD;
        const size_t length = gf_big32(record + 4), offset = gf_big32(record + 8);
        if (offset <= size && length <= size - offset && icc_says_srgb(tag + offset, length, true))
            return true;
    }
    return false;
}

/* Return a tag of a profile and its size; NULL if it is missing or not inside the profile. */
static const unsigned char *icc_find(const unsigned char *icc, size_t size, const char *name,
                                     size_t *length) {
    enum { HEAD = 128, ENTRY = 12 };
    if (size < HEAD + 4)
        return NULL;
    const size_t count = gf_big32(icc + HEAD), fit = (size - HEAD - 4) / ENTRY;
    for (size_t i = 0; i < count && i < fit; i++) {
        const unsigned char *entry = icc + HEAD + 4 + i * ENTRY;
        const size_t offset = gf_big32(entry + 4);
        *length = gf_big32(entry + 8);
        if (memcmp(entry, name, 4) == 0)
            return offset <= size && *length <= size - offset ? icc + offset : NULL;
    }
    return NULL;
}

/* Evaluate a curve at 0.5. Return NaN if it is damaged, or of another type. */
static double icc_curve_at_half(const unsigned char *curve, size_t size) {
    enum { HEAD = 12, FUNCTIONS = 5, MAX_NUMBERS = 7 };
    static const size_t numbers[FUNCTIONS] = {1, 3, 4, 5, 7};
    double p[MAX_NUMBERS] = {0, 1}; /* g, a, b, c, d, e, f */
    if (size < HEAD)
        return NAN;
    const uint32_t head = gf_big32(curve + 8), function = head >> 16;
    const unsigned char *data = curve + HEAD;
    if (memcmp(curve, "curv", 4) == 0) { /* identity, power or table */
        if (head == 0 || head > (size - HEAD) / 2)
            return head ? NAN : 0.5;
        const size_t low = (head - 1) / 2, high = head / 2;
        return head == 1 ? pow(0.5, gf_big16(data) / 256.0)
                         : (gf_big16(data + 2 * low) + gf_big16(data + 2 * high)) / 2.0 / 65535;
    }
    if (memcmp(curve, "para", 4) != 0 || function >= FUNCTIONS ||
        (size - HEAD) / 4 < numbers[function])
        return NAN;
    for (size_t i = 0; i < numbers[function]; i++)
        p[i] = (int32_t)gf_big32(data + 4 * i) / 65536.0;
    /* d is the end of the linear segment. */
    return p[4] > 0.5 ? NAN : pow(p[1] / 2 + p[2], p[0]) + (function == 2 ? p[3] : p[5]);
}

/* Return whether the description of a profile names sRGB, and its curves may be those of sRGB or
 * the power 2.2. Some profiles with sRGB in their description have another one: linear
 * (sRGB-elle-V2-g10.icc), L*, Rec. 709. */
static bool icc_is_srgb(const unsigned char *icc, size_t size) {
    static const char *const curves[] = {"rTRC", "kTRC"};
    const double half = 0.2140,
                 tolerance = 0.01; /* power 2.2: 0.2176; L*: 0.184; Rec. 709: 0.260 */
    size_t length;
    const unsigned char *tag = icc_find(icc, size, "desc", &length);
    bool is_srgb = tag && icc_describes_srgb(tag, length);
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
        if ((tag = icc_find(icc, size, curves[i], &length)))
            is_srgb &= fabs(icc_curve_at_half(tag, length) - half) <= tolerance;
    return is_srgb;
}

/* In the order in which PNG readers use them. */
gf_status gf_srgb_check(const gf_metadata *metadata, const char *name, gf_error *error) {
    static const unsigned char srgb[4] = {1, 13, 0, 1}; /* primaries, transfer, matrix, range */
    enum { GAMMA = 45455, TOLERANCE = 5 };              /* 1 / 2.2 */
    if (metadata->associated_alpha)
        return gf_fail(
            error, GF_FAILED,
            "%s: --linear does not support associated (premultiplied) alpha; convert the "
            "image first, e.g. with vips unpremultiply in.tif out.tif",
            name);
    const gf_chunk *cicp = gf_metadata_find(metadata, "cICP");
    const gf_chunk *gama = gf_metadata_find(metadata, "gAMA");
    const uint32_t gamma = gama && gama->size == 4 ? gf_big32(gama->data) : 0;
    const char *other = NULL; /* what is not sRGB */
    gf_metadata items = {0};
    if (cicp && cicp->size == sizeof srgb && memcmp(cicp->data, srgb, sizeof srgb) == 0)
        return GF_OK;
    gf_status status = gf_metadata_to_items(metadata, &items, name, error);
    const gf_chunk *icc = gf_metadata_find(&items, GF_ITEM_ICC);
    if (cicp)
        other = "cICP chunk";
    else if (icc)
        other = icc_is_srgb(icc->data, icc->size) ? NULL : "ICC profile";
    else if (gama && !gf_metadata_find(metadata, "sRGB") &&
             (gamma < GAMMA - TOLERANCE || gamma > GAMMA + TOLERANCE))
        other = "gamma";
    gf_metadata_clear(&items);
    if (status || !other)
        return status;
    return gf_fail(error, GF_FAILED,
                   "%s: its %s is not sRGB; convert it to sRGB first or remove --linear", name,
                   other);
}
