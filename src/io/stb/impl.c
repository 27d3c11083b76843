/* The stb libraries, which rely on wrapping int arithmetic: compile this file with -fwrapv. */
#include "io/stb/raster.h"

/* Bytes of the longest row that stb holds: in HDR, longer rows are not run-length coded. */
enum { ROW_BYTES = 4 * 32767 };

/* All that stb allocates: the image that it decodes, and a row of HDR. */
static _Thread_local struct {
    unsigned char *image, *row;
    size_t image_bytes;
} impl_memory;

static void *impl_allocate(size_t size) {
    return size == impl_memory.image_bytes ? impl_memory.image
           : size <= ROW_BYTES             ? impl_memory.row
                                           : NULL;
}

/* Not restored below: this warning is reported at the end of the file. */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_ONLY_HDR
/* A damaged file must not abort the process. */
#define STBI_ASSERT(condition) ((void)0)
#define STBI_MALLOC(size) impl_allocate(size)
/* Not called for HDR. */
#define STBI_REALLOC(pointer, size) ((void)(pointer), (void)(size), (void *)0)
#define STBI_FREE(pointer) ((void)(pointer))
/* STBI_MAX_DIMENSIONS stays at 2^24, for which stb's int arithmetic is designed. */
#include <stb/stb_image.h>
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
/* stb does not check for a failed allocation. It uses only a row of HDR that is not longer. */
#define STBIW_MALLOC(size) ((void)(size), impl_memory.row)
#define STBIW_REALLOC(pointer, size) ((void)(pointer), (void)(size), (void *)0)
#define STBIW_FREE(pointer) ((void)(pointer))
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

/* A file that stb reads. */
typedef struct impl_file {
    const unsigned char *data;
    size_t left;
    bool past_end;
} impl_file;

/* Detect reads past the end of the file, where stb reads zeros: a refill of stb's buffer may be
 * short but not empty; a read of one pixel must be complete.
 *
 * stb's HDR decoder loops on zeros, which are runs of length 0. Therefore reads past the end return
 * bytes of 0xff, one at a time, so that the header parser still detects the end. */
static int impl_on_read(void *user, char *data, int size) {
    enum { PIXEL_BYTES = 4 };
    impl_file *file = user;
    const size_t wanted = (size_t)size, got = wanted < file->left ? wanted : file->left;
    file->past_end |= got < wanted && (got == 0 || wanted <= PIXEL_BYTES);
    /* stb does not always check how many bytes it got. */
    memset(data + got, 0, wanted - got);
    if (got == 0) {
        *data = (char)0xff;
        return 1;
    }
    memcpy(data, file->data, got);
    file->data += got;
    file->left -= got;
    return (int)got;
}

static int impl_on_eof(void *user) {
    return ((const impl_file *)user)->left == 0;
}

/* HDR needs no function that skips bytes. */
static const stbi_io_callbacks callbacks = {impl_on_read, NULL, impl_on_eof};

/* The reason of stb is a literal. */
static bool hdr_fail(gf_raster *hdr, const impl_file *file) {
    return gf_raster_fail(hdr, file->past_end ? GF_RASTER_TRUNCATED : GF_RASTER_DAMAGED,
                          stbi_failure_reason());
}

bool gf_hdr_head(gf_raster *hdr) {
    impl_file file = {hdr->data, hdr->size, false};
    int width, height, channels;
    if (!stbi_info_from_callbacks(&callbacks, &file, &width, &height, &channels))
        return hdr_fail(hdr, &file);
    if (width <= 0 || height <= 0)
        return gf_raster_fail(hdr, GF_RASTER_DAMAGED, "the size is invalid");
    hdr->format = (gf_format){
        .width = (uint64_t)width, .height = (uint64_t)height, .channels = 3, .type = GF_F32};
    /* Two bytes per run of 127 samples, for each of four channels. */
    hdr->min_bytes = hdr->format.width * hdr->format.height / 127 * 8;
    return true;
}

bool gf_hdr_read(gf_raster *hdr, unsigned char *pixels) {
    unsigned char row[ROW_BYTES] = {0};
    impl_file file = {hdr->data, hdr->size, false};
    int width, height, channels;
    impl_memory.image = pixels;
    impl_memory.image_bytes = (size_t)hdr->format.height * gf_row_bytes(&hdr->format);
    impl_memory.row = row;
    const bool read = stbi_loadf_from_callbacks(&callbacks, &file, &width, &height, &channels, 3);
    impl_memory.row = NULL;
    return (read && !file.past_end) || hdr_fail(hdr, &file);
}

bool gf_stb_write(gf_raster_kind kind, gf_stb_write_func *write, void *context,
                  const gf_format *format, const void *pixels) {
    const int width = (int)format->width, height = (int)format->height,
              channels = (int)format->channels;
    unsigned char row[ROW_BYTES];
    impl_memory.row = row;
    const int written =
        kind == GF_RASTER_BMP
            ? stbi_write_bmp_to_func(write, context, width, height, channels, pixels)
        : kind == GF_RASTER_TGA
            ? stbi_write_tga_to_func(write, context, width, height, channels, pixels)
            : stbi_write_hdr_to_func(write, context, width, height, channels, pixels);
    impl_memory.row = NULL;
    return written != 0;
}
