/* How rows lie in a plain file: one behind the other, in a byte order that may not be the host's.
 */
#ifndef GF_ROW_ORDER_H
#define GF_ROW_ORDER_H

#include "image.h"
#include "io/bytes.h"

typedef struct gf_row_order {
    gf_format format;
    uint64_t start; /* offset of the first sample in the file */
    bool upwards;   /* the last row comes first */
    bool little;    /* byte order of samples of more than a byte */
} gf_row_order;

/* Is a row in the file the same bytes as in memory? */
static inline bool gf_row_order_plain(const gf_row_order *order) {
    return order->format.type == GF_U8 || order->little == gf_host_is_little();
}

/* Copies samples of rows from the file's order to the host's, or back; dst == src is allowed. */
static inline void gf_row_order_copy(const gf_row_order *order, void *dst, const void *src,
                                     uint64_t samples) {
    if (gf_row_order_plain(order)) {
        if (dst != src)
            memcpy(dst, src, (size_t)(samples * gf_type_bytes(order->format.type)));
    } else if (order->format.type == GF_U16) {
        gf_copy_order16(dst, src, samples, order->little);
    } else {
        gf_copy_order32(dst, src, samples, order->little);
    }
}

/* Row of the image that is row `row` of the file, or the other way round. */
static inline uint64_t gf_row_order_turn(const gf_row_order *order, uint64_t row) {
    return order->upwards ? order->format.height - 1 - row : row;
}

/* Where `rows` rows of the image from row y on begin in the file. */
static inline uint64_t gf_row_order_offset(const gf_row_order *order, uint64_t y, uint64_t rows) {
    const uint64_t first = order->upwards ? order->format.height - y - rows : y;
    return order->start + first * gf_row_bytes(&order->format);
}

#endif
