/* What PNG costs by itself: decodes IN and encodes it again into OUT with libpng's row API, at the
 * settings that gpufilter uses (zlib level 1, Sub filter, 64 KiB of output at a time). The
 * yardstick for bench/start.sh; 8 and 16-bit images without interlacing. */
#include <png.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: codec IN.png OUT.png\n");
        return 2;
    }
    FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
    png_structp reader = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(reader);
    png_structp writer = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop out_info = png_create_info_struct(writer);
    if (!in || !out || !info || !out_info) {
        perror("codec");
        return 1;
    }
    png_init_io(reader, in);
    png_read_info(reader, info);
    png_uint_32 width = png_get_image_width(reader, info);
    png_uint_32 height = png_get_image_height(reader, info);
    png_init_io(writer, out);
    png_set_compression_level(writer, 1);
    png_set_filter(writer, 0, PNG_FILTER_SUB);
    png_set_compression_buffer_size(writer, 65536);
    png_set_IHDR(writer, out_info, width, height, png_get_bit_depth(reader, info),
                 png_get_color_type(reader, info), PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(writer, out_info);
    png_bytep row = malloc(png_get_rowbytes(reader, info));
    if (!row)
        return 1;
    for (png_uint_32 y = 0; y < height; y++) {
        png_read_row(reader, row, NULL);
        png_write_row(writer, row);
    }
    png_read_end(reader, NULL);
    png_write_end(writer, NULL);
    free(row);
    png_destroy_read_struct(&reader, &info, NULL);
    png_destroy_write_struct(&writer, &out_info);
    fclose(in);
    return fclose(out) != 0;
}
