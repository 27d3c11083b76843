/* Comparison of the reader with the oracle (png_both.h) on one file. */
#ifndef PNG_VERDICT_H
#define PNG_VERDICT_H

#include "png_both.h"

/* Return true if zlib accepts the stream in the first sequence of IDAT chunks up to its end. */
static inline bool stream_is_valid(const png_bytes *file) {
    z_stream stream = {0};
    unsigned char out[4096];
    int status = Z_OK;
    bool begun = false;
    assert_int_equal(inflateInit(&stream), Z_OK);
    for (size_t at = 8; at + 12 <= file->size && status == Z_OK;) {
        size_t size = get32(file->data + at);
        if (size > file->size - at - 12)
            break;
        const bool idat = memcmp(file->data + at + 4, "IDAT", 4) == 0;
        if (begun && !idat)
            break;
        begun |= idat;
        stream.next_in = file->data + at + 8;
        stream.avail_in = idat ? (uInt)size : 0;
        while (stream.avail_in != 0 && status == Z_OK) {
            stream.next_out = out;
            stream.avail_out = sizeof out;
            status = inflate(&stream, Z_NO_FLUSH);
        }
        at += size + 12;
    }
    (void)inflateEnd(&stream);
    return status == Z_STREAM_END;
}

/* Return true if a tRNS chunk has a wrong checksum or an invalid length for its image. */
static inline bool has_damaged_trns(const png_bytes *file) {
    size_t colors = 0;
    for (size_t at = 8; at + 12 <= file->size; at += 12 + get32(file->data + at)) {
        const unsigned char *chunk = file->data + at;
        const size_t size = get32(chunk);
        if (size > file->size - at - 12)
            return false;
        if (memcmp(chunk + 4, "PLTE", 4) == 0) /* only entries that the depth can address */
            colors = size / 3 >> file->data[24] != 0 ? (size_t)1 << file->data[24] : size / 3;
        if (memcmp(chunk + 4, "tRNS", 4) != 0)
            continue;
        const int color = file->data[25];
        if (get32(chunk + 8 + size) != crc32(0, chunk + 4, (uInt)size + 4) ||
            (color == 0 && size != 2) || (color == 2 && size != 6) ||
            (color == 3 && (size == 0 || size > colors)))
            return true;
    }
    return false;
}

/* Files that libpng accepts and the reader rejects, by class. "Differences from libpng" in
 * docs/design-files.md lists the classes. */
typedef enum difference {
    END_IS_DAMAGED,
    TOO_MUCH_DATA,
    TRNS_IS_DAMAGED,
    BEFORE_IHDR,
    OVER_A_LIMIT,
    DIFFERENCES
} difference;

static const char *const difference_names[DIFFERENCES] = {
    "damaged end of the stream", "too much data after the rows", "damaged tRNS",
    "chunk before IHDR", "over a limit"};

/* Return the class of a rejection, or DIFFERENCES if it has none. */
static inline difference difference_of(const png_bytes *file, const char *message) {
    if (strstr(message, "; raise it with --max-") != NULL)
        return OVER_A_LIMIT;
    if (strstr(message, ": missing IHDR)") != NULL && memcmp(file->data + 12, "IHDR", 4) != 0)
        return BEFORE_IHDR;
    if (strstr(message, "(tRNS: ") != NULL)
        return has_damaged_trns(file) ? TRNS_IS_DAMAGED : DIFFERENCES;
    if (strstr(message, "(IDAT: too much data)") != NULL)
        return TOO_MUCH_DATA;
    return stream_is_valid(file) ? DIFFERENCES : END_IS_DAMAGED;
}

typedef struct tally {
    int files, accepted; /* by the oracle */
    int by[DIFFERENCES];
} tally;

static inline int differences(const tally *count) {
    int sum = 0;
    for (int i = 0; i < DIFFERENCES; i++)
        sum += count->by[i];
    return sum;
}

static inline void print_tally(const tally *count) {
    print_message("%d files, %d accepted by libpng", count->files, count->accepted);
    for (int i = 0; i < DIFFERENCES; i++)
        print_message("; %s %d", difference_names[i], count->by[i]);
    print_message("\n");
}

/* Check that both reject the file, that both return the same image and metadata, or that the
 * difference is documented. */
static inline void check_outcomes(const outcome *ours, const outcome *oracle, const png_bytes *file,
                                  const char *what, size_t where, tally *count) {
    const bool ours_ok = ours->error.status == GF_OK, oracle_ok = oracle->error.status == GF_OK;
    count->files++;
    count->accepted += oracle_ok;
    if (!ours_ok)
        assert_message(&ours->error, "x.png: ");
    if (ours_ok && oracle_ok) {
        if (!same_image(ours, oracle) || !same_metadata(&ours->metadata, &oracle->metadata))
            fail_msg("%s at %zu: another image", what, where);
    } else if (ours_ok) {
        fail_msg("%s at %zu: accepted; libpng: %s", what, where, oracle->error.message);
    } else if (oracle_ok) {
        const difference found = difference_of(file, ours->error.message);
        if (found == DIFFERENCES)
            fail_msg("%s at %zu: rejected: %s", what, where, ours->error.message);
        count->by[found]++;
    }
}

#endif
