/* Search for the start of a deflate block at an unknown bit position. */
#include "core/machine.h"
#include "io/bytes.h"
#include "io/flate/inflate.h"

enum {
    LENGTH_BITS = 7, /* maximum length of a codeword of the code length alphabet */
    LOAD_BYTES = 5,  /* bytes whose bits are tested per step */
    GROUP_BITS = 12, /* four code lengths of 3 bits */
    STORED_MIN = 64, /* shorter stored blocks are not searched: equal bytes occur by chance */
    STORED_CHAIN = 3 /* consecutive stored blocks to check */
};

void gf_inflate_finder_init(gf_inflate_finder *finder) {
    for (uint32_t group = 0; group < 1 << GROUP_BITS; group++) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < GROUP_BITS; i += 3) {
            const uint32_t length = group >> i & 7; /* 0: unused symbol */
            sum += length != 0 ? (1u << LENGTH_BITS) >> length : 0;
        }
        finder->kraft[group] = (uint16_t)sum;
    }
}

/* Return the bits, of the low 40, at which a dynamic block that is not the last one may start: its
 * first three bits are 0, 0, 1, and its numbers of codes are valid. */
static uint64_t find_dynamic(uint64_t bits) {
    const uint64_t types = ~bits & ~(bits >> 1) & bits >> 2;
    const uint64_t ones2 = bits & bits >> 1, ones4 = ones2 & ones2 >> 2;
    return types & ~(ones4 >> 4) & ~(ones4 >> 9) & ((UINT64_C(1) << 8 * LOAD_BYTES) - 1);
}

/* Return true if the code length code of a dynamic header is complete. */
static bool find_is_complete(const gf_inflate_finder *finder, const unsigned char *data,
                             uint32_t bit) {
    const uint64_t low = gf_little64(data) >> bit, mask = (1 << GROUP_BITS) - 1;
    const uint32_t count = 3 * (4 + (uint32_t)(low >> 13 & 15));
    uint64_t lengths = low >> 17 | gf_little64(data + 7) << (39 - bit);
    lengths &= (UINT64_C(1) << count) - 1;
    const uint16_t *kraft = finder->kraft;
    return kraft[lengths & mask] + kraft[lengths >> 12 & mask] + kraft[lengths >> 24 & mask] +
               kraft[lengths >> 36 & mask] + kraft[lengths >> 48] ==
           1 << LENGTH_BITS;
}

/* Return true if a stored block's data begins 4 bytes after data[0]. Rows of small differences
 * contain such bytes by chance (0, 255, 255, 0). Therefore a dynamic block must follow, or stored
 * ones; any bits are valid after the header of a fixed block. */
static bool find_is_stored(const unsigned char *data, const unsigned char *end) {
    if (data[-1] >= 0x20)
        return false;
    for (int i = 0; i < STORED_CHAIN; i++) {
        const uint32_t size = gf_little16(data);
        const unsigned char *next = data + 4 + size;
        gf_inflate_header header;
        if (size < STORED_MIN)
            return false;
        if (next >= end)
            return true;
        const gf_inflate_result result =
            gf_inflate_header_read(next, (size_t)(end - next), 0, &header);
        if (result)
            return result == GF_INFLATE_TRUNCATED;
        if (header.kind != GF_INFLATE_STORED)
            return header.kind == GF_INFLATE_DYNAMIC;
        if (header.last) /* too little evidence */
            return false;
        data = next + 1;
    }
    return true;
}

bool gf_inflate_find(const gf_inflate_finder *finder, const unsigned char *data, size_t size,
                     uint64_t from, uint64_t to, gf_inflate_start_point *found) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const unsigned char *const end = data + size;
    gf_inflate_header header;
    for (uint64_t at = from / 8; 8 * at < to && at + GF_INFLATE_LOOKAHEAD <= size;
         at += LOAD_BYTES) {
        const uint64_t bits = gf_little64(data + at);
        /* 16 ones at a byte: the two bytes there and the following two are complements. */
        const uint64_t complements = bits ^ bits >> 16;
        const uint64_t pairs = complements & complements >> 8;
        if ((~pairs - ones) & pairs & (ones << 7)) /* a byte may be 255 */
            for (uint64_t k = 0; k < LOAD_BYTES; k++)
                if ((pairs >> 8 * k & 255) == 255 && 8 * (at + k) >= from + 3 &&
                    8 * (at + k) < to + 3 && find_is_stored(data + at + k, end)) {
                    *found = (gf_inflate_start_point){8 * (at + k) - 3, at + k};
                    return true;
                }
        for (uint64_t set = find_dynamic(bits); set != 0; set &= set - 1) {
            const uint64_t position = 8 * at + (uint32_t)__builtin_ctzll(set);
            const unsigned char *block = data + position / 8;
            const uint32_t bit = position % 8;
            if (position >= from && position < to && find_is_complete(finder, block, bit) &&
                !gf_inflate_header_read(block, (size_t)(end - block), bit, &header)) {
                *found = (gf_inflate_start_point){position, 0};
                return true;
            }
        }
    }
    return false;
}
