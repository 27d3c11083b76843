#include "png_both.h"

#include <png.h>

#include "core/error.h"
#include "io/codecs.h"

/* State of one decode. Values that change after setjmp are here, not in automatic variables. */
typedef struct oracle {
    png_bytes file;
    size_t at; /* offset of the next byte */
    gf_limits limits;
    png_structp png;
    png_infop info;
    outcome got;
} oracle;

static void PNGCBAPI oracle_error(png_structp png, png_const_charp message) {
    oracle *o = png_get_error_ptr(png);
    gf_set_error(&o->got.error, GF_FAILED, "%s", message);
    png_longjmp(png, 1);
}

/* From 1.6.47 on, a damaged IEND is no error. */
static void PNGCBAPI oracle_warning(png_structp png, png_const_charp message) {
    if (strcmp(message, "IEND: CRC error") == 0)
        png_error(png, message);
}

static void PNGCBAPI oracle_read(png_structp png, png_bytep data, size_t size) {
    oracle *o = png_get_io_ptr(png);
    if (size > o->file.size - o->at)
        png_error(png, "end of file");
    memcpy(data, o->file.data + o->at, size);
    o->at += size;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static void oracle_image(oracle *o) {
    const uint16_t one = 1;
    png_structp png = o->png;
    gf_format *format = &o->got.format;
    png_set_read_fn(png, o, oracle_read);
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
    png_set_chunk_malloc_max(png, (png_alloc_size_t)o->limits.max_chunk);
    png_set_chunk_cache_max(png, 0);
    png_read_info(png, o->info);
    if ((uint64_t)png_get_image_width(png, o->info) * png_get_image_height(png, o->info) >
        o->limits.max_pixels)
        png_error(png, "too many pixels");
    png_set_expand(png); /* palettes, tRNS, and grey of fewer than 8 bits */
    if (*(const unsigned char *)&one == 1)
        png_set_swap(png);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, o->info);
    format->width = png_get_image_width(png, o->info);
    format->height = png_get_image_height(png, o->info);
    format->channels = png_get_channels(png, o->info);
    format->alpha = format->channels % 2 == 0;
    format->type = png_get_bit_depth(png, o->info) == 16 ? GF_U16 : GF_U8;
    o->got.pixels = calloc(format->height, png_get_rowbytes(png, o->info));
    if (o->got.pixels == NULL)
        abort();
    for (int pass = 0; pass < passes; pass++)
        for (uint64_t y = 0; y < format->height; y++)
            png_read_row(png, o->got.pixels + y * png_get_rowbytes(png, o->info), NULL);
    png_read_end(png, o->info);
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* Return true if images with other samples keep the chunk: colour and safe-to-copy chunks. */
static bool oracle_carries(const char *name) {
    return strstr("iCCP sRGB gAMA cHRM cICP mDCV cLLI tIME", name) != NULL ||
           (name[0] >= 'a' && name[2] <= 'Z' && name[3] >= 'a');
}

static void oracle_metadata(oracle *o) {
    gf_metadata *metadata = &o->got.metadata;
    bool pixels = false, late = false;
    uint32_t dropped = 0;
    char name[5] = "";
    for (size_t at = 8; strcmp(name, "IEND") != 0;) {
        const unsigned char *chunk = o->file.data + at;
        const size_t size = get32(chunk);
        memcpy(name, chunk + 4, 4);
        if (strcmp(name, "IDAT") == 0)
            pixels = true;
        else
            late = pixels;
        if (oracle_carries(name)) {
            gf_chunk copied = {.late = late, .size = size, .data = (unsigned char *)chunk + 8};
            memcpy(copied.name, name, 5);
            if (get32(chunk + 8 + size) != crc32(0, chunk + 4, (uInt)size + 4))
                memcpy(metadata->damaged, name, 5);
            else if (gf_metadata_append_chunk(metadata, &copied, &dropped, "", NULL) != GF_OK)
                abort();
        }
        at += 12 + size;
    }
}

/* Return true if the file ends within a chunk with a large length. libpng rejects the file, but
 * first allocates and clears that length: up to 2 GiB per file. */
static bool oracle_is_short(const oracle *o) {
    for (size_t at = 8; at + 8 <= o->file.size;) {
        const size_t size = get32(o->file.data + at), left = o->file.size - at - 8;
        if (size > left)
            return size > 1 << 24 && size < UINT32_C(1) << 31;
        if (memcmp(o->file.data + at + 4, "IEND", 4) == 0)
            return false;
        at += 12 + size;
    }
    return false;
}

/* Call libpng. After setjmp, no automatic variable changes. */
static void oracle_run(oracle *o) {
    o->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, o, oracle_error, oracle_warning);
    o->info = o->png == NULL ? NULL : png_create_info_struct(o->png);
    if (o->info == NULL)
        abort();
    if (setjmp(png_jmpbuf(o->png)) == 0)
        oracle_image(o);
    png_destroy_read_struct(&o->png, &o->info, NULL);
}

outcome png_oracle(const png_bytes *file, size_t size, const gf_limits *given) {
    oracle o = {.file = {file->data, size}, .limits = gf_limits_resolve(given)};
    o.got.metadata = (gf_metadata){0};
    if (oracle_is_short(&o)) {
        gf_set_error(&o.got.error, GF_FAILED, "end of file");
        return o.got;
    }
    oracle_run(&o);
    if (o.got.error.status == GF_OK) {
        oracle_metadata(&o);
    } else {
        free(o.got.pixels);
        o.got.pixels = NULL;
    }
    return o.got;
}
