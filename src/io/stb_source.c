/* JPEG, BMP, TGA, PSD, GIF (the first frame) and HDR in, through stb_image: the file and the image
 * are held whole. */

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "io/bmp_palette.h"
#include "io/costs.h"
#include "io/jpeg_check.h"
#include "io/kinds.h"
#include "io/limits.h"
#include "io/stb.h"
#include "io/stb_sizes.h"

/* Files without a size (pipes) are read in pieces that double. No image is shorter than the least
 * header, and stb's guessing reads that much without asking. */
enum { FIRST_PIECE = 1 << 16, LEAST_BYTES = 19 };

/* A decoded image, rows without gaps. */
typedef struct stb_image {
    gf_format format;
    unsigned char *pixels; /* gf_stb_free's */
} stb_image;

/* ---- the whole file -------------------------------------------------------------------------- */

/* *data is the caller's to free, after a failure too. */
static gf_status read_file(gf_input *input, uint64_t max_memory, unsigned char **data, size_t *size,
                           gf_error *error) {
    size_t capacity = FIRST_PIECE;
    size_t used = 0;

    if (input->regular) {
        gf_status status = gf_check_memory(input->size, max_memory, input->name, "the file", error);
        if (status != GF_OK)
            return status;
        /* One more byte, so that the end is seen without growing. */
        capacity = (size_t)input->size + 1;
    }
    for (;;) {
        gf_status status = gf_check_memory(used, max_memory, input->name, "the file", error);
        if (status != GF_OK)
            return status;
        unsigned char *grown = realloc(*data, capacity);
        if (grown == NULL)
            return gf_fail_memory(error, input->name, capacity, "the file");
        *data = grown;
        size_t got;
        status = gf_input_read(input, *data + used, capacity - used, &got, error);
        if (status != GF_OK)
            return status;
        used += got;
        if (used < capacity) {
            *size = used;
            return GF_OK;
        }
        capacity *= 2;
    }
}

/* ---- PSD, of which stb says too little --------------------------------------------------------
 */

enum { PSD_RGB = 3, PSD_HEADER_BYTES = 26 };

static uint32_t big32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool psd_is_deep(const gf_stb_bytes *bytes) {
    return bytes->size >= PSD_HEADER_BYTES && bytes->data[22] == 0 && bytes->data[23] == 16;
}

/* Offset of the compression field: after three sections that start with their size. 0 if there is
 * none. */
static size_t psd_compression_at(const gf_stb_bytes *bytes) {
    uint64_t at = 26;

    for (int section = 0; section < 3; section++) {
        if (at + 4 > bytes->size)
            return 0;
        at += 4 + (uint64_t)big32(bytes->data + at);
    }
    return at + 2 <= bytes->size ? (size_t)at : 0;
}

/* stb makes RGBA of every PSD, the alpha being its own invention where the file has none, and where
 * it has one divides the colours by it. Its test for 16 bits looks at the wrong field, and it takes
 * packed 16-bit samples for 8-bit ones. Left is what it reads as stored: three planes. */
static gf_status check_psd(const gf_stb_bytes *bytes, const char *name, gf_error *error) {
    const unsigned char *data = bytes->data;

    if (bytes->size < PSD_HEADER_BYTES)
        return GF_OK; /* stb meets the end of the file */
    if ((data[12] << 8 | data[13]) != 3 || (data[24] << 8 | data[25]) != PSD_RGB) {
        return gf_fail(error, GF_FAILED,
                       "%s: only PSD with the three channels of RGB is read; save it as PNG", name);
    }
    size_t at = psd_compression_at(bytes);
    if (psd_is_deep(bytes) && at != 0 && (data[at] != 0 || data[at + 1] != 0)) {
        return gf_fail(error, GF_FAILED,
                       "%s: compressed 16-bit PSD is not read; save it uncompressed or as PNG",
                       name);
    }
    return GF_OK;
}

/* ---- decoding -------------------------------------------------------------------------------- */

static gf_status fail_decode(const char *name, const gf_stb_bytes *bytes, gf_error *error) {
    if (bytes->past_end) {
        return gf_fail(error, GF_FAILED, "%s: the file ends too early; get a complete copy", name);
    }
    return gf_fail(error, GF_FAILED,
                   "%s: cannot decode (%s); get an intact copy or convert it to PNG", name,
                   gf_stb_reason());
}

/* Checks what the header says against the limits, before stb allocates for it. */
static gf_status read_format(gf_stb_bytes *bytes, const char *name, const gf_limits *limits,
                             gf_format *format, int *channels, gf_error *error) {
    bool hdr = bytes->data[0] == '#';
    bool psd = memcmp(bytes->data, "8BPS", 4) == 0;
    bool bmp = memcmp(bytes->data, "BM", 2) == 0;
    int width = 0, height = 0, found = 0;
    gf_status status = GF_OK;

    if (bytes->data[0] == 0xff && !gf_jpeg_tables_fit(bytes->data, bytes->size)) {
        return gf_fail(error, GF_FAILED,
                       "%s: the JPEG is damaged (bad Huffman table); get an intact copy", name);
    }
    if (psd && (status = check_psd(bytes, name, error)) != GF_OK)
        return status;
    if (!gf_stb_info(bytes, &width, &height, &found))
        return fail_decode(name, bytes, error);
    /* A BMP with its top row first says so by a negative height, which stb passes on here only. */
    if (bmp && height < 0 && height != INT_MIN)
        height = -height;
    if (width <= 0 || height <= 0 || found < 1 || found > 4) {
        return gf_fail(error, GF_FAILED, "%s: its header is damaged; get an intact copy", name);
    }
    *format = (gf_format){.width = (uint64_t)width,
                          .height = (uint64_t)height,
                          .channels = (uint32_t)found,
                          .type = hdr                         ? GF_F32
                                  : psd && psd_is_deep(bytes) ? GF_U16
                                                              : GF_U8};
    *channels = psd ? 3 : 0;
    status = gf_check_pixels(format->width, format->height, limits, name, error);
    if (status == GF_OK)
        status = gf_format_check(format, name, error);
    if (status == GF_OK && gf_stb_least_bytes(bytes, format) > bytes->size) {
        return gf_fail(error, GF_FAILED, "%s: the file ends too early; get a complete copy", name);
    }
    if (status == GF_OK) {
        uint64_t held = bytes->size + gf_stb_peak_bytes(bytes, format);
        status = gf_check_memory(held, limits->max_memory, name, "the file and its image", error);
    }
    return status;
}

/* stb makes RGBA of every GIF; one with no transparent pixel is RGB. */
static void drop_opaque_alpha(stb_image *image) {
    gf_format *format = &image->format;
    const size_t count = (size_t)(format->width * format->height);
    unsigned char *pixels = image->pixels;

    for (size_t i = 0; i < count; i++) {
        if (pixels[4 * i + 3] != 255)
            return;
    }
    for (size_t i = 0; i < count; i++)
        memmove(pixels + 3 * i, pixels + 4 * i, 3);
    format->channels = 3;
}

static gf_status decode(gf_stb_bytes *bytes, const char *name, const gf_limits *limits,
                        stb_image *image, gf_error *error) {
    gf_format *format = &image->format;
    int width = 0, height = 0, found = 0, channels = 0;
    gf_status status = read_format(bytes, name, limits, format, &channels, error);

    if (status != GF_OK)
        return status;
    gf_stb_depth depth = format->type == GF_F32   ? GF_STB_FLOAT
                         : format->type == GF_U16 ? GF_STB_16
                                                  : GF_STB_8;
    image->pixels = gf_stb_load(bytes, depth, channels, &width, &height, &found);
    if (image->pixels == NULL || bytes->past_end)
        return fail_decode(name, bytes, error);
    if ((uint64_t)width != format->width || (uint64_t)height != format->height || found < 1 ||
        found > 4) {
        return gf_fail(error, GF_FAILED, "%s: its header is damaged; get an intact copy", name);
    }
    /* The decoded count is the true one: headers may promise an alpha that is not there. */
    format->channels = (uint32_t)(channels != 0 ? channels : found);
    if (memcmp(bytes->data, "GIF8", 4) == 0)
        drop_opaque_alpha(image);
    return GF_OK;
}

/* As far as a glance at the header tells; anything else is TGA. */
static void describe(const gf_stb_bytes *bytes, const gf_format *format, char *text, size_t size) {
    const unsigned char *data = bytes->data;

    if (data[0] == 0xff) {
        (void)snprintf(text, size, "8-bit %s, lossy", format->channels == 1 ? "grey" : "colour");
    } else if (memcmp(data, "BM", 2) == 0) {
        /* The oldest of the second headers has 12 bytes and smaller fields. */
        const unsigned char *bits = data + (data[14] == 12 ? 24 : 28);
        (void)snprintf(text, size, "%d bits a pixel", bits[0] | bits[1] << 8);
    } else if (memcmp(data, "8BPS", 4) == 0) {
        (void)snprintf(text, size, "%d-bit RGB in planes", format->type == GF_U16 ? 16 : 8);
    } else if (memcmp(data, "GIF8", 4) == 0) {
        (void)snprintf(text, size, "palette, the first frame");
    } else if (data[0] == '#') {
        (void)snprintf(text, size, "8-bit RGB with a common exponent");
    } else {
        (void)snprintf(text, size, "%d bits a pixel%s%s", data[16],
                       (data[2] & 7) == 1 ? ", palette" : "",
                       (data[2] & 8) != 0 ? ", run-length coded" : "");
    }
}

gf_status gf_stb_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                             gf_error *error) {
    gf_input reader = *input;
    unsigned char *file = NULL;
    gf_stb_bytes bytes = {0};
    stb_image image = {0};
    char stored[sizeof(*opened)->stored] = "";
    gf_status status = read_file(&reader, limits->max_memory, &file, &bytes.size, error);

    if (status == GF_OK)
        status = gf_bmp_fill_palette(&file, &bytes.size, input->name, error);
    if (status == GF_OK) {
        bytes.data = file;
        bytes.past_end = bytes.size < LEAST_BYTES;
        status = bytes.past_end ? fail_decode(input->name, &bytes, error)
                                : decode(&bytes, input->name, limits, &image, error);
    }
    if (status == GF_OK)
        describe(&bytes, &image.format, stored, sizeof stored);
    free(file);
    /* All that can fail is memory, and it is this file's. */
    if (status == GF_OK && gf_memory_source(&image.format, image.pixels,
                                            gf_row_bytes(&image.format), opened, NULL) != GF_OK)
        status = gf_fail(error, GF_FAILED, "%s: out of memory for a source", input->name);
    if (status != GF_OK) {
        gf_stb_free(image.pixels);
        return status;
    }
    gf_memory_source_own(*opened, image.pixels, gf_stb_free);
    (*opened)->cost = GF_STB_DECODE_COST;
    memcpy((*opened)->stored, stored, sizeof stored);
    /* Everything is read, so the input is not needed any longer. */
    gf_input_close(&reader);
    return GF_OK;
}
