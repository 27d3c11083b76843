/* Damage in TIFF files. The data of a strip or tile is cut, a part of it is set to zero, or a bit
 * of it is flipped: the reader must fail, report the damage, or return the pixels of the intact
 * file. A compression without a checksum says in `unnoticed` which damage its reader cannot notice;
 * a cut is always noticed. To test another compression, add a line to `cases`.
 *
 * Then rows of faxes, incomplete tables of strips, missing tags, and limits of time. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "io/codec.h"
#include "io/codecs.h"
#include "io/tiff/layout.h"
#include "io_util.h"
#include "tiff_file.h"

enum { CUT, ZERO, FLIP, KINDS };
enum { NO_ZERO = 1 << ZERO, NO_FLIP = 1 << FLIP, NO_CHECKSUM = NO_ZERO | NO_FLIP };

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct damage_image {
    unsigned char *pixels; /* NULL: the reader has failed */
    gf_format format;
    char damage[192];
} damage_image;

static damage_image read_file(gf_limits limits) {
    damage_image image = {0};
    AUTO(metadata) gf_metadata metadata = {0};
    limits.no_sandbox = true;
    (void)load_image(in_directory("x.tif"), &limits, 3, &image.format, &image.pixels, &metadata,
                     &why);
    memcpy(image.damage, metadata.remarks.damage, sizeof image.damage);
    return image;
}

static bool same_pixels(const damage_image *a, const damage_image *b) {
    return a->pixels && b->pixels && gf_format_equal(&a->format, &b->format) &&
           memcmp(a->pixels, b->pixels, gf_row_bytes(&a->format) * a->format.height) == 0;
}

static void assert_refused(const gf_limits *limits, const char *message) {
    assert_open_fails(in_directory("x.tif"), limits, message);
}

/* ---- damage in every compression ------------------------------------------------------------- */

typedef struct damage_case {
    const char *name;
    uint16_t compression; /* written by libtiff; 0: by the project */
    unsigned unnoticed;   /* bits of the kinds of damage that a reader cannot notice */
    uint16_t samples, bits, photometric;
    uint32_t options; /* of Group 3 */
    bool tiled;
} damage_case;

static const damage_case cases[] = {
    {"none", COMPRESSION_NONE, NO_CHECKSUM, 3, 8, PHOTOMETRIC_RGB, 0, false},
    {"none, tile", COMPRESSION_NONE, NO_CHECKSUM, 1, 16, PHOTOMETRIC_MINISBLACK, 0, true},
    {"LZW", COMPRESSION_LZW, NO_CHECKSUM, 3, 8, PHOTOMETRIC_RGB, 0, false},
    {"LZW, tile", COMPRESSION_LZW, NO_CHECKSUM, 1, 16, PHOTOMETRIC_MINISBLACK, 0, true},
    {"PackBits", COMPRESSION_PACKBITS, NO_CHECKSUM, 3, 8, PHOTOMETRIC_RGB, 0, false},
    {"PackBits, tile", COMPRESSION_PACKBITS, NO_CHECKSUM, 1, 8, PHOTOMETRIC_MINISBLACK, 0, true},
    {"Deflate", COMPRESSION_ADOBE_DEFLATE, 0, 3, 8, PHOTOMETRIC_RGB, 0, false},
    {"Deflate, tile", COMPRESSION_ADOBE_DEFLATE, 0, 1, 32, PHOTOMETRIC_MINISBLACK, 0, true},
    /* libtiff writes no checksum. */
    {"Zstandard of libtiff", COMPRESSION_ZSTD, NO_CHECKSUM, 3, 8, PHOTOMETRIC_RGB, 0, false},
    {"Zstandard", 0, 0, 3, 8, PHOTOMETRIC_RGB, 0, false},
    {"Zstandard, u16", 0, 0, 1, 16, PHOTOMETRIC_MINISBLACK, 0, false},
    {"JPEG", COMPRESSION_JPEG, NO_CHECKSUM, 1, 8, PHOTOMETRIC_MINISBLACK, 0, false},
    {"JPEG, YCbCr, tile", COMPRESSION_JPEG, NO_CHECKSUM, 3, 8, PHOTOMETRIC_YCBCR, 0, true},
    /* Almost every sequence of codes is valid. */
    {"CCITT RLE", COMPRESSION_CCITTRLE, NO_CHECKSUM, 1, 1, PHOTOMETRIC_MINISWHITE, 0, false},
    {"CCITT G3", COMPRESSION_CCITTFAX3, NO_CHECKSUM, 1, 1, PHOTOMETRIC_MINISWHITE, 0, false},
    {"CCITT G3, two dimensions", COMPRESSION_CCITTFAX3, NO_CHECKSUM, 1, 1, PHOTOMETRIC_MINISWHITE,
     GROUP3OPT_2DENCODING, false},
    {"CCITT G3, tile", COMPRESSION_CCITTFAX3, NO_CHECKSUM, 1, 1, PHOTOMETRIC_MINISBLACK, 0, true},
    {"CCITT G4", COMPRESSION_CCITTFAX4, NO_CHECKSUM, 1, 1, PHOTOMETRIC_MINISWHITE, 0, false},
    {"CCITT G4, tile", COMPRESSION_CCITTFAX4, NO_CHECKSUM, 1, 1, PHOTOMETRIC_MINISBLACK, 0, true},
    {"LERC", COMPRESSION_LERC, 0, 1, 8, PHOTOMETRIC_MINISBLACK, 0, false},
    {"LERC, tile", COMPRESSION_LERC, 0, 1, 32, PHOTOMETRIC_MINISBLACK, 0, true},
    {"WebP", COMPRESSION_WEBP, NO_CHECKSUM, 3, 8, PHOTOMETRIC_RGB, 0, false},
};

/* Return samples with runs, slopes and noise; noise for u16; bits of rectangles for a fax. */
static unsigned char *draw(const damage_case *kind, size_t size) {
    unsigned char *samples = test_alloc(size);
    uint32_t seed = 3;
    for (size_t i = 0; i < size; i++) {
        const size_t step = i / 7;
        const float value = (float)(step + next_random(&seed) % 5);
        const unsigned v = kind->bits == 1    ? (i / 96 % 3 ? 0xffu << i % 6 : 0x3c)
                           : kind->bits == 16 ? next_random(&seed)
                           : i % 111 < 36     ? 200
                                              : (unsigned)(2 * i / 9) + next_random(&seed) % 9;
        samples[i] = (unsigned char)(v & 0xff);
        if (kind->bits == 32 && i % 4 == 3)
            memcpy(samples + i - 3, &value, sizeof value);
    }
    return samples;
}

/* Write an image in one strip or tile. Return false if libtiff has no such codec. */
static bool write_case(const damage_case *kind, uint32_t width, uint32_t height) {
    const uint32_t side = 48;
    const uint64_t row = ((kind->tiled ? side : width) * kind->samples * kind->bits + 7) / 8;
    const size_t size = (size_t)(row * (kind->tiled ? side : height));
    AUTO(free) unsigned char *samples = draw(kind, size);
    if (!kind->compression) {
        const gf_format format = {width, height, kind->samples, kind->bits == 8 ? GF_U8 : GF_U16,
                                  false};
        assert_ok(save_image(in_directory("x.tif"), &format, samples, NULL,
                             &(gf_file_options){.write.tiff_compression = "zstd", .force = true},
                             5));
        return true;
    }
    const tiff_spec spec = {.width = width,
                            .height = height,
                            .samples = kind->samples,
                            .bits = kind->bits,
                            .format = kind->bits == 32 ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT,
                            .photometric = kind->photometric,
                            .compression = kind->compression,
                            .extra = TIFF_NO_EXTRA,
                            .tile_width = kind->tiled ? side : 0,
                            .tile_height = kind->tiled ? side : 0,
                            .rows_per_strip = height,
                            .fax_options = kind->options};
    if (!TIFFIsCODECConfigured(kind->compression))
        return false;
    TIFF *tiff = tiff_begin(in_directory("x.tif"), &spec);
    assert_true((kind->tiled ? TIFFWriteEncodedTile : TIFFWriteEncodedStrip)(tiff, 0, samples,
                                                                             (tmsize_t)size) > 0);
    TIFFClose(tiff);
    return true;
}

/* Counts of the damaged files of one kind of damage. */
typedef struct damage_count {
    unsigned refused, reported, same, silent;
    size_t first; /* position of the first silent one */
} damage_count;

/* Read the changed file. The result is the same for any number of threads. */
static void damage_try(const damage_image *intact, size_t at, damage_count *count) {
    AUTO(free) damage_image other = read_file((gf_limits){.threads = 3, .segment = 100});
    AUTO(free) damage_image image = read_file((gf_limits){0});
    assert_int_equal(!image.pixels, !other.pixels);
    assert_string_equal(image.damage, other.damage);
    if (!image.pixels)
        assert_message(&why, "x.tif: rows 1 to ");
    else
        assert_true(same_pixels(&image, &other));
    if (!image.pixels)
        count->refused++;
    else if (same_pixels(&image, intact))
        count->same++;
    else if (image.damage[0])
        count->reported++;
    else if (count->silent++ == 0)
        count->first = at;
}

/* Damage the data in all ways of one kind: at up to 100 positions, and at each of the first and
 * last 20, there in all bits of the byte. */
static damage_count damage_all(const damage_case *kind, int how, const damage_image *intact,
                               const unsigned char *data, size_t size) {
    static const size_t zeros[] = {1, 8, 100};
    AUTO(free) unsigned char *changed = test_alloc(size);
    memcpy(changed, data, size);
    unsigned char *sizes = tiff_entry_of(changed, kind->tiled ? 325 : 279) + 8;
    const uint32_t start = gf_little32(tiff_entry_of(changed, kind->tiled ? 324 : 273) + 8);
    const size_t bytes = gf_little32(sizes), step = (bytes / 100 + 1) * test_stride(4, 1);
    damage_count count = {0};
    bool edge;
    for (size_t at = how == CUT; at < bytes; at += edge ? 1 : step) {
        const size_t left = bytes - at, wanted = zeros[at / step % 3];
        edge = at < 20 || left <= 20;
        for (size_t bit = 0; bit < (how == FLIP && edge ? 8 : 1); bit++) {
            if (how == CUT)
                gf_put_little32(sizes, (uint32_t)at);
            if (how == ZERO)
                memset(changed + start + at, 0, wanted < left ? wanted : left);
            if (how == FLIP)
                changed[start + at] ^= (unsigned char)(1 << (at / step + bit) % 8);
            if (memcmp(changed, data, size) != 0) {
                put_bytes(in_directory("x.tif"), changed, size);
                damage_try(intact, at, &count);
            }
            memcpy(changed, data, size);
        }
    }
    return count;
}

TEST(notices_damage_in_every_compression) {
    static const char *const names[] = {"cut", "zero", "flip"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size;
        if (!write_case(&cases[i], 37, 29))
            continue;
        AUTO(free) unsigned char *data = test_bytes(in_directory("x.tif"), &size);
        AUTO(free) damage_image intact = read_file((gf_limits){0});
        if (!intact.pixels || intact.damage[0])
            fail_msg("%s: the intact file: %s%s", cases[i].name, why.message, intact.damage);
        for (int how = 0; how < KINDS; how++) {
            const damage_count count = damage_all(&cases[i], how, &intact, data, size);
            print_message("%-26s %-4s refused %3u, reported %3u, same pixels %3u, silent %3u\n",
                          cases[i].name, names[how], count.refused, count.reported, count.same,
                          count.silent);
            if (count.silent && !(cases[i].unnoticed >> how & 1))
                fail_msg("%s: %s is not noticed in %u files, first at byte %zu", cases[i].name,
                         names[how], count.silent, count.first);
        }
    }
}

/* ---- rows of a fax --------------------------------------------------------------------------- */

enum { FAX_WIDTH = 200, FAX_ROWS = 60 };

static void write_fax(uint16_t compression, uint32_t options, uint32_t rows_per_strip) {
    unsigned char row[FAX_WIDTH / 8];
    const tiff_spec spec = {.width = FAX_WIDTH,
                            .height = FAX_ROWS,
                            .samples = 1,
                            .bits = 1,
                            .format = SAMPLEFORMAT_UINT,
                            .photometric = PHOTOMETRIC_MINISWHITE,
                            .compression = compression,
                            .extra = TIFF_NO_EXTRA,
                            .rows_per_strip = rows_per_strip,
                            .fax_options = options};
    TIFF *tiff = tiff_begin(in_directory("x.tif"), &spec);
    for (uint32_t y = 0; y < FAX_ROWS; y++) {
        for (uint32_t x = 0; x < sizeof row; x++)
            row[x] = (unsigned char)((x + y / 4) % 5 ? 0 : 0x7e << y % 3);
        assert_true(TIFFWriteScanline(tiff, row, y, 0) > 0);
    }
    TIFFClose(tiff);
}

/* Check the report of a file, or the failure if `message` is one, for one and several threads, and
 * that --strict fails. */
static void assert_damage(const char *message, bool read) {
    for (uint32_t threads = 1; threads <= 3; threads++) {
        gf_limits limits = {.threads = threads, .segment = 100};
        AUTO(free) damage_image image = read_file(limits);
        if (!read || !image.pixels)
            assert_message(&why, message);
        else if (!strstr(image.damage, message))
            fail_msg("'%s' is not in '%s'", message, image.damage);
        assert_int_equal(read, image.pixels != NULL);
        limits.strict = true;
        AUTO(free) damage_image strict = read_file(limits);
        assert_null(strict.pixels);
        assert_message(&why, message);
    }
}

static const struct {
    uint16_t compression;
    uint32_t options;
} faxes[] = {{COMPRESSION_CCITTRLE, 0},
             {COMPRESSION_CCITTFAX3, 0},
             {COMPRESSION_CCITTFAX3, GROUP3OPT_FILLBITS},
             {COMPRESSION_CCITTFAX3, GROUP3OPT_2DENCODING},
             {COMPRESSION_CCITTFAX4, 0}};

/* The data ends some rows before the strip. */
TEST(counts_missing_rows_of_a_fax) {
    for (size_t i = 0; i < sizeof faxes / sizeof *faxes; i++)
        for (uint32_t missing = 1; missing <= 2 * FAX_ROWS; missing += missing < 3 ? 1 : 29) {
            const uint32_t rows = FAX_ROWS + missing;
            char text[80];
            write_fax(faxes[i].compression, faxes[i].options, FAX_ROWS);
            AUTO(free) damage_image intact = read_file((gf_limits){0});
            tiff_patch(in_directory("x.tif"), TIFFTAG_IMAGELENGTH, rows);
            tiff_patch(in_directory("x.tif"), TIFFTAG_ROWSPERSTRIP, rows);
            snprintf(text, sizeof text, "%u of %u rows of the fax are damaged", missing, rows);
            if (missing > FAX_ROWS)
                snprintf(text, sizeof text, "rows of the fax are not readable");
            assert_damage(text, missing <= FAX_ROWS);
            AUTO(free) damage_image image = read_file((gf_limits){0});
            for (uint32_t k = 0; image.pixels && k < rows * FAX_WIDTH; k++)
                assert_int_equal(image.pixels[k],
                                 k < FAX_ROWS * FAX_WIDTH ? intact.pixels[k] : 255);
        }
}

static void zero_strips(uint32_t first, uint32_t count) {
    size_t size;
    AUTO(free) unsigned char *data = test_bytes(in_directory("x.tif"), &size);
    for (uint64_t bytes; count > 0; count--) {
        unsigned char *strip = tiff_unit(in_directory("x.tif"), data, first + count - 1, &bytes);
        memset(strip + 2, 0, bytes - 2);
    }
    put_bytes(in_directory("x.tif"), data, size);
}

/* A strip of one row may be damaged: half of the image must not be. */
TEST(counts_strips_of_one_row) {
    for (size_t i = 0; i < sizeof faxes / sizeof *faxes; i++) {
        write_fax(faxes[i].compression, faxes[i].options, 1);
        zero_strips(7, 2);
        assert_damage("2 of 60 rows of the fax are damaged", true);
        zero_strips(10, 29);
        assert_damage("31 of 60 rows of the fax are damaged; get an intact copy", false);
        write_fax(faxes[i].compression, faxes[i].options, 30);
        zero_strips(1, 1);
        assert_damage("rows 31 to 60 are damaged (", false);
    }
}

/* Rows are counted once, although two passes read them. */
TEST(counts_rows_once) {
    unsigned char rows[FAX_ROWS * FAX_WIDTH];
    write_fax(COMPRESSION_CCITTFAX3, 0, 10);
    tiff_patch(in_directory("x.tif"), TIFFTAG_IMAGELENGTH, FAX_ROWS - 5);
    zero_strips(5, 1);
    assert_damage("rows 51 to 55", false);
    write_fax(COMPRESSION_CCITTFAX3, 0, 1);
    zero_strips(50, 3);
    AUTO(source) gf_source *source = open_source(in_directory("x.tif"), &(gf_limits){.segment = 1});
    for (int pass = 0; pass < 2; pass++) {
        source->ops->seek(source, 0);
        assert_ok(source->ops->read(source, rows, FAX_WIDTH, FAX_ROWS, NULL));
    }
    assert_ok(source->ops->finish(source, NULL));
    assert_non_null(strstr(source->metadata.remarks.damage, "3 of 60 rows"));
}

/* Remove the codes of ends of lines: at least 11 zeros and a one. */
static void remove_ends_of_lines(unsigned char *data, size_t size) {
    enum { CODE = 12 };
    AUTO(free) unsigned char *bits = test_alloc(8 * size + 8);
    size_t count = 0, zeros = 0;
    for (size_t i = 0; i < 8 * size; i++) {
        const unsigned char bit = data[i / 8] >> (7 - i % 8) & 1;
        bits[count++] = bit;
        if (bit && zeros >= CODE - 1)
            count -= CODE;
        zeros = bit ? 0 : zeros + 1;
    }
    memset(data, 0, size);
    for (size_t i = 0; i < count; i++)
        data[i / 8] |= (unsigned char)(bits[i] << (7 - i % 8));
}

TEST(reads_a_fax_without_ends_of_lines) {
    size_t size;
    for (uint32_t strip = 20; strip <= FAX_ROWS; strip += 40) {
        write_fax(COMPRESSION_CCITTFAX3, 0, strip);
        AUTO(free) damage_image intact = read_file((gf_limits){0});
        AUTO(free) unsigned char *data = test_bytes(in_directory("x.tif"), &size);
        /* The last strip keeps the codes if there are others. */
        for (uint32_t i = 0; i < (strip < FAX_ROWS ? 2 : 1); i++) {
            uint64_t bytes;
            unsigned char *at = tiff_unit(in_directory("x.tif"), data, i, &bytes);
            remove_ends_of_lines(at, (size_t)bytes);
        }
        put_bytes(in_directory("x.tif"), data, size);
        for (uint32_t threads = 1; threads <= 3; threads++) {
            AUTO(free)
            damage_image image = read_file((gf_limits){.threads = threads, .segment = 100});
            assert_non_null(image.pixels);
            assert_string_equal(image.damage, "");
            assert_true(same_pixels(&image, &intact));
        }
    }
}

/* ---- tags ------------------------------------------------------------------------------------ */

/* Tables of offsets and sizes with fewer entries than strips are not sparse files. */
TEST(refuses_incomplete_tables) {
    static const unsigned tags[] = {TIFFTAG_STRIPOFFSETS, TIFFTAG_STRIPBYTECOUNTS};
    const tiff_spec spec = tiff_small_grey(300, 0); /* 3 strips */
    for (size_t i = 0; i < 2; i++) {
        size_t size;
        tiff_put(in_directory("x.tif"), &spec);
        AUTO(free) unsigned char *data = test_bytes(in_directory("x.tif"), &size);
        const uint32_t value = gf_little32(tiff_entry_of(data, tags[i]) + 8);
        tiff_patch_entry(in_directory("x.tif"), tags[i], tags[i], 3, value);
        AUTO(free) damage_image image = read_file((gf_limits){0});
        assert_non_null(image.pixels);
        tiff_patch_entry(in_directory("x.tif"), tags[i], tags[i], 2, value);
        assert_refused(NULL, "fewer offsets or sizes than strips or tiles");
    }
}

/* Without the tag, the number of colours decides, and the compression. */
TEST(guesses_colours) {
    enum { UNKNOWN = 263 };
    gf_file_info info;
    for (uint16_t samples = 1; samples <= 4; samples++)
        for (int extra = 0; extra < 2 && extra < samples; extra++) {
            tiff_spec spec = tiff_small_grey(9, 0);
            spec.samples = samples;
            spec.photometric = samples - extra < 3 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB;
            spec.extra = extra ? EXTRASAMPLE_UNASSALPHA : TIFF_NO_EXTRA;
            tiff_put(in_directory("x.tif"), &spec);
            tiff_patch_entry(in_directory("x.tif"), TIFFTAG_PHOTOMETRIC, UNKNOWN, 1, 1);
            if (samples - extra != 1 && samples - extra != 3) {
                assert_refused(NULL, "a TIFF with undeclared colours");
                assert_refused(NULL, "with tiffset -s 262 1 FILE for grey, or 2 for RGB");
                continue;
            }
            assert_ok(gf_inspect_file(in_directory("x.tif"), &(gf_file_options){0}, &info, &why));
            assert_int_equal(info.format.channels, samples);
        }
    for (size_t i = 0; i < sizeof faxes / sizeof *faxes; i++) {
        write_fax(faxes[i].compression, faxes[i].options, FAX_ROWS);
        AUTO(free) damage_image known = read_file((gf_limits){0});
        tiff_patch_entry(in_directory("x.tif"), TIFFTAG_PHOTOMETRIC, UNKNOWN, 1, 1);
        AUTO(free) damage_image guessed = read_file((gf_limits){0});
        assert_true(same_pixels(&known, &guessed));
    }
}

/* A fax has one bit per sample, whatever its tag says. */
TEST(refuses_a_fax_with_more_bits) {
    for (size_t i = 0; i < sizeof faxes / sizeof *faxes; i++)
        for (uint32_t bits = 2; bits <= 16; bits *= 2) {
            write_fax(faxes[i].compression, faxes[i].options, FAX_ROWS);
            tiff_patch(in_directory("x.tif"), TIFFTAG_BITSPERSAMPLE, bits);
            assert_refused(NULL, "CCITT data with more than one bit per sample");
        }
}

/* Codecs that are rarely used are for trusted files. */
TEST(decodes_rare_codecs_by_option) {
    static const uint16_t rare[] = {COMPRESSION_WEBP, COMPRESSION_LZMA, COMPRESSION_PIXARLOG};
    for (size_t i = 0; i < sizeof rare / sizeof *rare; i++) {
        const damage_case kind = {"", rare[i], 0, 3, 8, PHOTOMETRIC_RGB, 0, false};
        if (!write_case(&kind, 16, 8))
            continue;
        assert_refused(NULL, "is decoded only with --no-sandbox");
        AUTO(free) damage_image image = read_file((gf_limits){0});
        assert_non_null(image.pixels);
    }
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* Tiles that are far larger than the image take time and memory without an end. */
TEST(refuses_tiles_far_larger_than_the_image) {
    enum { TILES = 5, HEIGHT = 1 << 22, DIRECTORY = 8 + 8 * TILES };
    for (int far = 0; far < 2; far++) {
        const uint32_t height = far ? HEIGHT : 256;
        unsigned char file[256] = {'I', 'I', '*', 0, DIRECTORY}; /* empty tables follow */
        const tiff_entry entries[] = {{TIFFTAG_IMAGEWIDTH, TIFF_LONG, 1, 16 * TILES},
                                      {TIFFTAG_IMAGELENGTH, TIFF_LONG, 1, 1},
                                      {TIFFTAG_BITSPERSAMPLE, TIFF_SHORT, 1, 8},
                                      {TIFFTAG_COMPRESSION, TIFF_SHORT, 1, 8},
                                      {TIFFTAG_PHOTOMETRIC, TIFF_SHORT, 1, 1},
                                      {TIFFTAG_SAMPLESPERPIXEL, TIFF_SHORT, 1, 1},
                                      {TIFFTAG_TILEWIDTH, TIFF_LONG, 1, 16},
                                      {TIFFTAG_TILELENGTH, TIFF_LONG, 1, height},
                                      {TIFFTAG_TILEOFFSETS, TIFF_LONG, TILES, 8},
                                      {TIFFTAG_TILEBYTECOUNTS, TIFF_LONG, TILES, 8}};
        const unsigned char *end = tiff_put_entries(file + DIRECTORY, entries, 10, 0);
        put_bytes(in_directory("x.tif"), file, (size_t)(end - file));
        if (far) {
            assert_refused(NULL, "tiles far larger than the image");
            continue;
        }
        AUTO(free) damage_image image = read_file((gf_limits){0}); /* sparse */
        if (!image.pixels)
            fail_msg("%s", why.message);
    }
}

static time_t clock_step;
static atomic_uint reads;

/* Replace functions of the C library. */
int clock_gettime(clockid_t clock, struct timespec *time) {
    static atomic_long passed;
    const int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (clock == CLOCK_THREAD_CPUTIME_ID)
        time->tv_sec += atomic_fetch_add(&passed, clock_step) + clock_step;
    return result;
}

ssize_t pread(int file, void *data, size_t size, off_t offset) {
    reads++;
    return syscall(SYS_pread64, file, data, size, offset);
}

/* The time to decode grows with the image: 20 gigapixels pass, a minute for a small one does not.
 */
TEST(limits_the_time_of_decoding) {
    const gf_format large = {200000, 100000, 3, GF_U8, false};
    const tiff_spec spec = tiff_small_grey(9, 0);
    const gf_limits limits = gf_limits_resolve(NULL);
    assert_int_equal(gf_limit_seconds(&limits, &large), 60 + 6000);
    tiff_put(in_directory("x.tif"), &spec);
    clock_step = 20;
    for (uint32_t seconds = 19; seconds <= 60; seconds += 41) {
        AUTO(free)
        damage_image image = read_file((gf_limits){.max_seconds = seconds, .segment = 1});
        assert_int_equal(seconds == 60, image.pixels != NULL);
    }
    clock_step = 0;
    assert_message(&why,
                   "decoding exceeds the limit of 19 seconds for its size; raise it with "
                   "--max-seconds");
}

/* Large directories are read in blocks. */
TEST(lists_pages_in_blocks) {
    enum { ENTRIES = 65535, BYTES = 2 + 12 * ENTRIES + 4 };
    static tiff_entry entries[ENTRIES];
    const tiff_spec spec = tiff_small_grey(9, 0);
    gf_file_info info;
    size_t size;
    for (size_t i = 0; i < ENTRIES; i++)
        entries[i] = (tiff_entry){TIFFTAG_SUBFILETYPE, TIFF_LONG, 1, FILETYPE_REDUCEDIMAGE};
    tiff_put(in_directory("x.tif"), &spec);
    AUTO(free) unsigned char *data = test_bytes(in_directory("x.tif"), &size);
    AUTO(free) unsigned char *grown = test_zeros(size + 1 + BYTES);
    const size_t at = (size + 1) & ~(size_t)1;
    memcpy(grown, data, size);
    unsigned char *directory = grown + gf_little32(grown + 4);
    gf_put_little32(directory + 2 + 12 * gf_little16(directory), (uint32_t)at);
    tiff_put_entries(grown + at, entries, ENTRIES, 0);
    put_bytes(in_directory("x.tif"), grown, at + BYTES);
    reads = 0;
    assert_ok(gf_inspect_file(in_directory("x.tif"), &(gf_file_options){0}, &info, &why));
    assert_in_range(reads, BYTES / 4096, BYTES / 4096 + 40);
}

/* GF_ALL_PAGES is not the number of a page. */
TEST(limits_the_number_of_a_page) {
    const tiff_spec spec = tiff_small_grey(9, 0);
    tiff_put(in_directory("x.tif"), &spec);
    assert_refused(&(gf_limits){.page = GF_MAX_PAGE}, "has no page 1048576");
    for (uint32_t i = 0; i < 2; i++) {
        const gf_limits limits = {.page = i ? GF_ALL_PAGES - 1 : GF_MAX_PAGE + 1};
        gf_source *source;
        assert_error(gf_source_open(in_directory("x.tif"), &limits, &source, &why), GF_USAGE,
                     i ? "must be from 1 to 1048576" : "page 1048577: must be from 1 to 1048576");
    }
}

int main(void) {
    return test_main_in_directory();
}
