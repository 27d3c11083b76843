/* What the fast way of reading PNG and libpng's may say of one file. */
#ifndef PNG_VERDICT_H
#define PNG_VERDICT_H

#include "png_both.h"

static inline uint32_t get32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Is the zlib stream of the file right to its end, in zlib's eyes? */
static inline bool stream_is_right(const png_bytes *file) {
    z_stream stream = {0};
    unsigned char out[4096];
    int status = Z_OK;

    assert_int_equal(inflateInit(&stream), Z_OK);
    for (size_t at = 8; at + 12 <= file->size && status == Z_OK;) {
        size_t size = get32(file->data + at);
        if (size > file->size - at - 12)
            break;
        stream.next_in = file->data + at + 8;
        stream.avail_in = memcmp(file->data + at + 4, "IDAT", 4) == 0 ? (uInt)size : 0;
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

typedef struct tally {
    int files, accepted, unused_codes, damaged_ends;
} tally;

/* Both refuse or both accept and give the same image, but for the exceptions of
 * io/png_inflate.h. intact is the image before the damage; NULL: nobody knows. */
static inline void check_outcomes(const outcome *fast, const outcome *oracle, const png_bytes *file,
                                  const outcome *intact, const char *what, size_t where,
                                  tally *count) {
    const bool fast_ok = fast->error.status == GF_OK, oracle_ok = oracle->error.status == GF_OK;

    count->files++;
    count->accepted += oracle_ok;
    if (!fast_ok)
        assert_message(&fast->error, "x.png: ");
    if (fast_ok && oracle_ok) {
        if (!same_image(fast, oracle) || !same_metadata(&fast->metadata, &oracle->metadata))
            fail_msg("%s at %zu: another image", what, where);
    } else if (fast_ok) {
        count->unused_codes++;
        if (strstr(oracle->error.message, "set)") == NULL ||
            (intact != NULL && !same_image(fast, intact)))
            fail_msg("%s at %zu: accepted; libpng: %s", what, where, oracle->error.message);
    } else if (oracle_ok) {
        count->damaged_ends++;
        if (stream_is_right(file))
            fail_msg("%s at %zu: refused: %s", what, where, fast->error.message);
    }
}

#endif
