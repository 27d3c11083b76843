/* Samples outside an image, for filters with a window around each pixel. */
#ifndef GF_EDGE_H
#define GF_EDGE_H

#include <stdint.h>

#include "core/machine.h"
#include "core/settings.h"

/* Continuations of a signal a b c d, in the order of gf_edge_names. */
typedef enum gf_edge_mode {
    GF_EDGE_REPLICATE, /* a a a | a b c d | d d d */
    GF_EDGE_REFLECT,   /* c b a | a b c d | d c b */
    GF_EDGE_MIRROR,    /* d c b | a b c d | c b a */
    GF_EDGE_CONSTANT   /* v v v | a b c d | v v v */
} gf_edge_mode;

typedef struct gf_edge {
    gf_edge_mode mode;
    float value; /* CONSTANT: v, a value of the sample type */
} gf_edge;

/* The option --radius of a filter whose window is a rectangle. */
#define GF_RADIUS_PARAM(max)                                                                       \
    GF_NUMBER_PARAM(INT_PAIR, "radius", 'r', "R[,RY]",                                             \
                    "neighbours on each side, along x and y; 0 leaves an axis alone", "1", 1, max)

/* The option --edge of a filter. */
#define GF_EDGE_PARAM(default_mode)                                                                \
    GF_CHOICE_PARAM(                                                                               \
        CHOICE, "edge", 'e', "MODE",                                                               \
        "samples outside the image; replicate: aa|abc|cc (OpenCV REPLICATE, NumPy edge, "          \
        "SciPy nearest); reflect: ba|abc|cb (OpenCV REFLECT, NumPy symmetric); mirror: "           \
        "cb|abc|ba (OpenCV REFLECT_101, NumPy reflect); constant: the value V",                    \
        default_mode, gf_edge_names)

extern const char *const gf_edge_names[];

/* Read the option --edge. Return GF_USAGE for a value that the samples of the image cannot have. */
gf_status gf_edge_read(const gf_settings *settings, gf_type type, gf_edge *edge, gf_error *error);

/* Return the position inside a signal of n samples whose value position i has; -1: the constant. */
GF_BOTH int64_t gf_edge_index(gf_edge_mode mode, int64_t i, int64_t n) {
    if (i >= 0 && i < n)
        return i;
    if (mode == GF_EDGE_CONSTANT)
        return -1;
    if (mode == GF_EDGE_REPLICATE)
        return i < 0 ? 0 : n - 1;
    /* The continuation is periodic: the signal, then the signal backwards. */
    const int64_t repeated = mode == GF_EDGE_REFLECT, period = 2 * (n - 1 + repeated);
    if (period == 0)
        return 0;
    i %= period;
    i += i < 0 ? period : 0;
    return i < n ? i : period - i - repeated;
}

#endif
