/* JPEG files for tests, written with libjpeg. */
#ifndef JPEG_FILE_H
#define JPEG_FILE_H

#include <stdio.h>
/* After stdio.h, which it requires. */
#include <jpeglib.h>

#include "io_util.h"

typedef struct jpeg_file {
    unsigned char *data; /* allocated by malloc */
    size_t size;
} jpeg_file;

typedef struct jpeg_shape {
    unsigned width, height;
    int components; /* 1, 3 or 4 */
    int sampling;   /* of the first component, horizontally and vertically */
    bool progressive, rgb, arithmetic;
    unsigned restart;
    bool separate; /* one scan per component; progressive: of the DC coefficients, without others */
    bool optimized; /* Huffman tables */
} jpeg_shape;

/* Encode random pixels with libjpeg. put_markers: called before the pixels; may be NULL. */
static inline jpeg_file make_jpeg(const jpeg_shape *shape, uint32_t seed,
                                  void (*put_markers)(j_compress_ptr)) {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long size = 0;
    JSAMPLE row[4 * 512];
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &data, &size);
    jpeg.image_width = shape->width;
    jpeg.image_height = shape->height;
    jpeg.input_components = shape->components;
    jpeg.in_color_space = shape->components == 1   ? JCS_GRAYSCALE
                          : shape->components == 3 ? JCS_RGB
                                                   : JCS_CMYK;
    jpeg_set_defaults(&jpeg);
    if (shape->rgb)
        jpeg_set_colorspace(&jpeg, JCS_RGB);
    jpeg_set_quality(&jpeg, 90, TRUE);
    jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = shape->sampling;
    jpeg.restart_interval = shape->restart;
    jpeg.arith_code = shape->arithmetic;
    jpeg.optimize_coding = shape->optimized;
    if (shape->progressive)
        jpeg_simple_progression(&jpeg);
    static const jpeg_scan_info scans[] = {
        {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    static const jpeg_scan_info dc_scans[] = {
        {1, {0}, 0, 0, 0, 0}, {1, {1}, 0, 0, 0, 0}, {1, {2}, 0, 0, 0, 0}};
    if (shape->separate) {
        jpeg.scan_info = shape->progressive ? dc_scans : scans;
        jpeg.num_scans = 3;
    }
    jpeg_start_compress(&jpeg, TRUE);
    if (put_markers)
        put_markers(&jpeg);
    for (unsigned y = 0; y < shape->height; y++) {
        for (unsigned i = 0; i < shape->width * (unsigned)shape->components; i++)
            row[i] = (JSAMPLE)(next_random(&seed) % 64 + y + i / 2);
        JSAMPROW rows = row;
        jpeg_write_scanlines(&jpeg, &rows, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    return (jpeg_file){data, size};
}

#endif
