/* Samples as a NumPy array of records, packed and in the byte order of this machine. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "io/bytes.h"
#include "io/sample_kind.h"

/* Format 1.0: the magic, the version, the length of the text (little-endian), the text. All of it
 * is a multiple of 64 bytes; this many hold the longest text, with a count of 20 digits. */
enum { HEAD_BYTES = 192, TEXT = 10, TEXT_BYTES = HEAD_BYTES - TEXT };

static char *npy_head(char *to, const gf_sample_layout *layout, uint64_t count) {
    static const char start[TEXT] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)TEXT_BYTES, 0};
    static const char *const values[] = {"|u1", "<u2", "<f4", "|u1", ">u2", ">f4"};
    const bool little = gf_host_is_little();
    const char order = little ? '<' : '>';
    char bin[32] = "";

    _Static_assert(TEXT_BYTES < 256, "the length has one byte that is not 0");
    if (layout->with_bin)
        (void)snprintf(bin, sizeof bin, "('bin', '%cu4'), ", order);
    memcpy(to, start, TEXT);
    int length = snprintf(to + TEXT, TEXT_BYTES,
                          "{'descr': [%s('x', '%cu8'), ('y', '%cu8'), ('channel', '|u1'), "
                          "('value', '%s')], 'fortran_order': False, 'shape': (%" PRIu64 ",), }",
                          bin, order, order, values[layout->type + (little ? 0 : 3)], count);
    memset(to + TEXT + length, ' ', (size_t)(TEXT_BYTES - length));
    to[HEAD_BYTES - 1] = '\n';
    return to + HEAD_BYTES;
}

static char *put(char *to, const void *field, size_t size) {
    memcpy(to, field, size);
    return to + size;
}

static char *npy_sample(char *to, const gf_sample_layout *layout, const gf_sample *sample) {
    if (layout->with_bin)
        to = put(to, &sample->bin, sizeof sample->bin);
    to = put(to, &sample->x, sizeof sample->x);
    to = put(to, &sample->y, sizeof sample->y);
    *to++ = (char)layout->indices[sample->channel];
    return put(to, sample->value, gf_type_bytes(layout->type));
}

static char *npy_tail(char *to, uint64_t count) {
    (void)count;
    return to;
}

const gf_sample_kind gf_sample_npy = {"npy", true, 0, npy_head, npy_sample, npy_tail};
