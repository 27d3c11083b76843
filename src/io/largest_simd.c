/* Counts the samples that have the largest value of their type. */
#include "io/largest.h"

#include "image.h"
#include "vec.h"

/* Channels repeat within a vector, whole pixels or not: 1 and 3 have no alpha, 2 and 4 divide the
 * number of lanes. */
typedef uint8_t lanes8 __attribute__((vector_size(sizeof(vec))));
typedef uint16_t lanes16 __attribute__((vector_size(sizeof(vec))));

/* Each lane counts up to MOST samples before it is added up. */
#define COUNT_LARGEST(NAME, TYPE, LANES, MOST)                                                     \
    static uint64_t NAME(const TYPE *row, uint64_t samples, uint32_t channels) {                   \
        enum { WIDTH = sizeof(LANES) / sizeof(TYPE) };                                             \
        const TYPE largest = (TYPE)-1;                                                             \
        const bool alpha = gf_has_alpha(channels);                                                 \
        LANES counted = {0};                                                                       \
        for (uint32_t lane = 0; lane < WIDTH; lane++)                                              \
            counted[lane] = alpha && lane % channels == channels - 1 ? 0 : largest;                \
        uint64_t count = 0, i = 0;                                                                 \
        while (samples - i >= WIDTH) {                                                             \
            const uint64_t left = (samples - i) / WIDTH, turns = left < (MOST) ? left : (MOST);    \
            LANES counts = {0};                                                                    \
            for (const TYPE *end = row + i + turns * WIDTH; row + i != end; i += WIDTH) {          \
                LANES x;                                                                           \
                memcpy(&x, row + i, sizeof x);                                                     \
                counts -= (LANES)(x == largest) & counted;                                         \
            }                                                                                      \
            for (uint32_t lane = 0; lane < WIDTH; lane++)                                          \
                count += counts[lane];                                                             \
        }                                                                                          \
        for (; i < samples; i++)                                                                   \
            count += row[i] == largest && counted[i % WIDTH];                                      \
        return count;                                                                              \
    }

COUNT_LARGEST(count_largest8, uint8_t, lanes8, 255)
COUNT_LARGEST(count_largest16, uint16_t, lanes16, 65535)

uint64_t GF_SIMD_NAME(gf_count_largest)(const gf_format *format, const void *row) {
    const uint64_t samples = gf_row_samples(format);
    return format->type == GF_U8 ? count_largest8(row, samples, format->channels)
                                 : count_largest16(row, samples, format->channels);
}
