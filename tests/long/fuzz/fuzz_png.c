/* PNG, decoded by our reader and by libpng alone: verdict, pixels and metadata must be equal,
 * except for the differences listed in docs/design-files.md. Accepted files must be unchanged
 * after encoding by our encoder. */
#include "fuzz.h"
#include "png_verdict.h"

static void png_round_trip(const outcome *image, unsigned which) {
    /* fuzz_encoder tests the slow ones. */
    static const char *const efforts[] = {"fast", "fast", "fast", "none"};
    const char *path = fuzz_path("x.png");
    const gf_file_options options = {.force = true, .write.compression = efforts[which % 4]};
    AUTO(free) png_bytes file;
    const gf_status status =
        save_image(path, &image->format, image->pixels, &image->metadata, &options, 1 + which % 7);
    FUZZ_CHECK(status == GF_OK, "write failed: %s", why.message);
    file.data = test_bytes(path, &file.size);
    outcome back = png_oracle(&file, file.size, NULL);
    FUZZ_CHECK(back.error.status == GF_OK, "cannot read the written file: %s", back.error.message);
    FUZZ_CHECK(same_image(image, &back), "different pixels after writing");
    clear(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    png_bytes file = {(unsigned char *)(uintptr_t)data, size};
    const unsigned which = (unsigned)crc32(0, data, (uInt)size);
    tally count = {0};
    if (size < 8)
        return 0;
    outcome ours = load(&file, size, &fuzz_limits, gf_png_codec.open_source, 1 + which % 5);
    outcome oracle = png_oracle(&file, size, &fuzz_limits);
    check_outcomes(&ours, &oracle, &file, "input", 0, &count);
    if (ours.error.status != GF_OK)
        fuzz_check_error(ours.error.status, &ours.error);
    else if (which % 8 == 0)
        png_round_trip(&ours, which / 8);
    clear(&ours);
    clear(&oracle);
    return 0;
}

/* ---- mutations that keep the checksums valid --------------------------------------------- */

enum { SIGNATURE = 8, CHUNK_OVERHEAD = 12, MAX_CHUNKS = 64, MAX_DATA = 1 << 15 };

/* Write the length and the checksum of a chunk with `length` bytes of data. */
static void chunk_seal(uint8_t *chunk, size_t length) {
    const uint32_t check = (uint32_t)crc32(0, chunk + 4, (uInt)length + 4);
    for (int i = 0; i < 4; i++) {
        chunk[i] = (uint8_t)(length >> (24 - 8 * i));
        chunk[8 + length + (size_t)i] = (uint8_t)(check >> (24 - 8 * i));
    }
}

/* Find the complete chunks. at[count] is the end of the last one. */
static size_t chunk_find_all(const uint8_t *data, size_t size, size_t at[MAX_CHUNKS + 1]) {
    size_t count = 0;
    for (at[0] = SIGNATURE; count < MAX_CHUNKS && at[count] + CHUNK_OVERHEAD <= size; count++) {
        const size_t length = get32(data + at[count]);
        if (length > size - at[count] - CHUNK_OVERHEAD)
            break;
        at[count + 1] = at[count] + CHUNK_OVERHEAD + length;
    }
    return count;
}

/* Replace data[at, end) by bytes. Return the new size; the old one if there is no space. */
static size_t chunk_splice(uint8_t *data, size_t size, size_t max, size_t at, size_t end,
                           const uint8_t *bytes, size_t length) {
    if (size - (end - at) + length > max)
        return size;
    memmove(data + at + length, data + end, size - end);
    if (length != 0)
        memcpy(data + at, bytes, length);
    return size - (end - at) + length;
}

/* Mutate a chunk's data or, three times of four if it is a zlib stream, its decompressed data. */
static size_t chunk_change_data(uint8_t *data, size_t size, size_t max, size_t at, size_t end,
                                uint32_t random) {
    static uint8_t raw[MAX_DATA], chunk[MAX_DATA + 4096];
    uLongf length = MAX_DATA / 2, coded = sizeof chunk - CHUNK_OVERHEAD;
    const size_t old = end - at - CHUNK_OVERHEAD;
    memcpy(chunk, data + at, 8);
    if (random % 4 != 0 && uncompress(raw, &length, data + at + 8, (uLong)old) == Z_OK &&
        length != 0) {
        length = LLVMFuzzerMutate(raw, length, sizeof raw);
        if (compress2(chunk + 8, &coded, raw, length, (int)(random % 10)) != Z_OK)
            return size;
    } else {
        if (old > MAX_DATA)
            return size;
        memcpy(chunk + 8, data + at + 8, old);
        coded = LLVMFuzzerMutate(chunk + 8, old, MAX_DATA);
    }
    chunk_seal(chunk, coded);
    return chunk_splice(data, size, max, at, end, chunk, CHUNK_OVERHEAD + coded);
}

static void chunk_rename(uint8_t *chunk, size_t length, uint32_t which) {
    static const char names[][5] = {"IHDR", "PLTE", "IDAT", "IEND", "tRNS", "gAMA", "cHRM",
                                    "sRGB", "iCCP", "tEXt", "zTXt", "iTXt", "tIME", "pHYs",
                                    "eXIf", "sBIT", "bKGD", "hIST", "sPLT", "cICP", "mDCV",
                                    "cLLI", "acTL", "fcTL", "fdAT", "abCd", "abcd", "ABCD"};
    memcpy(chunk + 4, names[which % (sizeof names / sizeof *names)], 4);
    chunk_seal(chunk, length);
}

/* Divide one chunk into two. */
static size_t chunk_split(uint8_t *data, size_t size, size_t max, size_t at, size_t end,
                          uint32_t where) {
    const size_t length = end - at - CHUNK_OVERHEAD, first = where % (length + 1);
    uint8_t between[CHUNK_OVERHEAD] = {0};

    /* The name follows the checksum of the first chunk and the length of the second. */
    memcpy(between + 8, data + at + 4, 4);
    const size_t cut = at + 8 + first,
                 made = chunk_splice(data, size, max, cut, cut, between, CHUNK_OVERHEAD);
    if (made != size) {
        chunk_seal(data + at, first);
        chunk_seal(data + cut + 4, length - first);
    }
    return made;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
    static uint8_t copy[1 << 12];
    size_t chunks[MAX_CHUNKS + 1];
    uint32_t random = seed;
    const uint32_t change = next_random(&random) % 16;
    size_t count = chunk_find_all(data, size, chunks);
    if (count == 0 || change == 0)
        return LLVMFuzzerMutate(data, size, max);
    if (change == 1) {
        size = LLVMFuzzerMutate(data, size, max);
        count = chunk_find_all(data, size, chunks);
        for (size_t i = 0; i < count; i++)
            chunk_seal(data + chunks[i], chunks[i + 1] - chunks[i] - CHUNK_OVERHEAD);
        return size;
    }
    const size_t i = next_random(&random) % count, at = chunks[i], end = chunks[i + 1];
    const uint32_t other = next_random(&random);
    switch (memcmp(data + at + 4, "IDAT", 4) == 0 ? change : change % 8) {
    case 2: /* remove the chunk */
        return chunk_splice(data, size, max, at, end, NULL, 0);
    case 3: /* repeat it elsewhere */
        if (end - at > sizeof copy)
            return size;
        memcpy(copy, data + at, end - at);
        return chunk_splice(data, size, max, chunks[other % (count + 1)],
                            chunks[other % (count + 1)], copy, end - at);
    case 4:
        chunk_rename(data + at, end - at - CHUNK_OVERHEAD, other);
        return size;
    case 5:
        return chunk_split(data, size, max, at, end, other);
    default:
        return chunk_change_data(data, size, max, at, end, other);
    }
}
