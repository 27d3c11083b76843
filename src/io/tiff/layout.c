/* Loading of libtiff, its handles, and the layout of samples in the directories that it parses. */
#define _GNU_SOURCE /* RTLD_DEFAULT */

#include "io/tiff/layout.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "io/stream/convert.h"

enum {
    MAX_TILES = 1 << 28, /* bytes of tiles, unless those of the image are at least ... */
    TILES_RATIO = 8      /* ... 1/8 of them */
};

/* ---- libtiff --------------------------------------------------------------------------------- */

#ifdef GF_LIBTIFF_LINKED

gf_tiff_library gf_libtiff = {
#define GF_TIFF(name) .name = name,
#include "io/tiff/libtiff.def"
#undef GF_TIFF
};

gf_status gf_tiff_load(const char *file, gf_error *error) {
    (void)file, (void)error;
    return GF_OK;
}

#else

gf_tiff_library gf_libtiff;
static char failure[256]; /* reason why libtiff cannot be loaded; "" if it is */

static const char *const function_names[] = {
#define GF_TIFF(name) #name,
#include "io/tiff/libtiff.def"
#undef GF_TIFF
};

_Static_assert(sizeof gf_libtiff == sizeof function_names, "the struct is an array of pointers");

static void tiff_load(void) {
    /* A wheel contains libtiff under another name, as a dependency of this library. */
    const bool present = dlsym(RTLD_DEFAULT, "TIFFClientOpen");
    void *library = present ? RTLD_DEFAULT : dlopen(GF_LIBTIFF, RTLD_NOW);
    if (!present && !library) {
        gf_error error;
        gf_fail(&error, GF_FAILED, "%s", dlerror());
        memcpy(failure, error.message, sizeof failure - 1);
        return;
    }
    for (size_t i = 0; i < sizeof function_names / sizeof *function_names; i++) {
        void *function = dlsym(library, function_names[i]);
        if (!function)
            (void)snprintf(failure, sizeof failure, "it has no function %s", function_names[i]);
        /* memcpy, because ISO C has no cast from object to function pointers. */
        memcpy((void **)(void *)&gf_libtiff + i, &function, sizeof function);
    }
}

gf_status gf_tiff_load(const char *file, gf_error *error) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, tiff_load);
    return !*failure ? GF_OK
                     : gf_fail(error, GF_FAILED,
                               "%s: TIFF needs " GF_LIBTIFF ": %s; install the package libtiff6",
                               file, failure);
}

#endif

gf_status gf_tiff_read_at(void *context, void *data, size_t size, uint64_t offset,
                          gf_error *error) {
    gf_tiff_file *file = context;
    if (offset > file->size || size > file->size - offset)
        return gf_fail_short(file->input.name, error);
    if (!file->data)
        return gf_input_read_at(&file->input, data, size, offset, error);
    memcpy(data, file->data + offset, size);
    return GF_OK;
}

/* ---- handles of libtiff ---------------------------------------------------------------------- */

static tmsize_t handle_read(thandle_t context, void *data, tmsize_t size) {
    gf_tiff_handle *handle = context;
    const uint64_t end = handle->file->size, rest = handle->offset < end ? end - handle->offset : 0;
    const size_t bytes = (uint64_t)size < rest ? (size_t)size : (size_t)rest;
    if (gf_tiff_read_at(handle->file, data, bytes, handle->offset, &handle->cause))
        return -1;
    handle->offset += bytes;
    return (tmsize_t)bytes;
}

static tmsize_t handle_write(thandle_t context, void *data, tmsize_t size) {
    gf_tiff_handle *handle = context;
    gf_tiff_file *file = handle->file;
    if (handle->offset > file->capacity || (uint64_t)size > file->capacity - handle->offset)
        return 0;
    memcpy(file->data + handle->offset, data, (size_t)size);
    handle->offset += (uint64_t)size;
    file->size = handle->offset > file->size ? handle->offset : file->size;
    return size;
}

static toff_t handle_seek(thandle_t context, toff_t offset, int whence) {
    gf_tiff_handle *handle = context;
    handle->offset = offset + (whence == SEEK_CUR   ? handle->offset
                               : whence == SEEK_END ? handle->file->size
                                                    : 0);
    return handle->offset;
}

static int handle_end(thandle_t context) {
    (void)context;
    return 0;
}

static toff_t handle_size(thandle_t context) {
    return ((gf_tiff_handle *)context)->file->size;
}

/* Return whether a message contains one of the texts, a list that ends with NULL. */
static bool message_has(const char *message, const char *const *texts) {
    for (; *texts; texts++)
        if (strstr(message, *texts))
            return true;
    return false;
}

__attribute__((format(printf, 4, 0))) static int handle_on_message(TIFF *tiff, void *context,
                                                                   const char *module,
                                                                   const char *format,
                                                                   va_list arguments) {
    /* The pixels are correct: a variant of LZW, more rows than are needed, a progressive JPEG,
     * bytes between its segments, irrelevant versions and parameters. */
    static const char *const harmless[] = {"Old-style LZW codes",   "JPEG strip size exceeds",
                                           "with progressive mode", "extraneous bytes",
                                           "unknown JFIF revision", "Unknown Adobe color",
                                           "Invalid SOS",           NULL};
    static const char *const failures[] = {"ailed to allocate", "annot allocate", "No space",
                                           "ut of memory", NULL};
    gf_tiff_handle *handle = context;
    char text[sizeof handle->message] = "";
    (void)tiff, (void)module;
    (void)vsnprintf(text, sizeof text, format, arguments);
    /* libtiff ignores most tags for which it has no memory, but they determine the pixels. If a
     * list cannot grow, libtiff up to 4.7.1 keeps a wrong number of values, or NULL as the list of
     * all tags, and crashes in the same directory or when it closes the handle. */
    handle->without_memory |= message_has(text, failures);
    handle->torn |= strstr(text, "list of custom values") || strstr(text, "fields array");
    if (handle->torn && handle->reading)
        longjmp(handle->left, 1);
    /* Note the row that a message about CCITT data names. libtiff 4.7.1 reads the data again from
     * its start, without codes of ends of lines. */
    const char *at = strstr(text, " at line ");
    const uint64_t row = at ? strtoull(at + strlen(" at line "), NULL, 10) : 0;
    if (at && strstr(text, "without EOL")) {
        handle->end_row = row ? row : UINT64_MAX;
    } else if (at && row < handle->end_row && (handle->rows == 0 || row != handle->last_row)) {
        handle->first_row = handle->rows++ ? handle->first_row : row;
        handle->last_row = row;
    }
    /* Some messages begin with the name that the handle was opened with, which is empty. */
    if ((!handle->message[0] || !handle->end_row) && !message_has(text, harmless))
        memcpy(handle->message, text, sizeof text);
    if (strncmp(handle->message, ": ", 2) == 0)
        memmove(handle->message, handle->message + 2, strlen(handle->message) - 1);
    return 1;
}

void gf_tiff_handle_clear(gf_tiff_handle *handle) {
    handle->message[0] = '\0';
    handle->rows = 0;
    handle->end_row = UINT64_MAX;
    handle->cause = (gf_error){0};
    handle->without_memory = false;
}

gf_status gf_tiff_handle_fail(const gf_tiff_handle *handle, gf_error *error) {
    if (gf_return_error(&handle->cause, error))
        return handle->cause.status;
    if (handle->without_memory)
        return gf_fail(error, GF_FAILED, "%s: out of memory", handle->file->input.name);
    return gf_fail(error, GF_FAILED, "%s: libtiff cannot read the file (%s); get an intact copy",
                   handle->file->input.name,
                   handle->message[0] ? handle->message : "no reason given");
}

gf_status gf_tiff_handle_start(gf_tiff_file *file, const char *mode, gf_tiff_handle *handle) {
    const uint64_t max = file->max_memory < PTRDIFF_MAX ? file->max_memory : PTRDIFF_MAX;
    *handle = (gf_tiff_handle){.file = file};
    TIFFOpenOptions *options = gf_libtiff.TIFFOpenOptionsAlloc();
    handle->without_memory = !options;
    if (!options)
        return GF_FAILED;
    gf_libtiff.TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)max);
    gf_libtiff.TIFFOpenOptionsSetErrorHandlerExtR(options, handle_on_message, handle);
    gf_libtiff.TIFFOpenOptionsSetWarningHandlerExtR(options, handle_on_message, handle);
    handle->tiff =
        gf_libtiff.TIFFClientOpenExt("", mode, handle, handle_read, handle_write, handle_seek,
                                     handle_end, handle_size, NULL, NULL, options);
    gf_libtiff.TIFFOpenOptionsFree(options);
    return handle->tiff ? GF_OK : GF_FAILED;
}

/* Read a directory. Return false if libtiff cannot read all of it. */
static bool handle_read_directory(gf_tiff_handle *handle, uint64_t offset) {
    bool done = false;
    if (!setjmp(handle->left)) {
        handle->reading = true;
        done = gf_libtiff.TIFFSetSubDirectory(handle->tiff, offset);
    }
    handle->reading = false;
    return done && !handle->without_memory;
}

gf_status gf_tiff_handle_open(gf_tiff_file *file, gf_tiff_handle *handle, gf_error *error) {
    const void *text = "", *kinds = "", *red = "", *green = "", *blue = "", *tables = "";
    uint16_t compression = 0, extras = 1;
    uint32_t bytes;
    /* m: do not map the file; O: load offsets when they are needed; c: keep strips as they are; h:
     * do not read the first directory. */
    const bool read = !gf_tiff_handle_start(file, "rmOch", handle) &&
                      handle_read_directory(handle, file->directory);
    TIFF *tiff = handle->tiff;
    if (read) {
        /* libtiff stores NULL, without a message, if it has no memory for a copy of a value. */
        (void)gf_libtiff.TIFFGetField(tiff, TIFFTAG_COMPRESSION, &compression);
        (void)gf_libtiff.TIFFGetField(tiff, TIFFTAG_IMAGEDESCRIPTION, &text);
        (void)gf_libtiff.TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &extras, &kinds);
        (void)gf_libtiff.TIFFGetField(tiff, TIFFTAG_COLORMAP, &red, &green, &blue);
        if (compression == COMPRESSION_JPEG)
            (void)gf_libtiff.TIFFGetField(tiff, TIFFTAG_JPEGTABLES, &bytes, &tables);
        handle->without_memory = !text || (!kinds && extras) || !red || !green || !blue || !tables;
    }
    if (!read || handle->without_memory) {
        gf_tiff_handle_close(handle);
        return gf_tiff_handle_fail(handle, error);
    }
    /* JPEG data of another photometric interpretation than YCbCr is not converted. */
    if (compression == COMPRESSION_JPEG)
        (void)gf_libtiff.TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    gf_tiff_handle_clear(handle);
    return GF_OK;
}

void gf_tiff_handle_close(gf_tiff_handle *handle) {
    if (handle->tiff && !handle->torn)
        gf_libtiff.TIFFClose(handle->tiff);
    handle->tiff = NULL;
}

/* ---- the layout of samples ------------------------------------------------------------------- */

static gf_status layout_fail(const gf_tiff_file *file, const char *what, const char *remedy,
                             gf_error *error) {
    return gf_fail(error, GF_FAILED,
                   "%s: a TIFF with %s is not supported; convert it first, e.g. with %s",
                   file->input.name, what, remedy);
}

static gf_status layout_fail_damaged(const gf_tiff_file *file, const char *what, gf_error *error) {
    return gf_fail(error, GF_FAILED, "%s: the TIFF is damaged (%s); get an intact copy",
                   file->input.name, what);
}

/* Return the name of the compression, as libtiff has it. */
static const char *layout_codec(uint16_t compression) {
    const TIFFCodec *codec = gf_libtiff.TIFFFindCODEC(compression);
    const char *name = codec ? codec->name : "unknown";
    return compression == COMPRESSION_ADOBE_DEFLATE ? "Deflate"
           : compression == COMPRESSION_NONE        ? "uncompressed"
                                                    : name;
}

/* Check that libtiff has the codec. Those that are rarely used, and less tested than the others,
 * are for trusted files. */
static gf_status layout_check_codec(const gf_tiff_file *file, const gf_tiff_layout *layout,
                                    bool trusted, gf_error *error) {
    const uint16_t compression = layout->compression;
    static const uint16_t usual[] = {
        COMPRESSION_LZW,  COMPRESSION_PACKBITS, COMPRESSION_DEFLATE, COMPRESSION_ZSTD,
        COMPRESSION_JPEG, COMPRESSION_LERC,     COMPRESSION_NONE,    COMPRESSION_ADOBE_DEFLATE};
    if (compression == COMPRESSION_OJPEG)
        return layout_fail(file, "old-style JPEG compression", "tiff2rgba -n in.tif out.tif",
                           error);
    trusted = trusted || layout->fax;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        trusted = trusted || compression == usual[i];
    const bool known = gf_libtiff.TIFFIsCODECConfigured(compression);
    if (known && trusted)
        return GF_OK;
    return gf_fail(error, GF_FAILED, "%s: %.24s compression (%u) is %s", file->input.name,
                   layout_codec(compression), (unsigned)compression,
                   known ? "decoded only with --no-sandbox, for trusted files; or convert it with "
                           "tiffcp -c zip"
                         : "not supported by the installed libtiff; convert it with a program that "
                           "reads it");
}

/* Check photometric interpretations. JPEG converts YCbCr to RGB. If there is none, guess it as
 * libtiff does. */
static gf_status layout_set_colors(const gf_tiff_handle *handle, gf_tiff_layout *layout,
                                   gf_error *error) {
    static const char gdal[] = "gdal_translate in.tif out.tif",
                      vips[] = "vips colourspace in.tif out.tif srgb",
                      rgba[] = "tiff2rgba -n in.tif out.tif";
    static const struct {
        uint16_t photometric;
        const char *name, *remedy;
    } names[] = {
        {PHOTOMETRIC_MASK, "a transparency mask", gdal},
        {PHOTOMETRIC_SEPARATED, "CMYK or other ink colours", vips},
        {PHOTOMETRIC_YCBCR, "YCbCr colours that are planar or without JPEG compression", rgba},
        {PHOTOMETRIC_CIELAB, "CIE L*a*b* colours", vips},
        {PHOTOMETRIC_ICCLAB, "ICC L*a*b* colours", vips},
        {PHOTOMETRIC_ITULAB, "ITU L*a*b* colours", vips},
        {PHOTOMETRIC_CFA, "a colour filter array", gdal},
        {PHOTOMETRIC_LOGL, "LogL samples", rgba},
        {PHOTOMETRIC_LOGLUV, "LogLuv samples", rgba}};
    const gf_tiff_file *file = handle->file;
    const uint64_t colors = layout->samples - file->tags.extras;
    char text[64];
    if (!gf_libtiff.TIFFGetField(handle->tiff, TIFFTAG_PHOTOMETRIC, &layout->photometric)) {
        layout->photometric = colors == 3   ? PHOTOMETRIC_RGB
                              : layout->fax ? PHOTOMETRIC_MINISWHITE
                                            : PHOTOMETRIC_MINISBLACK;
        if (colors != 1 && colors != 3)
            return layout_fail(file, "undeclared colours",
                               "tiffset -s 262 1 FILE for grey, or 2 for RGB", error);
    }
    layout->inverted = layout->photometric == PHOTOMETRIC_MINISWHITE;
    layout->palette = layout->photometric == PHOTOMETRIC_PALETTE;
    if (layout->photometric <= PHOTOMETRIC_PALETTE ||
        (layout->photometric == PHOTOMETRIC_YCBCR && layout->compression == COMPRESSION_JPEG &&
         layout->planes == 1))
        return GF_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].photometric == layout->photometric)
            return layout_fail(file, names[i].name, names[i].remedy, error);
    snprintf(text, sizeof text, "photometric interpretation %u", (unsigned)layout->photometric);
    return layout_fail(file, text, gdal, error);
}

/* Check the type of samples: 1, 2 and 4 bits for one sample per pixel, 9 to 15 bits, which become
 * u16, and whole bytes. Those that are not u8, u16 or f32 are `raw`. */
static gf_status layout_check_type(const gf_tiff_file *file, gf_tiff_layout *layout,
                                   uint16_t sample_format, gf_format *format, gf_error *error) {
    const uint32_t bits = layout->bits;
    char text[64];
    layout->kind = sample_format == SAMPLEFORMAT_INT      ? 'i'
                   : sample_format == SAMPLEFORMAT_IEEEFP ? 'f'
                                                          : 'u';
    if (sample_format == SAMPLEFORMAT_COMPLEXINT || sample_format == SAMPLEFORMAT_COMPLEXIEEEFP)
        return layout_fail(file, "complex samples", "gdal_translate -ot Float32 in.tif out.tif",
                           error);
    if (sample_format > SAMPLEFORMAT_COMPLEXIEEEFP)
        return layout_fail_damaged(file, "unknown sample format", error);
    if (layout->fax && bits != 1)
        return layout_fail_damaged(file, "CCITT data with more than one bit per sample", error);
    const bool whole = bits == 16 || bits == 32 || bits == 64 || (bits == 8 && layout->kind != 'f');
    const bool small = bits == 1 || bits == 2 || bits == 4, packed = bits > 8 && bits < 16;
    const bool known = layout->palette       ? small || bits == 8
                       : layout->kind == 'u' ? whole || packed || (small && layout->samples == 1)
                                             : whole;
    if (!known || (layout->palette && layout->kind != 'u')) {
        snprintf(text, sizeof text, "%s%" PRIu32 "-bit %s",
                 layout->kind == 'i'   ? "signed "
                 : layout->kind == 'f' ? "floating-point "
                                       : "",
                 bits, layout->palette ? "palette indices" : "samples");
        return layout_fail(file, text, "gdal_translate -ot Float32 in.tif out.tif, or UInt16",
                           error);
    }
    layout->bytes = bits < 8 ? 1 : packed ? 2 : bits / 8;
    layout->raw = !gf_samples_type(&(gf_samples){.kind = layout->kind, .bytes = layout->bytes},
                                   &format->type);
    return GF_OK;
}

/* Set the channels from the number of samples: colours, and up to one extra sample. */
static gf_status layout_set_channels(const gf_tiff_file *file, gf_tiff_layout *layout,
                                     gf_format *format, gf_error *error) {
    const uint32_t colors =
        layout->photometric == PHOTOMETRIC_RGB || layout->photometric == PHOTOMETRIC_YCBCR ? 3 : 1;
    if (layout->samples < colors)
        return layout_fail_damaged(file, "too few samples per pixel", error);
    if (layout->palette && layout->samples > 1)
        return layout_fail(file, "palette and extra samples", "tiff2rgba -n in.tif out.tif", error);
    layout->several = layout->samples > colors + 1;
    layout->raw = layout->raw || layout->several;
    if (layout->inverted && (layout->raw || layout->kind == 'f'))
        return layout_fail(file, "samples of this type in which 0 is white",
                           layout->kind == 'f' ? "gdal_translate -ot Float32 -scale 0 1 1 0 -co "
                                                 "PHOTOMETRIC=MINISBLACK in.tif out.tif"
                                               : "tiffset -s 262 1 FILE, to keep its values",
                           error);
    layout->associated = layout->samples == colors + 1 && layout->extra == EXTRASAMPLE_ASSOCALPHA;
    format->channels = layout->palette ? 3 : layout->samples;
    format->alpha = layout->associated ||
                    (layout->samples == colors + 1 && layout->extra == EXTRASAMPLE_UNASSALPHA);
    return GF_OK;
}

/* Read the colours. A palette of 16-bit entries that are 8-bit values in disguise, times 257, times
 * 256 or as they are, becomes u8, any other u16: the expansion is lossless. */
static gf_status layout_set_palette(const gf_tiff_handle *handle, gf_tiff_layout *layout,
                                    gf_format *format, gf_error *error) {
    const uint16_t *maps[3];
    const size_t entries = (size_t)1 << layout->bits;
    bool times257 = true, times256 = true, times1 = true;
    if (!gf_libtiff.TIFFGetField(handle->tiff, TIFFTAG_COLORMAP, &maps[0], &maps[1], &maps[2]))
        return layout_fail_damaged(handle->file, "no colour map", error);
    for (size_t i = 0; i < entries * 3; i++) {
        const uint16_t v = maps[i % 3][i / 3];
        times257 = times257 && v % 257 == 0;
        times256 = times256 && v % 256 == 0;
        times1 = times1 && v < 256;
    }
    const bool deep = !times257 && !times256 && !times1;
    format->type = deep ? GF_U16 : GF_U8;
    for (size_t i = 0; i < entries * 3; i++) {
        const uint16_t v = maps[i % 3][i / 3];
        if (deep)
            memcpy(&layout->colors[i / 3][i % 3 * 2], &v, sizeof v);
        else
            layout->colors[i / 3][i % 3] = (unsigned char)(times1 ? v : v >> 8);
    }
    return GF_OK;
}

/* Choose how units are decoded. Determine their sizes, and check that libtiff has the same ones: a
 * codec may differ. */
static gf_status layout_set_units(const gf_tiff_handle *handle, gf_tiff_layout *layout,
                                  const gf_format *format, gf_error *error) {
    TIFF *tiff = handle->tiff;
    const uint32_t bits = layout->bits;
    const bool deflate = layout->compression == COMPRESSION_ADOBE_DEFLATE ||
                         layout->compression == COMPRESSION_DEFLATE;
    const bool horizontal = layout->predictor == PREDICTOR_HORIZONTAL, whole = bits % 8 == 0,
               floating = layout->predictor == PREDICTOR_FLOATINGPOINT;
    uint32_t width = (uint32_t)format->width, rows = 0;
    layout->tiled = gf_libtiff.TIFFIsTiled(tiff);
    layout->step = layout->planes == 1 ? layout->samples : 1;
    layout->inflates =
        deflate &&
        (layout->predictor == PREDICTOR_NONE ||
         (layout->step <= GF_MAX_CHANNELS && ((horizontal && whole && bits <= 32) ||
                                              (floating && layout->kind == 'f' && bits == 32))));
    layout->direct = !layout->inflates && !layout->fax && !layout->tiled && layout->planes == 1 &&
                     whole && !layout->palette;
    if (layout->tiled) {
        if (!gf_libtiff.TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &width) ||
            !gf_libtiff.TIFFGetField(tiff, TIFFTAG_TILELENGTH, &rows))
            width = 0;
    } else {
        (void)gf_libtiff.TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &rows);
        if (rows > format->height)
            rows = (uint32_t)format->height;
    }
    if (width == 0 || rows == 0)
        return layout_fail_damaged(handle->file, "empty strips or tiles", error);
    layout->unit_width = width;
    layout->unit_rows = rows;
    layout->across = gf_ceil_div(format->width, width);
    layout->down = gf_ceil_div(format->height, rows);
    layout->unit_row_bytes = gf_ceil_div((uint64_t)width * layout->step * bits, 8);
    const uint64_t found =
        layout->tiled ? gf_libtiff.TIFFTileRowSize64(tiff) : gf_libtiff.TIFFScanlineSize64(tiff);
    const uint64_t units =
        layout->tiled ? gf_libtiff.TIFFNumberOfTiles(tiff) : gf_libtiff.TIFFNumberOfStrips(tiff);
    /* No product of sizes overflows below. */
    if (layout->unit_row_bytes > (UINT64_MAX >> 16) / layout->unit_rows ||
        found != layout->unit_row_bytes || units != layout->across * layout->down * layout->planes)
        return layout_fail_damaged(handle->file, "wrong sizes of strips or tiles", error);
    if (handle->file->tags.located < units)
        return layout_fail_damaged(handle->file, "fewer offsets or sizes than strips or tiles",
                                   error);
    const double stored = (double)units * (double)(layout->unit_rows * layout->unit_row_bytes),
                 used = (double)(format->width * format->height) / 8 *
                        (double)(layout->samples * layout->bits);
    return stored > MAX_TILES && stored > TILES_RATIO * used
               ? layout_fail(handle->file, "tiles far larger than the image",
                             "gdal_translate in.tif out.tif", error)
               : GF_OK;
}

gf_status gf_tiff_layout_read(const gf_tiff_handle *handle, const gf_limits *limits,
                              gf_tiff_layout *layout, gf_format *format, gf_error *error) {
    gf_tiff_file *file = handle->file;
    TIFF *tiff = handle->tiff;
    uint32_t width = 0, height = 0, depth = 1;
    uint16_t planar = PLANARCONFIG_CONTIG, fill = FILLORDER_MSB2LSB;
    uint16_t sample_format = SAMPLEFORMAT_UINT, extras = 0, *extra = NULL;
    (void)gf_libtiff.TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
    (void)gf_libtiff.TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
    (void)gf_libtiff.TIFFGetFieldDefaulted(tiff, TIFFTAG_IMAGEDEPTH, &depth);
    (void)gf_libtiff.TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &layout->bits);
    (void)gf_libtiff.TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &layout->samples);
    (void)gf_libtiff.TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &planar);
    (void)gf_libtiff.TIFFGetFieldDefaulted(tiff, TIFFTAG_FILLORDER, &fill);
    (void)gf_libtiff.TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &sample_format);
    (void)gf_libtiff.TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &layout->compression);
    (void)gf_libtiff.TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &extras, &extra);
    layout->fax = (layout->compression >= COMPRESSION_CCITTRLE &&
                   layout->compression <= COMPRESSION_CCITTFAX4) ||
                  layout->compression == COMPRESSION_CCITTRLEW;
    gf_status status = layout_check_codec(file, layout, limits->no_sandbox, error);
    if (status)
        return status;
    if (!gf_libtiff.TIFFGetField(tiff, TIFFTAG_PREDICTOR, &layout->predictor))
        layout->predictor = PREDICTOR_NONE;
    layout->planes = planar == PLANARCONFIG_SEPARATE ? layout->samples : 1;
    layout->extra = extras > 0 ? extra[0] : EXTRASAMPLE_UNSPECIFIED;
    layout->scaled = limits->as == GF_DEPTH_INPUT;
    layout->little = !gf_libtiff.TIFFIsBigEndian(tiff);
    layout->reversed = fill == FILLORDER_LSB2MSB;
    format->width = width;
    format->height = height;
    const gf_format pixels = {width, height, 1, GF_U8, false};
    if (depth > 1)
        return layout_fail(file, "several slices (ImageDepth)", "gdal_translate in.tif out.tif",
                           error);
    if ((status = layout_set_colors(handle, layout, error)) ||
        (status = layout_check_type(file, layout, sample_format, format, error)) ||
        (status = layout_set_channels(file, layout, format, error)) ||
        (layout->palette && (status = layout_set_palette(handle, layout, format, error))) ||
        (status = gf_check_pixels(layout->raw ? &pixels : format, limits, file->input.name, error)))
        return status;
    if (layout->raw) {
        format->channels = layout->samples * layout->bytes;
        format->type = GF_U8;
    }
    return layout_set_units(handle, layout, format, error);
}

void gf_tiff_layout_describe(const gf_tiff_layout *layout, uint64_t page, uint64_t pages,
                             char *text, size_t size) {
    const bool extra = layout->samples % 2 == 0 && !layout->several;
    const char *colors = layout->palette       ? "palette"
                         : layout->inverted    ? "grey, 0 is white"
                         : layout->samples < 3 ? "grey"
                                               : "RGB";
    char units[64] = "strips", predictor[24] = "", pages_text[80] = "";
    if (layout->tiled)
        snprintf(units, sizeof units, "tiles %" PRIu64 "x%" PRIu64, layout->unit_width,
                 layout->unit_rows);
    if (layout->predictor != PREDICTOR_NONE)
        snprintf(predictor, sizeof predictor, ", predictor %u", (unsigned)layout->predictor);
    if (pages > 1)
        snprintf(pages_text, sizeof pages_text, ", page %" PRIu64 " of %" PRIu64 "%s", page, pages,
                 pages < GF_TIFF_PAGES_COUNTED ? "" : " or more");
    snprintf(text, size, "%" PRIu32 "-bit %s%s%s, %s, %s%s%s%s", layout->bits,
             layout->kind == 'f'   ? "float "
             : layout->kind == 'i' ? "signed "
                                   : "",
             colors,
             !extra                                    ? ""
             : layout->associated                      ? " and associated alpha"
             : layout->extra == EXTRASAMPLE_UNASSALPHA ? " and alpha"
                                                       : " and data",
             units, layout_codec(layout->compression), predictor,
             layout->planes > 1 ? ", planar" : "", pages_text);
}
