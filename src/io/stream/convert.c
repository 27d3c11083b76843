/* Changes of rows between a file and the first filter: orientation, parts, pages, channels, nodata
 * values. Backends receive rows that are already changed, so that all of them produce the same
 * bits. */
#include "io/stream/convert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/convert.h"
#include "core/error.h"
#include "io/bytes.h"
#include "io/file/input.h"

/* ---- sources --------------------------------------------------------------------------------- */

typedef struct wrapper wrapper;

/* A source that changes the rows of another one. It reads them to the buffer, or to the rows of the
 * caller: there, the inner source may write them ahead, with its threads. */
struct wrapper {
    gf_source base;
    gf_source_ops ops;
    gf_source *inner;
    const char *name; /* of the file, for messages */
    double seconds;   /* spent in changing rows */
    /* Change a row, where it is or to another place. NULL: rows are read where they are needed. */
    gf_status (*row)(wrapper *wrap, unsigned char *dst, const unsigned char *src, gf_error *error);
    unsigned char *buffer; /* whole rows of the inner source; NULL: none */
    uint64_t rows;         /* in the buffer */
    size_t skip_bytes;     /* of a row in the buffer, before the part that is changed */
    uint64_t first;        /* row of the inner image */
    uint64_t at;           /* next row: of the inner source, or of a turned image */
};

static void wrapper_close(gf_source *base) {
    wrapper *wrap = (wrapper *)base;
    wrap->inner->ops->close(wrap->inner);
    gf_metadata_clear(&base->metadata);
    free(wrap->buffer);
    free(wrap);
}

static void wrapper_seek(gf_source *base, uint64_t y) {
    wrapper *wrap = (wrapper *)base;
    wrap->at = wrap->first + y;
    wrap->inner->ops->seek(wrap->inner, wrap->at);
}

static void wrapper_cancel(gf_source *base) {
    gf_source *inner = ((wrapper *)base)->inner;
    inner->ops->cancel(inner);
}

static void wrapper_shrink(gf_source *base) {
    gf_source *inner = ((wrapper *)base)->inner;
    if (inner->ops->shrink)
        inner->ops->shrink(inner);
    base->threads = inner->threads;
    base->memory = inner->memory;
}

/* Take over what the inner source knows after it has finished. Its metadata is moved: later
 * metadata follows that before. */
static gf_status wrapper_complete(gf_source *base, gf_error *error) {
    const wrapper *wrap = (wrapper *)base;
    gf_source *inner = wrap->inner;
    gf_metadata *from = &inner->metadata, *to = &base->metadata;
    base->threads = inner->threads;
    base->busy_seconds = inner->busy_seconds + wrap->seconds;
    base->bytes = inner->bytes;
    base->dropped |= inner->dropped;
    if (from->damaged[0])
        memcpy(to->damaged, from->damaged, sizeof to->damaged);
    gf_remarks_add(&to->remarks, &from->remarks);
    for (size_t i = 0; i < from->count; i++) {
        const gf_chunk *chunk = &from->chunks[i];
        gf_metadata_add(to, chunk->name, chunk->late, chunk->data, chunk->size);
    }
    gf_metadata_clear(from);
    return gf_metadata_check(to, wrap->name, error);
}

/* A source with rows left is not finished: it would read them. */
static gf_status wrapper_finish(gf_source *base, gf_error *error) {
    const wrapper *wrap = (wrapper *)base;
    gf_source *inner = wrap->inner;
    if (inner->ops->seek || wrap->at == inner->format.height) {
        const gf_status status = inner->ops->finish(inner, error);
        return status ? status : wrapper_complete(base, error);
    }
    if (inner->ops->cancel)
        inner->ops->cancel(inner);
    base->threads = 0; /* the inner source has not added up its busy time */
    base->bytes = inner->bytes;
    gf_remarks_add(&base->metadata.remarks, &inner->metadata.remarks);
    return GF_OK;
}

static gf_status wrapper_announce(gf_source *base, void *dst, size_t stride, uint64_t rows,
                                  gf_error *error) {
    const wrapper *wrap = (wrapper *)base;
    return wrap->inner->ops->announce(wrap->inner, dst, stride, rows, error);
}

static gf_status wrapper_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                              gf_error *error) {
    wrapper *wrap = (wrapper *)base;
    gf_source *inner = wrap->inner;
    const bool buffered = wrap->row && wrap->buffer;
    const size_t step = buffered ? gf_row_bytes(&inner->format) : stride;
    const uint64_t max = buffered ? wrap->rows : rows;
    unsigned char *out = dst;
    gf_status status = GF_OK;
    /* Skip the rows above the first one. */
    for (uint64_t n; !inner->ops->seek && wrap->at < wrap->first && !status; wrap->at += n) {
        n = wrap->first - wrap->at < wrap->rows ? wrap->first - wrap->at : wrap->rows;
        status = inner->ops->read(inner, wrap->buffer, gf_row_bytes(&inner->format), n, error);
    }
    for (uint64_t n; rows != 0 && !status; rows -= n) {
        n = rows < max ? rows : max;
        unsigned char *in = buffered ? wrap->buffer : out;
        status = inner->ops->read(inner, in, step, n, error);
        const double start = gf_now();
        for (uint64_t i = 0; i < n && !status; i++, in += step, out += stride, wrap->at++)
            if (wrap->row)
                status = wrap->row(wrap, out, in + wrap->skip_bytes, error);
        wrap->seconds += gf_now() - start;
    }
    return status;
}

/* Wrap *source in a struct of `size` bytes, which replaces it. Return NULL on failure; *source is
 * then unchanged. */
static void *wrapper_new(size_t size, gf_source **source, const char *name, gf_error *error) {
    gf_source *inner = *source;
    wrapper *wrap = gf_source_new(size, NULL, name, error);
    if (!wrap)
        return NULL;
    wrap->ops = (gf_source_ops){.read = wrapper_read,
                                .finish = wrapper_finish,
                                .close = wrapper_close,
                                .seek = inner->ops->seek ? wrapper_seek : NULL,
                                .announce = inner->ops->announce ? wrapper_announce : NULL,
                                .cancel = inner->ops->cancel ? wrapper_cancel : NULL,
                                .shrink = wrapper_shrink};
    wrap->base = *inner;
    wrap->base.ops = &wrap->ops;
    wrap->inner = inner;
    wrap->name = name;
    inner->metadata = (gf_metadata){.seen = wrap->base.metadata.seen};
    *source = &wrap->base;
    return wrap;
}

/* Read only rows that are requested, in any number. */
static void wrapper_read_on_request(wrapper *wrap) {
    wrap->ops.announce = NULL;
    wrap->ops.cancel = NULL;
    wrap->base.rows_together = 0;
}

enum {
    WRAPPER_BYTES = 1 << 20, /* rows of the buffer, at least one */
    WRAPPER_MARGIN = 8       /* readable bytes after them */
};

static gf_status wrapper_open_buffer(wrapper *wrap, uint64_t max_memory, gf_error *error) {
    const size_t row = gf_row_bytes(&wrap->inner->format);
    wrap->rows = WRAPPER_BYTES / row + 1;
    if (wrap->rows * row > max_memory / 2)
        wrap->rows = 1;
    wrap->buffer =
        gf_alloc_limited(wrap->rows * row + WRAPPER_MARGIN, max_memory, wrap->name, "a row", error);
    return wrap->buffer ? GF_OK : GF_FAILED;
}

/* ---- orientation ----------------------------------------------------------------------------- */

/* Rows and columns of the part of the upright image that is copied at a time, in the cache. */
enum { TILE = 64 };

typedef struct rotate_source {
    wrapper wrap;        /* buffer: the whole image; NULL: not read yet */
    bool transposed;     /* columns of the image in memory are rows of the upright image */
    bool flip_x, flip_y; /* its last column, or row, is the first of the upright image */
    const char *what;    /* the image, for messages */
    uint64_t max_memory;
} rotate_source;

/* Reverse the order of the pixels of a row. */
static gf_status rotate_mirror_row(wrapper *wrap, unsigned char *row, const unsigned char *src,
                                   gf_error *error) {
    const size_t bytes = gf_row_bytes(&wrap->base.format);
    const size_t pixel = bytes / (size_t)wrap->base.format.width;
    unsigned char *left = row, *right = row + bytes - pixel;
    unsigned char held[GF_MAX_CHANNELS * sizeof(float)];
    (void)src, (void)error; /* src is row */
    for (; left < right; left += pixel, right -= pixel) {
        memcpy(held, left, pixel);
        memcpy(left, right, pixel);
        memcpy(right, held, pixel);
    }
    return GF_OK;
}

/* Copy n pixels that are `step` bytes apart. */
static inline void rotate_pixels(unsigned char *dst, const unsigned char *src, ptrdiff_t step,
                                 uint64_t n, size_t pixel) {
    for (uint64_t i = 0; i < n; i++)
        memcpy(dst + i * pixel, src + (ptrdiff_t)i * step, pixel);
}

/* Copy n pixels of row y of the upright image, from column x. */
static void rotate_part(const rotate_source *rotate, unsigned char *dst, uint64_t x, uint64_t y,
                        uint64_t n) {
    const gf_format *in = &rotate->wrap.inner->format;
    const size_t row = gf_row_bytes(in), pixel = row / (size_t)in->width;
    const uint64_t in_x = rotate->transposed ? y : x, in_y = rotate->transposed ? x : y;
    const unsigned char *src = rotate->wrap.buffer +
                               (rotate->flip_x ? in->width - 1 - in_x : in_x) * pixel +
                               (rotate->flip_y ? in->height - 1 - in_y : in_y) * row;
    const ptrdiff_t step = (ptrdiff_t)(rotate->transposed ? row : pixel);
    const ptrdiff_t by = (rotate->transposed ? rotate->flip_y : rotate->flip_x) ? -step : step;
    /* Sizes that the compiler knows: 8 and 16 bits, grey and RGB. */
    if (pixel == 1)
        rotate_pixels(dst, src, by, n, 1);
    else if (pixel == 2)
        rotate_pixels(dst, src, by, n, 2);
    else if (pixel == 3)
        rotate_pixels(dst, src, by, n, 3);
    else if (pixel == 6)
        rotate_pixels(dst, src, by, n, 6);
    else
        rotate_pixels(dst, src, by, n, pixel);
}

static gf_status rotate_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                             gf_error *error) {
    rotate_source *rotate = (rotate_source *)base;
    const uint64_t width = base->format.width;
    const size_t pixel = gf_row_bytes(&base->format) / (size_t)width;
    void *pixels = rotate->wrap.buffer;
    if (!pixels && gf_source_read_all(rotate->wrap.inner, rotate->wrap.name, rotate->what,
                                      rotate->max_memory, 0, &pixels, error))
        return GF_FAILED;
    rotate->wrap.buffer = pixels;
    const double start = gf_now();
    for (uint64_t i = 0, n; i < rows; i += n) {
        n = rows - i < TILE ? rows - i : TILE;
        for (uint64_t x = 0, m; x < width; x += m) {
            m = width - x < TILE ? width - x : TILE;
            for (uint64_t k = i; k < i + n; k++)
                rotate_part(rotate, (unsigned char *)dst + k * stride + x * pixel, x,
                            rotate->wrap.at + k, m);
        }
    }
    rotate->wrap.at += rows;
    rotate->wrap.seconds += gf_now() - start;
    return GF_OK;
}

static void rotate_seek(gf_source *base, uint64_t y) {
    ((wrapper *)base)->at = y;
}

gf_status gf_turn_source(gf_source **source, uint32_t orientation, const char *what,
                         uint64_t max_memory, const char *name, gf_error *error) {
    const gf_format from = (*source)->format;
    rotate_source *rotate = wrapper_new(sizeof *rotate, source, name, error);
    if (!rotate)
        return GF_FAILED;
    gf_source *base = &rotate->wrap.base;
    rotate->transposed = orientation >= 5;
    rotate->flip_x = orientation == 2 || orientation == 3 || orientation >= 7;
    rotate->flip_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    rotate->what = what;
    rotate->max_memory = max_memory;
    if (orientation == 2) {
        rotate->wrap.row = rotate_mirror_row;
        return GF_OK;
    }
    base->held = true;
    wrapper_read_on_request(&rotate->wrap);
    rotate->wrap.ops.read = rotate_read;
    rotate->wrap.ops.finish = wrapper_complete;
    rotate->wrap.ops.seek = rotate_seek;
    if (rotate->transposed) {
        base->format.width = from.height;
        base->format.height = from.width;
    }
    return GF_OK;
}

gf_status gf_rotate_source(gf_source **source, uint64_t max_memory, const char *name,
                           gf_error *error) {
    gf_metadata *metadata = &(*source)->metadata;
    const uint32_t orientation = gf_metadata_orientation(metadata);
    if (strcmp(metadata->damaged, "eXIf") == 0 || strcmp(metadata->damaged, GF_ITEM_EXIF) == 0)
        return gf_fail(error, GF_FAILED,
                       "%s: the EXIF data is damaged; get an intact copy, or remove --autorotate",
                       name);
    if (orientation <= 1)
        return GF_OK;
    gf_metadata_set_upright(metadata, orientation >= 5);
    if (gf_turn_source(source, orientation, "an image to turn", max_memory, name, error))
        return GF_FAILED;
    (*source)->codec = NULL;
    return GF_OK;
}

/* ---- parts of images ------------------------------------------------------------------------- */

static gf_status crop_row(wrapper *wrap, unsigned char *dst, const unsigned char *src,
                          gf_error *error) {
    (void)error;
    memcpy(dst, src, gf_row_bytes(&wrap->base.format));
    return GF_OK;
}

gf_status gf_crop_parse(const char *text, gf_crop *crop, gf_error *error) {
    uint64_t numbers[4];
    const char *at = text;
    for (size_t i = 0; i < 4; i++) {
        if (!gf_parse_digits(&at, &numbers[i]) || *at != (i < 3 ? ',' : '\0'))
            return gf_fail(
                error, GF_USAGE,
                "--crop '%s': must be X,Y,WIDTH,HEIGHT in pixels, such as 100,50,640,480", text);
        at++;
    }
    if (!numbers[2] || !numbers[3])
        return gf_fail(error, GF_USAGE, "--crop '%s': width and height must be at least 1", text);
    *crop = (gf_crop){numbers[0], numbers[1], numbers[2], numbers[3]};
    return GF_OK;
}

gf_status gf_crop_source(gf_source **source, const gf_crop *part, uint64_t max_memory,
                         const char *name, gf_error *error) {
    gf_source *inner = *source;
    const gf_format whole = inner->format;
    if (!part->width || !part->height)
        return gf_fail(error, GF_USAGE, "--crop: the rectangle is empty");
    if (part->x >= whole.width || part->width > whole.width - part->x || part->y >= whole.height ||
        part->height > whole.height - part->y)
        return gf_fail(error, GF_FAILED,
                       "%s: --crop %" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                       " is not inside the image of %" PRIu64 "x%" PRIu64 " pixels; correct it",
                       name, part->x, part->y, part->width, part->height, whole.width,
                       whole.height);
    wrapper *wrap = wrapper_new(sizeof *wrap, source, name, error);
    if (!wrap)
        return GF_FAILED;
    gf_source *base = *source;
    wrapper_read_on_request(wrap);
    base->codec = NULL;
    base->format.width = part->width;
    base->format.height = part->height;
    wrap->first = part->y;
    if (inner->ops->seek)
        wrapper_seek(base, 0);
    if (inner->ops->cut && inner->ops->cut(inner, part->x, part->width))
        return GF_OK;
    if (part->width != whole.width)
        wrap->row = crop_row;
    else if (inner->ops->seek || part->y == 0)
        return GF_OK;
    wrap->skip_bytes = (size_t)part->x * (gf_row_bytes(&whole) / (size_t)whole.width);
    return wrapper_open_buffer(wrap, max_memory, error);
}

/* ---- all pages of a file --------------------------------------------------------------------- */

typedef struct pages_source {
    wrapper wrap; /* of the current page */
    gf_open_page *open;
    gf_limits limits;
    gf_page_place place;
} pages_source;

static gf_status pages_next(pages_source *pages, gf_error *error) {
    gf_source **inner = &pages->wrap.inner, *next;
    const gf_format format = (*inner)->format;
    gf_status status = (*inner)->ops->finish(*inner, error);
    pages->limits.page++;
    pages->limits.place = &pages->place;
    if (!status)
        status = pages->open(pages->wrap.name, &pages->limits, &next, error);
    if (status)
        return status;
    gf_remarks_add(&pages->wrap.base.metadata.remarks, &(*inner)->metadata.remarks);
    (*inner)->ops->close(*inner);
    *inner = next;
    pages->wrap.at = 0;
    if (gf_format_equal(&next->format, &format))
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: page %" PRIu32
                   " has another size or type than those before, and --page all measures them "
                   "together; choose a page with --page N",
                   pages->wrap.name, pages->limits.page);
}

static gf_status pages_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                            gf_error *error) {
    pages_source *pages = (pages_source *)base;
    unsigned char *out = dst;
    gf_status status = GF_OK;
    for (uint64_t n; rows != 0 && !status; rows -= n, out += n * stride) {
        const uint64_t left = pages->wrap.inner->format.height - pages->wrap.at;
        n = rows < left ? rows : left;
        status = n != 0 ? wrapper_read(base, out, stride, n, error) : pages_next(pages, error);
    }
    return status;
}

gf_status gf_pages_source(gf_source **source, gf_open_page *open, const char *path,
                          const gf_limits *limits, gf_error *error) {
    gf_format format = (*source)->format;
    if (__builtin_mul_overflow(format.height, (*source)->pages, &format.height))
        format.height = 0;
    const gf_status status = gf_check_pixels(&format, limits, path, error);
    pages_source *pages = status ? NULL : wrapper_new(sizeof *pages, source, path, error);
    if (!pages)
        return GF_FAILED;
    wrapper_read_on_request(&pages->wrap);
    pages->wrap.ops.read = pages_read;
    pages->wrap.ops.seek = NULL;
    pages->open = open;
    pages->limits = *limits;
    pages->limits.page = 1;
    pages->limits.stacked = false;
    pages->place = *limits->place;
    pages->wrap.base.format = format;
    return GF_OK;
}

/* ---- samples that no format describes, and channels of a pixel ------------------------------- */

typedef struct samples_source {
    wrapper wrap;
    gf_samples from;
    uint64_t channels[GF_MAX_CHANNELS]; /* to read, from 0 */
    bool known;                         /* the samples have the type of the image */
    uint64_t unfit;                     /* samples that are not values of u16, ... */
    double min, max;                    /* ... and their extremes */
} samples_source;

/* Return the number of a binary16: its exponent, which is smaller by 112, moves to its place. */
static float samples_half(uint32_t half) {
    const uint32_t bits = (half & 0x7fff) << 13;
    const bool finite = (half & 0x7c00) != 0x7c00;
    const float v =
        finite ? gf_float_of_bits(bits) * 0x1p112f : gf_float_of_bits(bits | 0x7f800000);
    return half & 0x8000 ? -v : v;
}

/* Return a number from its bits, and rounded once to binary32. */
static double samples_number(const gf_samples *from, uint64_t bits, float *single) {
    const uint32_t unused = 64 - 8 * from->bytes, low = (uint32_t)bits;
    const int64_t extended = (int64_t)(bits << unused) >> unused;
    double real;
    memcpy(&real, &bits, sizeof real);
    if (from->kind != 'f') {
        *single = from->kind == 'i' ? (float)extended : (float)bits;
        return from->kind == 'i' ? (double)extended : (double)bits;
    }
    *single = from->bytes == 2   ? samples_half(low)
              : from->bytes == 4 ? gf_float_of_bits(low)
                                 : (float)real;
    return from->bytes < 8 ? (double)*single : real;
}

/* Return a number as u16, and count those that are none. */
static uint16_t samples_u16(samples_source *source, double v) {
    const bool inside = v >= 0 && v <= 65535;
    const uint16_t integer = inside ? (uint16_t)(int32_t)v : 0;
    if (inside && v == (double)integer)
        return integer;
    source->min = source->unfit == 0 || v < source->min ? v : source->min;
    source->max = source->unfit == 0 || v > source->max ? v : source->max;
    source->unfit++;
    return 0;
}

static gf_status samples_check(const samples_source *source, gf_error *error) {
    char lo[40], hi[40];
    if (source->unfit == 0)
        return GF_OK;
    gf_value_format(&(gf_value){.type = GF_VALUE_DOUBLE, .real = source->min}, lo, sizeof lo);
    gf_value_format(&(gf_value){.type = GF_VALUE_DOUBLE, .real = source->max}, hi, sizeof hi);
    return gf_fail(
        error, GF_FAILED,
        "%s: --as u16 keeps integers from 0 to 65535; samples with other values: %" PRIu64
        ", from %s to %s; use --as f32",
        source->wrap.name, source->unfit, lo, hi);
}

static gf_status samples_row(wrapper *wrap, unsigned char *dst, const unsigned char *src,
                             gf_error *error) {
    samples_source *source = (samples_source *)wrap;
    const gf_samples *from = &source->from;
    const gf_format *format = &wrap->base.format;
    const size_t size = gf_type_bytes(format->type);
    const uint32_t unused = 64 - 8 * from->bytes;
    for (uint64_t x = 0; x < format->width; x++)
        for (uint32_t c = 0; c < format->channels; c++, dst += size) {
            const uint64_t at = from->first + x * from->step + source->channels[c] * from->plane;
            const uint64_t eight = gf_little64(src + at * from->bytes);
            const uint64_t bits =
                from->little ? eight << unused >> unused : __builtin_bswap64(eight) >> unused;
            uint32_t stored = (uint32_t)bits;
            float single;
            if (!source->known) {
                const double real = samples_number(from, bits, &single);
                stored = format->type == GF_U16 ? samples_u16(source, real) : gf_float_bits(single);
            }
            const uint16_t half = (uint16_t)stored;
            if (format->type == GF_U8)
                *dst = (unsigned char)stored;
            else
                memcpy(dst, format->type == GF_U16 ? (const void *)&half : &stored, size);
        }
    /* A part of an image that cannot seek is not finished. */
    return wrap->inner->ops->seek ? GF_OK : samples_check(source, error);
}

static gf_status samples_finish(gf_source *base, gf_error *error) {
    const gf_status status = wrapper_finish(base, error);
    return status ? status : samples_check((samples_source *)base, error);
}

bool gf_samples_type(const gf_samples *samples, gf_type *type) {
    const bool integer = samples->kind == 'u' && samples->bytes <= 2;
    *type = !integer ? GF_F32 : samples->bytes == 1 ? GF_U8 : GF_U16;
    return integer || (samples->kind == 'f' && samples->bytes == 4);
}

gf_samples gf_samples_of(const gf_source *source) {
    const gf_format *format = &source->format;
    return source->samples.bytes ? source->samples
                                 : (gf_samples){.kind = format->type == GF_F32 ? 'f' : 'u',
                                                .bytes = (uint32_t)gf_type_bytes(format->type),
                                                .little = gf_host_is_little(),
                                                .count = format->channels,
                                                .width = format->width,
                                                .step = format->channels,
                                                .plane = 1};
}

/* Choose the channels and the type of the image. */
static gf_status samples_choose(samples_source *source, const char *text, gf_depth as,
                                gf_error *error) {
    static const char *const all[] = {"1", "1,2", "1,2,3", "1,2,3,4"};
    const gf_samples *from = &source->from;
    const char *name = source->wrap.name;
    gf_format *format = &source->wrap.base.format;
    gf_type own;
    source->known = gf_samples_type(from, &own) && gf_depth_type(as, own) == own;
    format->type = gf_depth_type(as, own);
    format->channels = 0;
    if (as == GF_DEPTH_8)
        return gf_fail(error, GF_USAGE, "--as: must be u16 or f32");
    if (as == GF_DEPTH_INPUT && !source->known)
        return gf_fail(error, GF_FAILED,
                       "%s: samples are not u8, u16 or f32 (%s); read them with --as f32 or --as "
                       "u16, which keep the values",
                       name, source->wrap.base.stored);
    if (!text && from->several)
        return gf_fail(error, GF_FAILED,
                       "%s: has %" PRIu64 " channels; choose up to 4, such as --channels 1,2,3",
                       name, from->count);
    for (const char *at = text ? text : all[from->count - 1];; at++) {
        uint64_t number = 0;
        if (format->channels == GF_MAX_CHANNELS || !gf_parse_digits(&at, &number) || number == 0 ||
            (*at != ',' && *at != '\0'))
            return gf_fail(error, GF_USAGE,
                           "--channels '%s': must be 1 to 4 numbers from 1, such as 1,2,3", text);
        if (number > from->count)
            return gf_fail(error, GF_FAILED,
                           "%s: has no channel %" PRIu64 "; choose from 1 to %" PRIu64
                           " with --channels",
                           name, number, from->count);
        source->channels[format->channels++] = number - 1;
        if (*at == '\0')
            return GF_OK;
    }
}

gf_status gf_samples_source(gf_source **source, const gf_limits *limits, const char *name,
                            gf_error *error) {
    const gf_samples from = gf_samples_of(*source);
    const gf_type type = (*source)->format.type;
    if (!(*source)->samples.bytes && !limits->channels && gf_depth_type(limits->as, type) == type)
        return GF_OK;
    if (from.transposed &&
        gf_turn_source(source, 5, "an image to turn", limits->max_memory, name, error))
        return GF_FAILED;
    samples_source *samples = wrapper_new(sizeof *samples, source, name, error);
    if (!samples)
        return GF_FAILED;
    gf_source *base = *source;
    wrapper_read_on_request(&samples->wrap);
    samples->wrap.ops.finish = samples_finish;
    samples->wrap.row = samples_row;
    samples->from = from;
    base->format.width = from.width;
    base->format.alpha = base->format.alpha && !limits->channels;
    base->metadata.associated_alpha = base->metadata.associated_alpha && !limits->channels;
    base->samples.bytes = 0;
    gf_status status = samples_choose(samples, limits->channels, limits->as, error);
    if (!status)
        status = gf_check_pixels(&base->format, limits, name, error);
    return status ? status : wrapper_open_buffer(&samples->wrap, limits->max_memory, error);
}

/* ---- samples with the nodata value ----------------------------------------------------------- */

typedef struct nodata_source {
    wrapper wrap;
    gf_left_out *left_out;
} nodata_source;

static void nodata_mark(uint8_t *missing, const void *row, uint64_t n, gf_type type, float value) {
    const uint8_t *u8 = row;
    const uint16_t *u16 = row;
    const float *f32 = row;
    const bool nan = value != value; /* NOLINT(misc-redundant-expression) */
    for (uint64_t i = 0; type == GF_U8 && i < n; i++)
        missing[i] |= (float)u8[i] == value;
    for (uint64_t i = 0; type == GF_U16 && i < n; i++)
        missing[i] |= (float)u16[i] == value;
    for (uint64_t i = 0; type == GF_F32 && i < n; i++)
        missing[i] |= nan ? f32[i] != f32[i] : f32[i] == value;
}

void gf_leave_out(gf_left_out *left_out, const gf_format *format, unsigned char *const rows[],
                  uint64_t y) {
    static const uint32_t nan = 0x7fc00000, zero = 0;
    const uint64_t n = gf_row_samples(format), channels = format->channels;
    const size_t size = gf_type_bytes(format->type);
    const bool counted = y >= left_out->first && y < left_out->end;
    const void *sample = left_out->use == GF_NODATA_ZERO ? &zero : &nan;
    uint8_t *missing = left_out->missing;
    memset(missing, 0, n);
    for (size_t i = 0; i < left_out->images; i++)
        if (left_out->nodata[i].declared)
            nodata_mark(missing, rows[i], n, format->type, left_out->nodata[i].value);
    for (uint64_t i = channels - 1; gf_has_alpha(format) && i < n; i += channels)
        missing[i] = 0;
    for (uint64_t c = 0; counted && c < channels; c++) {
        uint64_t sum = 0;
        for (uint64_t i = c; i < n; i += channels)
            sum += missing[i];
        left_out->all[c] += sum;
        if (left_out->rows)
            left_out->rows[y * channels + c] = sum;
    }
    for (uint64_t i = 0; counted && left_out->columns && i < n; i++)
        left_out->columns[i] += missing[i];
    if (left_out->use == GF_NODATA_KEPT || (sample == &nan && format->type != GF_F32))
        return;
    for (size_t k = 0; k < left_out->images; k++)
        for (uint64_t i = 0; i < n; i++)
            if (missing[i])
                memcpy(rows[k] + i * size, sample, size);
}

static gf_status nodata_row(wrapper *wrap, unsigned char *row, const unsigned char *src,
                            gf_error *error) {
    (void)src, (void)error; /* src is row */
    gf_leave_out(((nodata_source *)wrap)->left_out, &wrap->base.format, &row, wrap->at);
    return GF_OK;
}

static gf_status nodata_finish(gf_source *base, gf_error *error) {
    const gf_left_out *left_out = ((nodata_source *)base)->left_out;
    for (uint32_t c = 0; c < GF_MAX_CHANNELS; c++)
        base->metadata.remarks.nodata += left_out->all[c];
    return wrapper_finish(base, error);
}

gf_status gf_nodata_source(gf_source **source, gf_left_out *left_out, const char *name,
                           gf_error *error) {
    nodata_source *wrap = wrapper_new(sizeof *wrap, source, name, error);
    if (!wrap)
        return GF_FAILED;
    wrap->wrap.ops.finish = nodata_finish;
    wrap->wrap.row = nodata_row;
    wrap->left_out = left_out;
    return GF_OK;
}
