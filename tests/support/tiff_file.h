/* TIFF files for tests: written with libtiff, and read with it row by row or tile by tile, as any
 * application does. The reference shares no code with the reader of the project. */
#ifndef TIFF_FILE_H
#define TIFF_FILE_H

#include <tiffio.h>

#include "io/bytes.h"
#include "io_util.h"

enum {
    TIFF_NO_EXTRA = 0xffff,
    TIFF_COLORS_8 = 0,
    TIFF_COLORS_256,
    TIFF_COLORS_257,
    TIFF_COLORS_16
};

typedef struct tiff_spec {
    uint32_t width, height;
    uint16_t samples, bits, format, photometric, compression, predictor;
    uint16_t extra; /* kind of the last sample; TIFF_NO_EXTRA: none */
    bool planar, big, big_endian, reversed;
    uint32_t tile_width, tile_height; /* 0: strips */
    uint32_t rows_per_strip;
    unsigned colors; /* scale of the colour map */
    uint32_t subfile;
    bool sparse;          /* units without data */
    bool repeated;        /* small values in runs, so that codecs find something */
    uint32_t fax_options; /* of Group 3 */
} tiff_spec;

/* Return a grey image of 5 rows in LZW strips of 2 rows. */
static inline tiff_spec tiff_small_grey(uint32_t width, uint32_t subfile) {
    return (tiff_spec){.width = width,
                       .height = 5,
                       .samples = 1,
                       .bits = 8,
                       .format = SAMPLEFORMAT_UINT,
                       .photometric = PHOTOMETRIC_MINISBLACK,
                       .compression = COMPRESSION_LZW,
                       .extra = TIFF_NO_EXTRA,
                       .rows_per_strip = 2,
                       .subfile = subfile};
}

/* Discard messages. */
static inline void tiff_silent(const char *module, const char *format, va_list arguments) {}

static inline void tiff_set_tags(TIFF *tiff, const tiff_spec *spec, test_random *random) {
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, spec->width);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, spec->height);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, spec->bits);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, spec->samples);
    TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, spec->format);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG,
                 spec->planar ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, spec->photometric);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, spec->compression);
    if (spec->predictor > 1)
        TIFFSetField(tiff, TIFFTAG_PREDICTOR, spec->predictor);
    if (spec->extra != TIFF_NO_EXTRA)
        TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, spec->samples > 4 ? spec->samples - 3 : 1,
                     (const uint16_t[3]){spec->extra});
    if (spec->reversed)
        TIFFSetField(tiff, TIFFTAG_FILLORDER, FILLORDER_LSB2MSB);
    if (spec->subfile)
        TIFFSetField(tiff, TIFFTAG_SUBFILETYPE, spec->subfile);
    if (spec->photometric == PHOTOMETRIC_YCBCR)
        TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    if (spec->fax_options)
        TIFFSetField(tiff, TIFFTAG_GROUP3OPTIONS, spec->fax_options);
    if (spec->compression == COMPRESSION_PIXARLOG)
        TIFFSetField(tiff, TIFFTAG_PIXARLOGDATAFMT,
                     spec->bits == 8    ? PIXARLOGDATAFMT_8BIT
                     : spec->bits == 16 ? PIXARLOGDATAFMT_16BIT
                                        : PIXARLOGDATAFMT_FLOAT);
    if (spec->tile_width) {
        TIFFSetField(tiff, TIFFTAG_TILEWIDTH, spec->tile_width);
        TIFFSetField(tiff, TIFFTAG_TILELENGTH, spec->tile_height);
    } else {
        TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, spec->rows_per_strip);
    }
    if (spec->photometric == PHOTOMETRIC_PALETTE) {
        static uint16_t maps[3][256];
        static const unsigned factors[] = {1, 256, 257, 1};
        for (size_t i = 0; i < 768; i++)
            maps[i % 3][i / 3] =
                (uint16_t)(test_below(random, spec->colors == TIFF_COLORS_16 ? 65536 : 256) *
                           factors[spec->colors]);
        TIFFSetField(tiff, TIFFTAG_COLORMAP, maps[0], maps[1], maps[2]);
    }
}

/* Fill a buffer with samples. PixarLog stores floats near 1; NaNs are for lossless codecs. */
static inline void tiff_fill(const tiff_spec *spec, unsigned char *data, size_t size,
                             test_random *random) {
    for (size_t i = 0; i < size; i++)
        data[i] = spec->repeated ? (unsigned char)(i / 7 % 5 * 50)
                                 : (unsigned char)test_below(random, 256);
    for (size_t i = 0; spec->bits == 32 && i + 4 <= size; i += 4) {
        const float value = (float)test_below(random, 1000) / 500;
        if (spec->compression == COMPRESSION_PIXARLOG || spec->repeated)
            memcpy(data + i, &value, sizeof value);
    }
}

static inline bool tiff_write_directory(TIFF *tiff, const tiff_spec *spec, test_random *random) {
    bool written = true;
    tiff_set_tags(tiff, spec, random);
    const tmsize_t size = spec->tile_width ? TIFFTileSize(tiff) : TIFFScanlineSize(tiff);
    AUTO(free) unsigned char *data = test_alloc((size_t)size + 1);
    for (uint16_t plane = 0; plane < (spec->planar ? spec->samples : 1); plane++)
        for (uint32_t y = 0; y < spec->height; y += spec->tile_width ? spec->tile_height : 1)
            for (uint32_t x = 0; x < spec->width; x += spec->tile_width) {
                tiff_fill(spec, data, (size_t)size, random);
                if (spec->sparse && spec->tile_width && x + y + plane && test_below(random, 2) == 0)
                    continue;
                written &= (spec->tile_width ? TIFFWriteTile(tiff, data, x, y, 0, plane)
                                             : TIFFWriteScanline(tiff, data, y, plane)) >= 0;
                if (!spec->tile_width)
                    break;
            }
    return TIFFWriteDirectory(tiff) && written;
}

/* Create a file of this byte order and size of offsets. */
static inline TIFF *tiff_create(const char *path, const tiff_spec *spec) {
    const char mode[] = {'w', spec->big_endian ? 'b' : 'l', spec->big ? '8' : '4', 0};
    TIFFSetErrorHandler(tiff_silent);
    TIFFSetWarningHandler(tiff_silent);
    TIFF *tiff = TIFFOpen(path, mode);
    assert_non_null(tiff);
    return tiff;
}

/* Create a file and set its tags. The caller writes the samples. */
static inline TIFF *tiff_begin(const char *path, const tiff_spec *spec) {
    test_random random = test_seeded(1);
    TIFF *tiff = tiff_create(path, spec);
    tiff_set_tags(tiff, spec, &random);
    return tiff;
}

/* Write a file with `count` pages. Return false if libtiff cannot write it. */
static inline bool tiff_write(const char *path, const tiff_spec *specs, size_t count,
                              test_random *random) {
    TIFF *tiff = tiff_create(path, specs);
    bool written = true;
    for (size_t i = 0; i < count; i++)
        written &= tiff_write_directory(tiff, &specs[i], random);
    TIFFClose(tiff);
    return written;
}

/* Write a file with one page, or fail the test. The samples are the same for the same spec. */
static inline void tiff_put(const char *path, const tiff_spec *spec) {
    assert_true(tiff_write(path, spec, 1, &(test_random){test_seeded(1).state}));
}

/* Return the data of a strip or tile in the bytes of a file, where libtiff finds it, and its size.
 * i: modulo the number of strips or tiles. */
static inline unsigned char *tiff_unit(const char *path, unsigned char *data, uint32_t i,
                                       uint64_t *size) {
    TIFF *tiff = TIFFOpen(path, "r");
    assert_non_null(tiff);
    i %= TIFFIsTiled(tiff) ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
    data += TIFFGetStrileOffset(tiff, i);
    *size = TIFFGetStrileByteCount(tiff, i);
    TIFFClose(tiff);
    return data;
}

/* ---- directories of classic little-endian files ---------------------------------------------- */

typedef struct tiff_entry {
    uint16_t tag, type;
    uint32_t count, value;
} tiff_entry;

/* Write a directory and the offset of the next one. Return the end. */
static inline unsigned char *tiff_put_entries(unsigned char *at, const tiff_entry *entries,
                                              size_t count, uint32_t next) {
    gf_put_little16(at, (uint32_t)count);
    at += 2;
    for (size_t i = 0; i < count; i++, at += 12) {
        gf_put_little16(at, entries[i].tag);
        gf_put_little16(at + 2, entries[i].type);
        gf_put_little32(at + 4, entries[i].count);
        gf_put_little32(at + 8, entries[i].value);
    }
    gf_put_little32(at, next);
    return at + 4;
}

/* Return the entry of a tag in the first directory. */
static inline unsigned char *tiff_entry_of(unsigned char *data, unsigned tag) {
    unsigned char *entry = data + gf_little32(data + 4) + 2;
    for (uint32_t i = gf_little16(entry - 2); i > 0; i--, entry += 12)
        if (gf_little16(entry) == tag)
            return entry;
    fail_msg("no tag %u", tag);
    return NULL;
}

/* Set the tag, the number of values, and the value of an entry in a file. A SHORT becomes a LONG if
 * the value needs it. */
static inline void tiff_patch_entry(const char *path, unsigned tag, unsigned new_tag,
                                    uint32_t count, uint32_t value) {
    size_t size;
    AUTO(free) unsigned char *data = test_bytes(path, &size);
    unsigned char *entry = tiff_entry_of(data, tag);
    if (gf_little16(entry + 2) == TIFF_SHORT && value > UINT16_MAX)
        gf_put_little16(entry + 2, TIFF_LONG);
    gf_put_little16(entry, new_tag);
    gf_put_little32(entry + 4, count);
    gf_put_little32(entry + 8, value);
    put_bytes(path, data, size);
}

static inline void tiff_patch(const char *path, unsigned tag, uint32_t value) {
    tiff_patch_entry(path, tag, tag, 1, value);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Return sample i of a decoded row. */
static inline uint64_t tiff_sample(const unsigned char *row, uint64_t i, uint32_t depth) {
    uint64_t value = 0;
    if (depth % 16 == 0) { /* in the byte order of the host */
        memcpy((unsigned char *)&value + (gf_host_is_little() ? 0 : 8 - depth / 8),
               row + depth / 8 * i, depth / 8);
        return value;
    }
    for (uint64_t bit = i * depth; bit < (i + 1) * depth; bit++)
        value = value << 1 | (row[bit / 8] >> (7 - bit % 8) & 1);
    return value;
}

static inline void tiff_put_sample(unsigned char *row, uint64_t i, gf_type type, uint32_t value) {
    const uint16_t v16 = (uint16_t)value;
    if (type == GF_U8)
        row[i] = (unsigned char)value;
    else if (type == GF_U16)
        memcpy(row + 2 * i, &v16, sizeof v16);
    else
        memcpy(row + 4 * i, &value, sizeof value);
}

typedef struct tiff_colors {
    uint16_t maps[3][256];
    gf_type type;
    unsigned divisor;
} tiff_colors;

/* Read the colour map. All entries together determine the type. */
static inline tiff_colors tiff_read_colors(TIFF *tiff, uint32_t entries) {
    tiff_colors colors = {.type = GF_U8};
    uint16_t *maps[3];
    assert_true(TIFFGetField(tiff, TIFFTAG_COLORMAP, &maps[0], &maps[1], &maps[2]));
    unsigned remainder257 = 0, remainder256 = 0, high = 0;
    for (uint32_t i = 0; i < entries; i++)
        for (int c = 0; c < 3; c++) {
            colors.maps[c][i] = maps[c][i];
            remainder257 |= maps[c][i] % 257u;
            remainder256 |= maps[c][i] % 256u;
            high |= maps[c][i] / 256u;
        }
    colors.divisor = !high ? 1 : !remainder257 ? 257 : !remainder256 ? 256 : 0;
    if (!colors.divisor) {
        colors.type = GF_U16;
        colors.divisor = 1;
    }
    return colors;
}

/* A page as libtiff decodes it: the bits of its samples, in the order of pixels. */
typedef struct tiff_page {
    uint64_t *samples; /* NULL: libtiff fails; the caller frees them */
    uint32_t width, height;
    uint16_t channels, depth, photometric;
    bool alpha;
    tiff_colors colors; /* of a palette */
} tiff_page;

/* Read a page, numbered from 0. */
static inline tiff_page tiff_decode(const char *path, uint32_t number) {
    tiff_page page = {.channels = 1, .depth = 1};
    uint16_t planar = 1, extras = 0, *extra = NULL;
    bool failed = false;
    TIFF *tiff = TIFFOpen(path, "r");
    if (!tiff)
        return page;
    assert_true(TIFFSetDirectory(tiff, number));
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &page.width);
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &page.height);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &page.depth);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &page.channels);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &planar);
    TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &page.photometric);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &extras, &extra);
    page.alpha = extras && extra[0] != EXTRASAMPLE_UNSPECIFIED;
    if (page.photometric == PHOTOMETRIC_YCBCR)
        TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    if (page.photometric == PHOTOMETRIC_PALETTE)
        page.colors = tiff_read_colors(tiff, 1u << page.depth);
    const bool tiled = TIFFIsTiled(tiff);
    const uint32_t in_row = planar == PLANARCONFIG_SEPARATE ? 1 : page.channels;
    uint32_t width = page.width, height = 1; /* of a tile or row */
    if (tiled) {
        TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &width);
        TIFFGetField(tiff, TIFFTAG_TILELENGTH, &height);
    }
    const size_t unit = (size_t)(tiled ? TIFFTileSize(tiff) : TIFFScanlineSize(tiff));
    AUTO(free) unsigned char *data = test_zeros(unit + 1);
    page.samples = test_zeros(sizeof *page.samples * page.width * page.height * page.channels);
    for (uint16_t plane = 0; plane < page.channels / in_row; plane++)
        for (uint32_t y0 = 0; y0 < page.height && !failed; y0 += height)
            for (uint32_t x0 = 0; x0 < page.width && !failed; x0 += width) {
                if (tiled &&
                    TIFFGetStrileByteCount(tiff, TIFFComputeTile(tiff, x0, y0, 0, plane)) == 0)
                    memset(data, 0, unit); /* sparse */
                else
                    failed = tiled ? TIFFReadTile(tiff, data, x0, y0, 0, plane) < 0
                                   : TIFFReadScanline(tiff, data, y0, plane) < 0;
                for (uint32_t y = y0; y < page.height && y < y0 + height; y++) {
                    const unsigned char *row = data + (y - y0) * (unit / height);
                    uint64_t *to = page.samples + (size_t)y * page.width * page.channels + plane;
                    for (uint32_t x = x0; x < page.width && x < x0 + width; x++)
                        for (uint32_t s = 0; s < in_row; s++)
                            to[(size_t)x * page.channels + s] =
                                tiff_sample(row, (uint64_t)(x - x0) * in_row + s, page.depth);
                }
            }
    TIFFClose(tiff);
    if (failed) {
        free(page.samples);
        page.samples = NULL;
    }
    return page;
}

/* Read the pixels of a page, numbered from 0, of a file of a supported kind. The caller frees the
 * result. Return NULL if libtiff fails. */
static inline unsigned char *tiff_reference(const char *path, uint32_t number, gf_format *format) {
    AUTO(free) tiff_page page = tiff_decode(path, number);
    if (!page.samples)
        return NULL;
    const bool palette = page.photometric == PHOTOMETRIC_PALETTE;
    const uint32_t max = (uint32_t)((UINT64_C(1) << page.depth) - 1);
    *format = (gf_format){page.width, page.height, palette ? 3 : page.channels,
                          palette            ? page.colors.type
                          : page.depth == 32 ? GF_F32
                          : page.depth == 16 ? GF_U16
                                             : GF_U8,
                          page.alpha};
    unsigned char *pixels = test_zeros(page.height * gf_row_bytes(format));
    for (uint64_t i = 0; i < (uint64_t)page.width * page.height * page.channels; i++) {
        uint32_t v = (uint32_t)page.samples[i];
        for (uint64_t c = 0; palette && c < 3; c++)
            tiff_put_sample(pixels, i * 3 + c, format->type,
                            page.colors.maps[c][v] / page.colors.divisor);
        if (palette)
            continue;
        if (page.photometric == PHOTOMETRIC_MINISWHITE && i % page.channels == 0)
            v = max - v;
        tiff_put_sample(pixels, i, format->type, v * (page.depth < 8 ? 255 / max : 1));
    }
    return pixels;
}

/* Choose a compression, and what libtiff supports with it. */
static inline void tiff_choose_codec(tiff_spec *spec, test_random *random) {
    static const uint16_t codecs[] = {
        COMPRESSION_NONE,     COMPRESSION_NONE,          COMPRESSION_NONE,
        COMPRESSION_LZW,      COMPRESSION_ADOBE_DEFLATE, COMPRESSION_DEFLATE,
        COMPRESSION_PACKBITS, COMPRESSION_ZSTD,          COMPRESSION_LZMA,
        COMPRESSION_JPEG,     COMPRESSION_PIXARLOG,      COMPRESSION_LERC,
        COMPRESSION_WEBP,     COMPRESSION_CCITTFAX4,     COMPRESSION_CCITTFAX3,
        COMPRESSION_CCITTRLE};
    const uint16_t codec = codecs[test_below(random, sizeof codecs / sizeof *codecs)];
    const bool fax = codec == COMPRESSION_CCITTFAX3 || codec == COMPRESSION_CCITTFAX4 ||
                     codec == COMPRESSION_CCITTRLE;
    if (TIFFIsCODECConfigured(codec))
        spec->compression = codec;
    spec->photometric = spec->samples < 3 ? (uint16_t)test_below(random, 2) : PHOTOMETRIC_RGB;
    if (spec->compression == COMPRESSION_JPEG || spec->compression == COMPRESSION_WEBP)
        spec->bits = 8;
    if (spec->compression == COMPRESSION_WEBP) {
        spec->planar = false;
        spec->samples = (uint16_t)(3 + spec->samples % 2);
        spec->photometric = PHOTOMETRIC_RGB;
    }
    if (spec->compression == COMPRESSION_JPEG && spec->samples == 3 && test_below(random, 2) == 0) {
        spec->photometric = PHOTOMETRIC_YCBCR;
        spec->planar = false;
    }
    if (fax || (spec->compression != COMPRESSION_JPEG && spec->compression != COMPRESSION_WEBP &&
                spec->compression != COMPRESSION_PIXARLOG &&
                spec->compression != COMPRESSION_LERC && test_below(random, 4) == 0)) {
        /* One sample of few bits, or a palette. */
        spec->samples = 1;
        spec->bits = (uint16_t)(fax ? 1 : 1u << test_below(random, 4));
        spec->photometric = fax ? PHOTOMETRIC_MINISWHITE : (uint16_t)(test_below(random, 2) * 3);
    }
    /* In other files of this codec, libtiff decodes a strip and its rows differently. */
    if (spec->compression == COMPRESSION_PIXARLOG) {
        spec->planar = spec->big_endian = false;
        spec->samples = (uint16_t)(3 + spec->samples % 2);
        spec->photometric = PHOTOMETRIC_RGB;
    }
}

/* Return a random kind of file that libtiff can write and gpufilter reads. */
static inline tiff_spec tiff_random(test_random *random, uint32_t max_side) {
    static const uint16_t depths[] = {8, 16, 32};
    tiff_spec spec = {.width = 1 + (uint32_t)test_below(random, max_side),
                      .height = 1 + (uint32_t)test_below(random, max_side),
                      .samples = (uint16_t)(1 + test_below(random, 4)),
                      .bits = depths[test_below(random, 3)],
                      .format = SAMPLEFORMAT_UINT,
                      .compression = COMPRESSION_NONE,
                      .predictor = 1,
                      .extra = TIFF_NO_EXTRA,
                      .planar = test_below(random, 3) == 0,
                      .big = test_below(random, 2) == 0,
                      .big_endian = test_below(random, 2) == 0,
                      .reversed = test_below(random, 8) == 0,
                      .colors = (unsigned)test_below(random, 4),
                      .repeated = test_below(random, 2) == 0};
    tiff_choose_codec(&spec, random);
    if (spec.samples == 2 || spec.samples == 4)
        spec.extra = (uint16_t)test_below(random, 3);
    if (spec.bits == 32) {
        spec.format = SAMPLEFORMAT_IEEEFP;
        if (spec.photometric == PHOTOMETRIC_MINISWHITE)
            spec.photometric = PHOTOMETRIC_MINISBLACK;
    }
    const bool predicts = spec.bits >= 8 && (spec.compression == COMPRESSION_LZW ||
                                             spec.compression == COMPRESSION_ADOBE_DEFLATE ||
                                             spec.compression == COMPRESSION_ZSTD);
    if (predicts && test_below(random, 2) == 0)
        spec.predictor =
            spec.bits == 32 && spec.height % 3 ? PREDICTOR_FLOATINGPOINT : PREDICTOR_HORIZONTAL;
    spec.rows_per_strip = 1 + (uint32_t)test_below(random, spec.height + 2);
    if (spec.compression == COMPRESSION_JPEG && spec.rows_per_strip % 16 != 0)
        spec.rows_per_strip += 16 - spec.rows_per_strip % 16;
    if (spec.compression != COMPRESSION_PIXARLOG && test_below(random, 2) == 0) {
        spec.tile_width = 16 * (1 + (uint32_t)test_below(random, 3));
        spec.tile_height = 16 * (1 + (uint32_t)test_below(random, 3));
        spec.sparse = test_below(random, 4) == 0;
    }
    return spec;
}

#endif
