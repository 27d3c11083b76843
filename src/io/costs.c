#include "io/costs.h"

#include <string.h>

bool gf_codec_cost(const char *format, double *decode, double *encode) {
    static const char *const stb[] = {"jpg", "bmp", "tga", "hdr"};
    const char *const *known = gf_output_formats();
    while (*known && strcmp(*known, format) != 0)
        known++;
    if (!*known)
        return false;
    *decode = *encode = GF_PLAIN_COST;
    if (strcmp(format, "png") == 0) {
        *decode = GF_PNG_DECODE_COST;
        *encode = GF_PNG_ENCODE_COST_FAST;
    }
    for (size_t i = 0; i < sizeof stb / sizeof stb[0]; i++)
        if (strcmp(format, stb[i]) == 0) {
            *decode = GF_STB_DECODE_COST;
            *encode = GF_STB_ENCODE_COST;
        }
    return true;
}
