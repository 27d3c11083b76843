/* Damage in files of every format: a valid file is cut, a part of it is set to zero, or a bit of it
 * is flipped. The reader must fail, report the damage, or return the pixels of the intact file. A
 * format whose files contain nothing by which a reader could notice a kind of damage says so in
 * `unnoticed`; a cut is noticed in all formats.
 *
 * To test another format or compression, add a line to `cases`. */
#include "io/png/png.h"
#include "jpeg_file.h"
#include "png_file.h"
#include "small_files.h"

enum { CUT, ZERO, FLIP, KINDS };
enum { NO_ZERO = 1 << ZERO, NO_FLIP = 1 << FLIP, NO_CHECKSUM = NO_ZERO | NO_FLIP };

typedef struct damage_case {
    const char *name;
    const char *extension;
    /* Write a valid file; the other members are for its use. */
    void (*make)(const struct damage_case *kind, const char *path);
    unsigned unnoticed; /* bits of the kinds of damage that a reader cannot notice */
    uint32_t channels;
    gf_type type;
    const char *compression;                      /* of TIFF */
    bool palette, interlaced, packed, arithmetic; /* as far as the format has them;
                                                   * packed JPEG: with optimized codes */
    unsigned value;                               /* of the format */
    uint32_t threads;                             /* that read the file; 0: one */
    bool memory;                                  /* read a PNG from memory */
} damage_case;

/* ---- valid files ----------------------------------------------------------------------------- */

enum { WIDTH = 37, HEIGHT = 29 };

/* Return samples with runs, slopes and noise. Each one is a normal f32 number. */
static unsigned char *damage_pixels(const gf_format *format) {
    const size_t samples = (size_t)(format->width * format->height * format->channels);
    unsigned char *pixels = test_alloc(samples * gf_type_bytes(format->type));
    uint32_t seed = 3;
    for (size_t i = 0; i < samples; i++) {
        const size_t x = i % (format->width * format->channels) / format->channels;
        const unsigned value = x < 12 ? 200 : (unsigned)(2 * i / 9 + next_random(&seed) % 9) % 255;
        if (format->type == GF_U8)
            pixels[i] = (unsigned char)value;
        else if (format->type == GF_U16)
            ((uint16_t *)(void *)pixels)[i] = (uint16_t)(259 * value);
        else
            ((float *)(void *)pixels)[i] = 0.25f + (float)value / 256;
    }
    return pixels;
}

/* Write the file with the sink of its extension. */
static void make_written(const damage_case *kind, const char *path) {
    const gf_format format = {WIDTH, HEIGHT, kind->channels, kind->type, kind->channels == 4};
    const gf_file_options options = {.write.tiff_compression = kind->compression, .force = true};
    AUTO(free) unsigned char *pixels = damage_pixels(&format);
    if (save_image(path, &format, pixels, NULL, &options, 5) != GF_OK)
        fail_msg("%s: %s", kind->name, why.message);
}

static void make_png(const damage_case *kind, const char *path) {
    const png_spec spec = {.width = WIDTH,
                           .height = HEIGHT,
                           .color = kind->palette         ? 3
                                    : kind->channels == 1 ? 0
                                                          : 2 + 4 * (kind->channels == 4),
                           .depth = kind->type == GF_U16 ? 16 : 8,
                           .interlaced = kind->interlaced,
                           .transparent = kind->palette,
                           .idat_bytes = 700};
    AUTO(free) png_bytes file;
    png_make(&spec, &file, NULL, NULL);
    put_bytes(path, file.data, file.size);
}

static void make_jpeg_file(const damage_case *kind, const char *path) {
    const jpeg_shape shape = {.width = WIDTH,
                              .height = HEIGHT,
                              .components = (int)kind->channels,
                              .sampling = 2,
                              .progressive = kind->interlaced,
                              .arithmetic = kind->arithmetic,
                              .optimized = kind->packed,
                              .restart = kind->value};
    AUTO(free) jpeg_file file = make_jpeg(&shape, 5, NULL);
    put_bytes(path, file.data, file.size);
}

static void damage_put(const char *path, small_file file) {
    put_bytes(path, file.data, file.size);
    free(file.data);
}

static void make_gif(const damage_case *kind, const char *path) {
    AUTO(free) unsigned char *pixels = damage_pixels(&(gf_format){WIDTH, HEIGHT, 1, GF_U8, false});
    small_file file = gif_begin(WIDTH, HEIGHT, 8, 0);
    gif_add(
        &file, 8,
        &(gif_frame){
            .width = WIDTH, .height = HEIGHT, .indices = pixels, .interlaced = kind->interlaced});
    gif_end(&file);
    damage_put(path, file);
}

/* Append a row as runs and literals of at least three indices. */
static void damage_put_runs(small_file *file, const unsigned char *row, unsigned size) {
    for (unsigned at = 0; at < size;) {
        unsigned run = 1, literal = 3;
        while (at + run < size && row[at + run] == row[at])
            run++;
        while (at + literal < size && row[at + literal] != row[at + literal - 1])
            literal++;
        if (run > 1 || size - at < 3) {
            small_byte(file, run);
            small_byte(file, row[at]);
            at += run;
        } else {
            small_byte(file, 0);
            small_byte(file, literal);
            small_put(file, row + at, literal);
            small_zeros(file, literal % 2);
            at += literal;
        }
    }
    small_zeros(file, 2);
}

/* value: bits per pixel; packed: 8. */
static void make_bmp(const damage_case *kind, const char *path) {
    const bmp_spec spec = {.width = WIDTH,
                           .height = HEIGHT,
                           .bits = kind->value,
                           .compression = kind->packed,
                           .colors = kind->palette ? 1u << kind->value : 0};
    const size_t row = (WIDTH * kind->value + 31) / 32 * 4;
    AUTO(free) unsigned char *pixels = damage_pixels(&(gf_format){row, HEIGHT, 1, GF_U8, false});
    small_file file = bmp_begin(&spec);
    for (size_t y = 0; y < HEIGHT && kind->packed; y++)
        damage_put_runs(&file, pixels + y * row, WIDTH);
    if (kind->packed)
        small_put(&file, "\0\1", 2);
    else
        small_put(&file, pixels, row * HEIGHT);
    damage_put(path, file);
}

/* value: bits per pixel. */
static void make_tga(const damage_case *kind, const char *path) {
    const tga_spec spec = {.type = kind->palette ? 1 : 2,
                           .width = WIDTH,
                           .height = HEIGHT,
                           .bits = kind->value,
                           .colors = kind->palette ? 256 : 0,
                           .color_bits = 24};
    const size_t row = WIDTH * kind->value / 8;
    AUTO(free) unsigned char *pixels = damage_pixels(&(gf_format){row, HEIGHT, 1, GF_U8, false});
    small_file file = tga_begin(&spec);
    small_put(&file, pixels, row * HEIGHT);
    damage_put(path, file);
}

static void make_psd(const damage_case *kind, const char *path) {
    const unsigned depth = kind->type == GF_U16 ? 16 : 8;
    const psd_spec spec = {.width = WIDTH,
                           .height = HEIGHT,
                           .channels = kind->channels,
                           .depth = depth,
                           .mode = 3,
                           .packed = kind->packed};
    AUTO(free)
    unsigned char *pixels = damage_pixels(
        &(gf_format){(uint64_t)WIDTH * depth / 8, HEIGHT, kind->channels, GF_U8, false});
    damage_put(path, psd_make(&spec, pixels));
}

/* ---- the formats ----------------------------------------------------------------------------- */

static const damage_case cases[] = {
    /* Every chunk has a checksum. */
    {"PNG", "png", make_written, .channels = 3},
    {"PNG, u16", "png", make_written, .channels = 4, .type = GF_U16},
    {"PNG, three threads", "png", make_written, .channels = 3, .threads = 3},
    {"PNG from memory", "png", make_written, .channels = 3, .memory = true},
    {"PNG, several chunks", "png", make_png, .channels = 3},
    {"PNG, several chunks, three threads", "png", make_png, .channels = 3, .threads = 3},
    {"PNG, several chunks, from memory", "png", make_png, .channels = 3, .memory = true},
    {"PNG, palette", "png", make_png, .channels = 1, .palette = true},
    {"PNG, interlaced", "png", make_png, .channels = 3, .type = GF_U16, .interlaced = true},
    /* Of Huffman and arithmetic codes almost every sequence is valid. */
    {"JPEG", "jpg", make_written, .unnoticed = NO_CHECKSUM, .channels = 3},
    {"JPEG, chroma 1/2", "jpg", make_jpeg_file, .unnoticed = NO_CHECKSUM, .channels = 3},
    {"JPEG, restart markers", "jpg", make_jpeg_file, .unnoticed = NO_CHECKSUM, .channels = 3,
     .value = 2},
    {"JPEG, optimized", "jpg", make_jpeg_file, .unnoticed = NO_CHECKSUM, .channels = 3,
     .packed = true},
    {"JPEG, progressive", "jpg", make_jpeg_file, .unnoticed = NO_CHECKSUM, .channels = 3,
     .interlaced = true},
    {"JPEG, arithmetic", "jpg", make_jpeg_file, .unnoticed = NO_CHECKSUM, .channels = 3,
     .arithmetic = true},
    {"JPEG, arithmetic, progressive", "jpg", make_jpeg_file, .unnoticed = NO_CHECKSUM,
     .channels = 1, .arithmetic = true, .interlaced = true},
    /* A wrong LZW code, run or packet that fits is valid, and samples have no checksum. */
    {"GIF", "gif", make_gif, .unnoticed = NO_CHECKSUM},
    {"GIF, interlaced", "gif", make_gif, .unnoticed = NO_CHECKSUM, .interlaced = true},
    {"BMP", "bmp", make_written, .unnoticed = NO_CHECKSUM, .channels = 3},
    {"BMP, alpha", "bmp", make_written, .unnoticed = NO_CHECKSUM, .channels = 4},
    {"BMP, 4 bits", "bmp", make_bmp, .unnoticed = NO_CHECKSUM, .value = 4, .palette = true},
    {"BMP, 8 bits", "bmp", make_bmp, .unnoticed = NO_CHECKSUM, .value = 8, .palette = true},
    {"BMP, run lengths", "bmp", make_bmp, .unnoticed = NO_CHECKSUM, .value = 8, .palette = true,
     .packed = true},
    {"BMP, 16 bits", "bmp", make_bmp, .unnoticed = NO_CHECKSUM, .value = 16},
    {"TGA", "tga", make_tga, .unnoticed = NO_CHECKSUM, .value = 24},
    {"TGA, palette", "tga", make_tga, .unnoticed = NO_CHECKSUM, .value = 8, .palette = true},
    {"TGA, run lengths", "tga", make_written, .unnoticed = NO_CHECKSUM, .channels = 3},
    {"TGA, run lengths, alpha", "tga", make_written, .unnoticed = NO_CHECKSUM, .channels = 4},
    {"PSD", "psd", make_psd, .unnoticed = NO_CHECKSUM, .channels = 3},
    {"PSD, u16", "psd", make_psd, .unnoticed = NO_CHECKSUM, .channels = 3, .type = GF_U16},
    {"PSD, PackBits", "psd", make_psd, .unnoticed = NO_CHECKSUM, .channels = 3, .packed = true},
    {"PSD, PackBits, u16", "psd", make_psd, .unnoticed = NO_CHECKSUM, .channels = 4, .type = GF_U16,
     .packed = true},
    {"HDR", "hdr", make_written, .unnoticed = NO_CHECKSUM, .channels = 3, .type = GF_F32},
    {"PGM", "pgm", make_written, .unnoticed = NO_CHECKSUM, .channels = 1},
    {"PPM, u16", "ppm", make_written, .unnoticed = NO_CHECKSUM, .channels = 3, .type = GF_U16},
    {"PPM, three threads", "ppm", make_written, .unnoticed = NO_CHECKSUM, .channels = 3,
     .threads = 3},
    {"PAM", "pam", make_written, .unnoticed = NO_CHECKSUM, .channels = 4},
    {"PFM", "pfm", make_written, .unnoticed = NO_CHECKSUM, .channels = 3, .type = GF_F32},
    {"NPY", "npy", make_written, .unnoticed = NO_CHECKSUM, .channels = 3, .type = GF_F32},
    /* The other compressions of TIFF have no checksum. */
    {"TIFF, Deflate", "tif", make_written, .unnoticed = NO_CHECKSUM, .channels = 3,
     .compression = "deflate"},
};

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct damage_image {
    gf_format format;
    unsigned char *pixels; /* NULL: the reader has failed */
    bool reported;         /* damage that was read */
} damage_image;

static damage_image damage_read(const damage_case *kind, const unsigned char *data, size_t size) {
    /* Without the sandbox, sanitizers check the decoders, too. */
    const gf_limits limits = gf_limits_resolve(&(gf_limits){.no_sandbox = true,
                                                            .threads = kind->threads,
                                                            .segment = kind->threads ? 300 : 0,
                                                            .max_memory = (uint64_t)1 << 28});
    damage_image image = {0};
    gf_metadata metadata = {0};
    char name[32];
    metadata = (gf_metadata){0};
    snprintf(name, sizeof name, "x.%s", kind->extension);
    if (kind->memory) {
        gf_source *source;
        if (gf_png_memory_source(data, size, "x.png", &source, &why))
            return image;
        image.format = source->format;
        (void)load_source(source, 3, &image.pixels, &metadata, &why);
    } else {
        put_bytes(in_directory(name), data, size);
        (void)load_image(in_directory(name), &limits, 3, &image.format, &image.pixels, &metadata,
                         &why);
    }
    image.reported = metadata.remarks.damage[0] != 0;
    gf_metadata_clear(&metadata);
    return image;
}

/* Counts of the damaged files of one kind of damage. */
typedef struct damage_count {
    unsigned refused, reported, same, silent;
    size_t first; /* position of the first silent one */
} damage_count;

static void damage_try(const damage_case *kind, const damage_image *intact,
                       const unsigned char *data, size_t size, size_t at, damage_count *count) {
    damage_image image = damage_read(kind, data, size);
    if (!image.pixels) {
        assert_message(&why, "x.");
        count->refused++;
    } else if (image.reported) {
        count->reported++;
    } else if (gf_format_equal(&image.format, &intact->format) &&
               memcmp(image.pixels, intact->pixels,
                      gf_row_bytes(&image.format) * image.format.height) == 0) {
        count->same++;
    } else if (count->silent++ == 0) {
        count->first = at;
    }
    free(image.pixels);
}

/* Damage the file in all ways of one kind: at up to 150 positions, and at each of the last 40; in
 * the tier check, at a sixth of them. */
static damage_count damage_all(const damage_case *kind, int how, const damage_image *intact,
                               const unsigned char *data, size_t size) {
    static const size_t zeros[] = {1, 8, 100};
    const size_t step = size / test_rounds(150) + 1, last = test_rounds(40);
    damage_count count = {0};
    for (size_t at = how == CUT; at < size; at += size - at <= last ? 1 : step) {
        /* A copy of exact size, so that sanitizers detect reads past the end. */
        const size_t length = how == CUT ? at : size, left = size - at,
                     wanted = zeros[at / step % 3], n = wanted < left ? wanted : left;
        AUTO(free) unsigned char *changed = test_alloc(length);
        memcpy(changed, data, length);
        if (how == ZERO)
            memset(changed + at, 0, n);
        if (how == FLIP)
            changed[at] ^= (unsigned char)(1 << at / step % 8);
        if (how == CUT || memcmp(changed, data, length) != 0)
            damage_try(kind, intact, changed, length, at, &count);
    }
    return count;
}

static void damage_check(const damage_case *kind) {
    static const char *const names[] = {"cut", "zero", "flip"};
    size_t size;
    const char *path = test_path("x.%s", kind->extension);
    kind->make(kind, path);
    AUTO(free) unsigned char *data = test_bytes(path, &size);
    damage_image intact = damage_read(kind, data, size);
    if (!intact.pixels || intact.reported)
        fail_msg("%s: the intact file: %s", kind->name, why.message);
    unsigned silent = 0;
    for (int how = 0; how < KINDS; how++) {
        const damage_count count = damage_all(kind, how, &intact, data, size);
        const bool noticed = !(kind->unnoticed >> how & 1);
        print_message("%-36s %-5s refused %3u, reported %3u, same pixels %3u, silent %3u\n",
                      kind->name, names[how], count.refused, count.reported, count.same,
                      count.silent);
        if (noticed && count.silent)
            fail_msg("%s: %s is not noticed in %u files, first at byte %zu of %zu", kind->name,
                     names[how], count.silent, count.first, size);
        silent += count.silent;
    }
    free(intact.pixels);
}

TEST(notices_damage_in_every_format) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        damage_check(&cases[i]);
}

int main(void) {
    return test_main_in_directory();
}
