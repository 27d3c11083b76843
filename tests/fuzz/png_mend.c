#include "png_mend.h"

#include <string.h>
#include <zlib.h>

#include "../png_verdict.h"
#include "fuzz.h"
#include "mutate.h"

enum { SIGNATURE = 8, AROUND = 12, MOST_CHUNKS = 64, RAW_BYTES = 1 << 15 };

typedef struct chunks {
    size_t at[MOST_CHUNKS + 1]; /* the one past the last: the end of it */
    size_t count;
} chunks;

static void put32_at(uint8_t *at, uint32_t v) {
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> (24 - 8 * i));
}

static chunks find_chunks(const uint8_t *data, size_t size) {
    chunks found = {.at = {SIGNATURE}};

    while (found.count < MOST_CHUNKS && found.at[found.count] + AROUND <= size) {
        const size_t at = found.at[found.count], length = get32(data + at);
        if (length > size - at - AROUND)
            break;
        found.at[++found.count] = at + AROUND + length;
    }
    return found;
}

static void mend(uint8_t *data, size_t at, size_t length) {
    put32_at(data + at, (uint32_t)length);
    put32_at(data + at + 8 + length, (uint32_t)crc32(0, data + at + 4, (uInt)length + 4));
}

static void mend_all(uint8_t *data, size_t size) {
    const chunks all = find_chunks(data, size);

    for (size_t i = 0; i < all.count; i++)
        mend(data, all.at[i], all.at[i + 1] - all.at[i] - AROUND);
}

/* Puts so many bytes in place of a chunk's data. Returns the new size; the old one if there is no
 * room. */
static size_t replace(uint8_t *data, size_t size, size_t most, size_t at, size_t end,
                      const uint8_t *bytes, size_t length) {
    if (size - (end - at) + AROUND + length > most)
        return size;
    memmove(data + at + AROUND + length, data + end, size - end);
    memcpy(data + at + 8, bytes, length);
    mend(data, at, length);
    return size - (end - at) + AROUND + length;
}

static size_t change_data(uint8_t *data, size_t size, size_t most, size_t at, size_t end) {
    static uint8_t room[1 << 16];
    size_t length = end - at - AROUND, space = length + (most - size);

    if (space > sizeof room)
        space = sizeof room;
    if (length > space || space == 0)
        return size;
    memcpy(room, data + at + 8, length);
    length = LLVMFuzzerMutate(room, length, space);
    return replace(data, size, most, at, end, room, length);
}

static size_t twice(uint8_t *data, size_t size, size_t most, size_t at, size_t end, size_t to) {
    static uint8_t copy[1 << 12];
    const size_t bytes = end - at;

    if (bytes > sizeof copy || size + bytes > most)
        return size;
    memcpy(copy, data + at, bytes);
    memmove(data + to + bytes, data + to, size - to);
    memcpy(data + to, copy, bytes);
    return size + bytes;
}

static size_t without(uint8_t *data, size_t size, size_t at, size_t end) {
    memmove(data + at, data + end, size - end);
    return size - (end - at);
}

/* Changes what a zlib stream in one chunk unpacks to. */
static size_t change_packed(uint8_t *data, size_t size, size_t most, size_t at, size_t end,
                            uint64_t *random) {
    static uint8_t raw[RAW_BYTES], packed[RAW_BYTES + 4096];
    uLongf length = RAW_BYTES / 2, coded = sizeof packed;

    if (uncompress(raw, &length, data + at + 8, (uLong)(end - at - AROUND)) != Z_OK || length == 0)
        return change_data(data, size, most, at, end);
    length = LLVMFuzzerMutate(raw, length, sizeof raw);
    if (compress2(packed, &coded, raw, length, (int)(fuzz_random(random) % 10)) != Z_OK)
        return size;
    return replace(data, size, most, at, end, packed, coded);
}

/* Two chunks of one. */
static size_t split(uint8_t *data, size_t size, size_t most, size_t at, size_t end,
                    uint64_t *random) {
    const size_t length = end - at - AROUND;
    const size_t first = (size_t)(fuzz_random(random) % (length + 1));

    if (size + AROUND > most)
        return size;
    const size_t cut = at + 8 + first;
    memmove(data + cut + AROUND, data + cut, size - cut);
    memcpy(data + cut + 8, data + at + 4, 4); /* behind the check sum and the length: the name */
    mend(data, at, first);
    mend(data, cut + 4, length - first);
    return size + AROUND;
}

static void rename_chunk(uint8_t *data, size_t at, size_t end, uint64_t *random) {
    static const char names[][5] = {"IHDR", "PLTE", "IDAT", "IEND", "tRNS", "gAMA", "cHRM",
                                    "sRGB", "iCCP", "tEXt", "zTXt", "iTXt", "tIME", "pHYs",
                                    "eXIf", "sBIT", "bKGD", "hIST", "sPLT", "cICP", "mDCV",
                                    "cLLI", "acTL", "fcTL", "fdAT", "abCd", "abcd", "ABCD"};

    memcpy(data + at + 4, names[fuzz_random(random) % (sizeof names / sizeof *names)], 4);
    mend(data, at, end - at - AROUND);
}

size_t png_mutate(uint8_t *data, size_t size, size_t most, unsigned seed) {
    uint64_t random = (uint64_t)seed * 2 + 1;

    if (size > most)
        size = most;
    (void)fuzz_random(&random);
    const chunks all = find_chunks(data, size);
    const uint64_t way = fuzz_random(&random) % 16;
    if (all.count == 0 || way == 0)
        return LLVMFuzzerMutate(data, size, most);
    if (way == 1) {
        size = LLVMFuzzerMutate(data, size, most);
        mend_all(data, size);
        return size;
    }
    const size_t i = (size_t)(fuzz_random(&random) % all.count);
    const size_t at = all.at[i], end = all.at[i + 1];
    if (memcmp(data + at + 4, "IDAT", 4) == 0 && way < 8)
        return change_packed(data, size, most, at, end, &random);
    switch (way) {
    case 2:
        return without(data, size, at, end);
    case 3:
        return twice(data, size, most, at, end, all.at[fuzz_random(&random) % (all.count + 1)]);
    case 4:
        rename_chunk(data, at, end, &random);
        return size;
    case 8:
        return split(data, size, most, at, end, &random);
    default:
        return change_data(data, size, most, at, end);
    }
}
