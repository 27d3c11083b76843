/* Measure the cost of PNG alone: decode IN and encode it into OUT with libpng's row API and the
 * settings of gpufilter (zlib level 1, Sub filter, 64 KiB of output at a time). Reference for
 * bench/start.sh. Supports 8-bit and 16-bit images without interlacing. Removes OUT on failure. */
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Remove a partial output. Keeps anything but a regular file, such as /dev/null. */
static void remove_output(const char *path) {
    struct stat found;
    if (path && lstat(path, &found) == 0 && S_ISREG(found.st_mode))
        remove(path);
}

static int fail(const char *subject, const char *out_path) {
    perror(subject);
    remove_output(out_path);
    return 1;
}

/* Error handler of libpng, which must not return. The error pointer is the path of OUT, or NULL
 * before OUT is created. */
static void png_fails(png_structp png, png_const_charp message) {
    fprintf(stderr, "codec: %s\n", message);
    remove_output(png_get_error_ptr(png));
    exit(1);
}

static int convert(FILE *in, const char *out_path) {
    png_structp reader = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, png_fails, NULL);
    png_infop info = png_create_info_struct(reader);
    png_structp writer =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, (png_voidp)out_path, png_fails, NULL);
    png_infop out_info = png_create_info_struct(writer);
    if (!info || !out_info)
        return fail("codec", NULL);
    png_init_io(reader, in);
    png_read_info(reader, info);
    png_uint_32 width = png_get_image_width(reader, info);
    png_uint_32 height = png_get_image_height(reader, info);
    png_bytep row = malloc(png_get_rowbytes(reader, info));
    if (!row)
        return fail("codec", NULL);
    /* Create OUT only now: IN is a PNG. */
    FILE *out = fopen(out_path, "wb");
    if (!out) {
        const int status = fail(out_path, NULL);
        free(row);
        return status;
    }
    png_set_error_fn(reader, (png_voidp)out_path, png_fails, NULL);
    png_init_io(writer, out);
    png_set_compression_level(writer, 1);
    png_set_filter(writer, 0, PNG_FILTER_SUB);
    png_set_compression_buffer_size(writer, 65536);
    png_set_IHDR(writer, out_info, width, height, png_get_bit_depth(reader, info),
                 png_get_color_type(reader, info), PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(writer, out_info);
    for (png_uint_32 y = 0; y < height; y++) {
        png_read_row(reader, row, NULL);
        png_write_row(writer, row);
    }
    png_read_end(reader, NULL);
    png_write_end(writer, NULL);
    free(row);
    png_destroy_read_struct(&reader, &info, NULL);
    png_destroy_write_struct(&writer, &out_info);
    return fclose(out) == 0 ? 0 : fail(out_path, out_path);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: codec IN.png OUT.png\n");
        return 2;
    }
    FILE *in = fopen(argv[1], "rb");
    if (!in)
        return fail(argv[1], NULL);
    const int status = convert(in, argv[2]);
    fclose(in);
    return status;
}
