#include "io/costs.h"

#include <string.h>

#include "io/png_effort.h"

static uint32_t at_most(uint32_t threads, uint32_t most) {
    return threads < most ? threads : most;
}

bool gf_format_costs(const char *format, const char *compression, uint32_t threads,
                     gf_codec_costs *costs) {
    static const char *const stb[] = {"jpg", "jpeg", "bmp", "tga", "hdr"};
    const char *const *known = gf_output_formats();
    while (*known && strcmp(*known, format) != 0)
        known++;
    if (!*known)
        return false;
    *costs =
        (gf_codec_costs){GF_PLAIN_COST, GF_PLAIN_COST, at_most(threads, GF_PLAIN_DECODE_THREADS),
                         at_most(threads, GF_PLAIN_ENCODE_THREADS)};
    if (strcmp(format, "png") == 0)
        *costs = (gf_codec_costs){GF_PNG_DECODE_COST, gf_png_encode_cost(compression),
                                  at_most(threads, GF_PNG_DECODE_THREADS),
                                  at_most(threads, GF_PNG_ENCODE_THREADS)};
    for (size_t i = 0; i < sizeof stb / sizeof stb[0]; i++)
        if (strcmp(format, stb[i]) == 0)
            *costs = (gf_codec_costs){GF_STB_DECODE_COST, GF_STB_ENCODE_COST, 1, 1};
    return true;
}
