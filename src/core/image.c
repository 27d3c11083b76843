/* Validation of image formats, copies of alpha, and digests of rows. */
#include "core/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/checksum.h"
#include "core/error.h"
#include "core/machine.h"

const char *gf_type_name(gf_type type) {
    return type == GF_U8 ? "u8" : type == GF_U16 ? "u16" : "f32";
}

gf_type gf_depth_type(gf_depth depth, gf_type type) {
    static const gf_type types[] = {
        [GF_DEPTH_8] = GF_U8, [GF_DEPTH_16] = GF_U16, [GF_DEPTH_F32] = GF_F32};
    return depth == GF_DEPTH_INPUT ? type : types[depth];
}

void gf_format_text(const gf_format *format, char *text, size_t size) {
    static const char *const channels[2][5] = {{"", "grey", "grey+data", "RGB", "RGB+data"},
                                               {"", "", "grey+alpha", "", "RGBA"}};
    snprintf(text, size, "%" PRIu64 "x%" PRIu64 " %s %s", format->width, format->height,
             channels[format->alpha][format->channels], gf_type_name(format->type));
}

const char *gf_channel_name(const gf_format *format, uint32_t channel) {
    static const char *const names[] = {"r", "g", "b"};
    const uint32_t colours = format->channels < 3 ? 1 : 3;
    if (channel >= colours)
        return gf_has_alpha(format) ? "a" : "data";
    return colours == 1 ? "grey" : names[channel];
}

/* Size limit of an image in bytes: far above any file, and a few of them fit in 64 bits. */
#define GF_MAX_IMAGE_BYTES (UINT64_C(1) << 60)

gf_status gf_format_check(const gf_format *format, const char *name, gf_error *error) {
    if (format->type != GF_U8 && format->type != GF_U16 && format->type != GF_F32)
        return gf_fail(error, GF_FAILED, "%s: unknown sample type %d", name, (int)format->type);
    if (format->channels < 1 || format->channels > GF_MAX_CHANNELS)
        return gf_fail(error, GF_FAILED, "%s: %u channels; images have 1 to %u", name,
                       format->channels, GF_MAX_CHANNELS);
    if (format->alpha && format->channels % 2 != 0)
        return gf_fail(error, GF_FAILED,
                       "%s: %u channels with alpha; images with alpha have 2 or 4 channels", name,
                       format->channels);
    if (format->width == 0 || format->height == 0)
        return gf_fail(error, GF_FAILED, "%s: the image has no pixels", name);
    uint64_t bytes;
    if (__builtin_mul_overflow(format->width, format->height, &bytes) ||
        __builtin_mul_overflow(bytes, format->channels * gf_type_bytes(format->type), &bytes) ||
        bytes > GF_MAX_IMAGE_BYTES || bytes > SIZE_MAX / 4)
        return gf_fail(error, GF_FAILED, "%s: the image is too large to address", name);
    return GF_OK;
}

/* Return the bytes from the first sample to the last one; UINT64_MAX if they are too many. */
static uint64_t pixels_span(const gf_format *format, size_t stride) {
    uint64_t bytes;
    return __builtin_mul_overflow(format->height - 1, stride, &bytes) ||
                   __builtin_add_overflow(bytes, gf_row_bytes(format), &bytes)
               ? UINT64_MAX
               : bytes;
}

gf_status gf_pixels_check(const char *name, const char *what, const gf_format *format,
                          gf_pixels pixels, gf_error *error) {
    const size_t row = gf_row_bytes(format);
    if (!pixels.data)
        return gf_fail(error, GF_USAGE, "%s: the %s is NULL", name, what);
    if (pixels.stride < row)
        return gf_fail(error, GF_USAGE,
                       "%s: the stride of the %s, %zu bytes, is smaller than a row of %zu bytes",
                       name, what, pixels.stride, row);
    if (pixels_span(format, pixels.stride) > PTRDIFF_MAX)
        return gf_fail(error, GF_USAGE, "%s: the stride of the %s, %zu bytes, is too large", name,
                       what, pixels.stride);
    return GF_OK;
}

bool gf_pixels_overlap(const gf_format *a_format, gf_pixels a, const gf_format *b_format,
                       gf_pixels b) {
    const uintptr_t x = (uintptr_t)a.data, y = (uintptr_t)b.data;
    if (x + pixels_span(a_format, a.stride) <= y || y + pixels_span(b_format, b.stride) <= x)
        return false;
    if (a.stride != b.stride)
        return true;
    const size_t past = (x - y) % a.stride; /* if x >= y: from a row of b to the next row of a */
    const size_t apart = x < y ? (y - x) % a.stride : past ? a.stride - past : 0;
    return apart < gf_row_bytes(a_format) || a.stride - apart < gf_row_bytes(b_format);
}

GF_INLINE void image_copy_alpha(const gf_type type, const gf_format *format,
                                const unsigned char *src, unsigned char *dst, uint64_t n) {
    const uint64_t channels = format->channels;
    const size_t bytes = gf_type_bytes(type);
    for (uint64_t i = channels - 1; i < n * channels; i += channels)
        memcpy(dst + i * bytes, src + i * bytes, bytes); /* every NaN keeps its bits */
}

void gf_restore_alpha(const gf_format *format, const unsigned char *src, unsigned char *dst,
                      uint64_t n) {
    if (gf_has_alpha(format))
        GF_BY_TYPE(format->type, image_copy_alpha, format, src, dst, n);
}

uint64_t gf_digest_rows(uint64_t digest, const gf_rows *rows, size_t bytes) {
    for (uint64_t y = rows->y0; y < rows->y0 + rows->rows; y++)
        digest = (uint64_t)gf_crc32((uint32_t)(digest >> 32), gf_row(rows, y), bytes) << 32 |
                 gf_adler32((uint32_t)digest, gf_row(rows, y), bytes);
    return digest;
}
