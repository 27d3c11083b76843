#include "io/stb.h"

/* stb allocates only one row, for HDR, and does not check that it got it: the caller gives it. */
static _Thread_local void *row_scratch;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wpedantic"
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBIW_MALLOC(size) ((void)(size), row_scratch)
#define STBIW_REALLOC(pointer, size) ((void)(pointer), (void)(size), (void *)0)
#define STBIW_FREE(pointer) ((void)(pointer))
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

/* Of 100; above 90 stb keeps the colour at full resolution. */
enum { JPEG_QUALITY = 95 };

bool gf_stb_write(gf_stb_kind kind, gf_stb_write_func *write, void *context, int width, int height,
                  int channels, const void *pixels, void *scratch) {
    int done = 0;

    row_scratch = scratch;
    switch (kind) {
    case GF_STB_JPG:
        done =
            stbi_write_jpg_to_func(write, context, width, height, channels, pixels, JPEG_QUALITY);
        break;
    case GF_STB_BMP:
        done = stbi_write_bmp_to_func(write, context, width, height, channels, pixels);
        break;
    case GF_STB_TGA:
        done = stbi_write_tga_to_func(write, context, width, height, channels, pixels);
        break;
    case GF_STB_HDR:
        done = stbi_write_hdr_to_func(write, context, width, height, channels, pixels);
        break;
    }
    row_scratch = NULL;
    return done != 0;
}
