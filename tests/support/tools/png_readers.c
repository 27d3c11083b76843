/* Decode a PNG with another library and write its samples, big-endian, to standard output:
 * png_readers FILE. tests/system/png_readers.sh builds it once per library. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if defined USE_SPNG

#include <spng.h>

/* SPNG_FMT_RAW: samples as stored in the file. */
int main(int count, char **arguments) {
    FILE *file = count > 1 ? fopen(arguments[1], "rb") : NULL;
    spng_ctx *context = spng_ctx_new(0);
    struct spng_ihdr header;
    size_t size;
    if (!file || !context || spng_set_png_file(context, file) || spng_get_ihdr(context, &header) ||
        spng_decoded_image_size(context, SPNG_FMT_RAW, &size))
        return 1;
    unsigned char *pixels = malloc(size);
    if (!pixels || spng_decode_image(context, pixels, size, SPNG_FMT_RAW, 0) ||
        spng_decode_chunks(context))
        return 1;
    return fwrite(pixels, 1, size, stdout) != size;
}

#elif defined USE_STB

#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_PNG
#include <stb_image.h>

int main(int count, char **arguments) {
    int width, height, channels;
    if (count < 2)
        return 1;
    if (!stbi_is_16_bit(arguments[1])) {
        unsigned char *pixels = stbi_load(arguments[1], &width, &height, &channels, 0);
        const size_t size = pixels ? (size_t)width * (size_t)height * (size_t)channels : 0;
        return !size || fwrite(pixels, 1, size, stdout) != size;
    }
    uint16_t *pixels = stbi_load_16(arguments[1], &width, &height, &channels, 0);
    const size_t samples = pixels ? (size_t)width * (size_t)height * (size_t)channels : 0;
    for (size_t i = 0; i < samples; i++)
        if (putchar(pixels[i] >> 8) < 0 || putchar(pixels[i] & 255) < 0)
            return 1;
    return !samples;
}

#else

#include <png.h>

int main(int count, char **arguments) {
    FILE *file = count > 1 ? fopen(arguments[1], "rb") : NULL;
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    /* Without an error function, libpng prints errors to standard error and returns here. */
    if (!file || !info || setjmp(png_jmpbuf(png)))
        return 1;
    png_init_io(png, file);
    png_read_info(png, info);
    const size_t row = png_get_rowbytes(png, info);
    unsigned char *pixels = malloc(row);
    for (uint32_t rows = png_get_image_height(png, info); pixels && rows; rows--) {
        png_read_row(png, pixels, NULL);
        if (fwrite(pixels, 1, row, stdout) != row)
            return 1;
    }
    if (pixels)
        png_read_end(png, NULL);
    return !pixels;
}

#endif
