#include "mutate.h"

#include <string.h>

#include "fuzz.h"

static uint64_t state = 1;
static const uint8_t *other;
static size_t other_size;

void fuzz_mutate_seed(uint64_t seed) {
    state = seed * 2 + 1;
}

void fuzz_mutate_other(const uint8_t *data, size_t size) {
    other = data;
    other_size = size;
}

static size_t below(size_t n) {
    return (size_t)(fuzz_random(&state) % n);
}

/* Makes room for `gap` bytes at `at`, as far as there is any; *gap is what there was. */
static size_t open_gap(uint8_t *data, size_t size, size_t most, size_t at, size_t *gap) {
    if (*gap > most - size)
        *gap = most - size;
    memmove(data + at + *gap, data + at, size - at);
    return size + *gap;
}

static size_t insert(uint8_t *data, size_t size, size_t most, const void *bytes, size_t count) {
    const size_t at = below(size + 1);

    size = open_gap(data, size, most, at, &count);
    memcpy(data + at, bytes, count);
    return size;
}

static size_t repeat(uint8_t *data, size_t size, size_t most) {
    uint8_t copy[64];
    const size_t at = below(size), left = size - at;
    const size_t count = 1 + below(left < sizeof copy ? left : sizeof copy);

    memcpy(copy, data + at, count);
    return insert(data, size, most, copy, count);
}

static size_t cut_out(uint8_t *data, size_t size) {
    const size_t at = below(size), left = size - at;
    const size_t count = 1 + below(below(2) != 0 && left > 8 ? 8 : left);

    memmove(data + at, data + at + count, left - count);
    return size - count;
}

/* Numbers around what fields can hold, in either order of bytes. */
static void put_number(uint8_t *data, size_t size) {
    static const uint32_t numbers[] = {
        0,     1,     2,      3,      4,       7,          8,          15,         16,
        31,    32,    63,     64,     100,     127,        128,        255,        256,
        257,   512,   1000,   4095,   4096,    16384,      32767,      32768,      65535,
        65536, 65537, 100000, 0xffff, 1 << 24, 0x7ffffffe, 0x7fffffff, 0x80000000, 0xffffffff};
    const size_t bytes = (size_t)1 << below(3), at = below(size);
    uint32_t number = numbers[below(sizeof numbers / sizeof *numbers)];
    const int big = (int)below(2);

    if (below(4) == 0)
        number = 0u - number;
    for (size_t i = 0; i < bytes && at + i < size; i++)
        data[at + i] = (uint8_t)(number >> 8 * (big ? bytes - 1 - i : i));
}

static size_t put_word(uint8_t *data, size_t size, size_t most) {
    size_t count = 0;

    while (fuzz_words != NULL && fuzz_words[count] != NULL)
        count++;
    if (count == 0)
        return repeat(data, size, most);
    const char *word = fuzz_words[below(count)];
    const bool apart = &fuzz_words_apart != NULL && fuzz_words_apart;
    return insert(data, size, most, word, strlen(word) + (apart ? 1 : 0));
}

static size_t put_digits(uint8_t *data, size_t size, size_t most) {
    static const char *const texts[] = {"0",
                                        "1",
                                        "-1",
                                        "255",
                                        "65535",
                                        "65536",
                                        "2147483647",
                                        "4294967296",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "1e308",
                                        "1e-45",
                                        "nan",
                                        "inf",
                                        "0x10",
                                        "."};
    const char *text = texts[below(sizeof texts / sizeof *texts)];

    return insert(data, size, most, text, strlen(text));
}

static size_t splice(uint8_t *data, size_t size, size_t most) {
    if (other_size == 0)
        return size;
    const size_t from = below(other_size), left = other_size - from, at = below(size + 1);
    size_t count = 1 + below(left);

    if (below(2) == 0) { /* the end of the other one */
        count = left < most - at ? left : most - at;
        memcpy(data + at, other + from, count);
        return at + count;
    }
    return insert(data, size, most, other + from, count);
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) {
    if (size == 0) {
        data[0] = (uint8_t)below(256);
        return 1;
    }
    switch (below(12)) {
    case 0:
    case 1:
        data[below(size)] ^= (uint8_t)(1u << below(8));
        return size;
    case 2:
        data[below(size)] = (uint8_t)below(256);
        return size;
    case 3:
        data[below(size)] += (uint8_t)(below(2) != 0 ? 1 : 255);
        return size;
    case 4:
        put_number(data, size);
        return size;
    case 5:
        return insert(data, size, most, "\0\0\0\0\0\0\0\0", 1 + below(8));
    case 6:
        return repeat(data, size, most);
    case 7:
        return size > 1 ? cut_out(data, size) : size;
    case 8:
        return below(4) == 0 ? below(size) + 1 : size;
    case 9:
        return put_word(data, size, most);
    case 10:
        return below(4) == 0 ? put_digits(data, size, most) : size;
    default:
        return splice(data, size, most);
    }
}
