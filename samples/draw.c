/* Draw input images for tests and benchmarks:
 *
 *     draw [--grey] [--16] --photo WIDTH HEIGHT SEED OUT   compresses like a photograph
 *     draw --poster WIDTH HEIGHT OUT                       flat shapes, no noise
 *     draw --tile IN WIDTH HEIGHT OUT                      copies of an 8-bit PNG, grey or RGB
 *
 * OUT is a PNG (filter Sub, zlib level 1) or, with 8 bits per sample, a PGM or PPM, by its
 * extension. Images are generated and written row by row and are identical on every machine. The
 * generators use their own random numbers and no libm function except sqrt, which IEEE 754 rounds
 * correctly; exp and sin differ between libc versions. Compile without contraction of
 * floating-point expressions (-ffp-contract=off). */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <png.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Print one line to standard error and exit with 1. reason NULL: print the text of errno. */
static _Noreturn void draw_fail(const char *path, const char *reason) {
    fprintf(stderr, "draw: %s: %s\n", path, reason ? reason : strerror(errno));
    exit(1);
}

static void *draw_alloc(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (!memory)
        draw_fail("memory", NULL);
    return memory;
}

/* ---- output ---------------------------------------------------------------------------------- */

typedef struct canvas {
    const char *path;
    uint32_t width, height;
    int channels, bits; /* 1 or 3; 8 or 16, big-endian */
    uint8_t *row;       /* row to fill before canvas_write */
    size_t row_bytes;
    FILE *file;
    png_structp png; /* NULL for PGM and PPM */
    png_infop info;
} canvas;

static _Noreturn void canvas_png_error(png_structp png, png_const_charp reason) {
    draw_fail(((canvas *)png_get_error_ptr(png))->path, reason);
}

static void canvas_open_png(canvas *c) {
    c->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, c, canvas_png_error, NULL);
    c->info = c->png ? png_create_info_struct(c->png) : NULL;
    if (!c->info)
        draw_fail(c->path, "out of memory");
    png_init_io(c->png, c->file);
    png_set_IHDR(c->png, c->info, c->width, c->height, c->bits,
                 c->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(c->png, 1);
    png_set_filter(c->png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
    png_write_info(c->png, c->info);
}

static void canvas_open(canvas *c) {
    const char *extension = strrchr(c->path, '.');
    if (!extension)
        extension = "";
    bool raw = c->bits == 8 && strcmp(extension, c->channels == 1 ? ".pgm" : ".ppm") == 0;
    if (!raw && strcmp(extension, ".png") != 0)
        draw_fail(c->path, "the name must end in .png, or for 8 bits in .pgm (grey) or .ppm");
    c->row_bytes = (size_t)c->width * (size_t)(c->channels * c->bits / 8);
    c->row = draw_alloc(c->row_bytes, 1);
    c->file = fopen(c->path, "wb");
    if (!c->file)
        draw_fail(c->path, NULL);
    if (!raw)
        canvas_open_png(c);
    else if (fprintf(c->file, "P%c\n%" PRIu32 " %" PRIu32 "\n255\n", c->channels == 1 ? '5' : '6',
                     c->width, c->height) < 0)
        draw_fail(c->path, NULL);
}

static void canvas_write(canvas *c) {
    if (c->png)
        png_write_row(c->png, c->row);
    else if (fwrite(c->row, 1, c->row_bytes, c->file) != c->row_bytes)
        draw_fail(c->path, NULL);
}

static void canvas_close(canvas *c) {
    if (c->png) {
        png_write_end(c->png, c->info);
        png_destroy_write_struct(&c->png, &c->info);
    }
    if (fclose(c->file) != 0) /* fclose flushes the last bytes */
        draw_fail(c->path, NULL);
    free(c->row);
}

/* ---- random numbers, identical on every machine ---------------------------------------------- */

/* PCG32 with a single stream. */
typedef struct rng {
    uint64_t state;
} rng;

static uint32_t rng_next(rng *r) {
    uint64_t old = r->state;
    r->state = old * 6364136223846793005u + 1442695040888963407u;
    uint32_t word = (uint32_t)(((old >> 18) ^ old) >> 27);
    uint32_t turn = (uint32_t)(old >> 59);
    return word >> turn | word << ((32u - turn) & 31u);
}

/* Mix the seed first: the streams of neighbouring seeds (rows) must be unrelated. */
static rng rng_seed(uint64_t seed) {
    seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
    seed = (seed ^ seed >> 27) * 0x94d049bb133111ebu;
    rng r = {seed ^ seed >> 31};
    rng_next(&r);
    return r;
}

/* Return a uniform number in [0, 1) with 24 bits, exact as a float. */
static double rng_unit(rng *r) {
    return (double)(rng_next(r) >> 8) * (1.0 / 16777216.0);
}

/* Return an approximately normal number with mean 0 and deviation 1: the sum of the word's four
 * bytes. The tails end at 3.5 deviations. */
static double rng_normal(rng *r) {
    uint32_t w = rng_next(r);
    uint32_t sum = (w & 255u) + (w >> 8 & 255u) + (w >> 16 & 255u) + (w >> 24);
    return ((double)sum - 510.0) * (1.0 / 147.8);
}

/* Hash a lattice point to [0, 1). */
static double hash_unit(int32_t x, int32_t y, int32_t z, uint32_t seed) {
    uint32_t h = seed * 0x9e3779b1u ^ (uint32_t)x * 0x85ebca6bu ^ (uint32_t)y * 0xc2b2ae35u ^
                 (uint32_t)z * 0x27d4eb2fu;
    h = (h ^ h >> 16) * 0x7feb352du;
    h = (h ^ h >> 15) * 0x846ca68bu;
    return (double)((h ^ h >> 16) >> 8) * (1.0 / 16777216.0);
}

/* Return 0 for t <= 0, 1 for t >= 1, and an S-curve between them. */
static double smooth_step(double t) {
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return t * t * (3.0 - 2.0 * t);
}

/* ---- photo ----------------------------------------------------------------------------------- */

/* A landscape with detail at every scale down to the pixel, edges, flat areas and sensor noise. Its
 * PNG is about as large as that of a photograph. */

enum { MAX_OCTAVES = 18, RIDGES = 5 };

/* Value noise of many octaves along one row. Only the current row of each octave is stored: its
 * lattice values, interpolated between the lattice rows above and below. */
typedef struct field {
    uint32_t width;
    uint32_t seed;
    int octaves;
    uint32_t finest; /* lattice step of the last octave, in pixels */
    double keep;     /* weight of an octave relative to the one twice as coarse */
    float *lattice;
    float *row;
} field;

/* Create octaves from half of `extent` down to `finest`. */
static field field_new(uint32_t width, uint32_t extent, uint32_t finest, double keep,
                       uint32_t seed) {
    field f = {.width = width, .seed = seed, .finest = finest, .keep = keep, .octaves = 1};
    while (f.octaves < MAX_OCTAVES && (uint64_t)finest << f.octaves <= extent / 2)
        f.octaves++;
    f.lattice = draw_alloc((size_t)width / finest + 3, sizeof(float));
    f.row = draw_alloc(width, sizeof(float));
    return f;
}

static void field_free(field *f) {
    free(f->lattice);
    free(f->row);
}

static void field_add_octave(field *f, uint32_t y, uint32_t step, float weight, uint32_t seed) {
    int32_t line = (int32_t)(y / step);
    float t = (float)(y % step) / (float)step;
    t = t * t * (3.0f - 2.0f * t);
    for (uint32_t i = 0; i <= f->width / step + 1; i++) {
        float above = (float)hash_unit((int32_t)i, line, 0, seed);
        float below = (float)hash_unit((int32_t)i, line + 1, 0, seed);
        f->lattice[i] = (above + (below - above) * t - 0.5f) * weight;
    }
    float inverse = 1.0f / (float)step;
    for (uint32_t x0 = 0, i = 0; x0 < f->width; x0 += step, i++) {
        uint32_t end = f->width - x0 < step ? f->width - x0 : step;
        float left = f->lattice[i], rise = f->lattice[i + 1] - left;
        for (uint32_t x = 0; x < end; x++) {
            float u = (float)x * inverse;
            f->row[x0 + x] += left + rise * (u * u * (3.0f - 2.0f * u));
        }
    }
}

/* Compute row y: mean 0, range about [-0.5, 0.5] if keep is 1/2. */
static void field_row(field *f, uint32_t y) {
    memset(f->row, 0, f->width * sizeof *f->row);
    float weight = 0.5f;
    for (int o = f->octaves - 1; o >= 0; o--) {
        field_add_octave(f, y, f->finest << o, weight, f->seed + (uint32_t)o * 77u);
        weight *= (float)f->keep;
    }
}

typedef struct photo {
    float height;
    field shape;         /* clouds, slopes, patches of ground */
    field grain;         /* leaves and grass, the finest detail */
    float *edge[RIDGES]; /* first row of each ridge, by column; far to near */
} photo;

typedef struct colour {
    float c[3];
} colour;

static colour colour_mix(colour a, colour b, float t) {
    for (int i = 0; i < 3; i++)
        a.c[i] += (b.c[i] - a.c[i]) * t;
    return a;
}

/* Far ridges are high in the image, pale and smooth. Near ridges are low, dark and rough. */
static void photo_raise_ridges(photo *p, uint32_t seed) {
    field line = p->shape;
    for (int i = 0; i < RIDGES; i++) {
        float near = (float)i / (RIDGES - 1);
        line.seed = seed * 31u + 1000u + (uint32_t)i;
        line.keep = 0.46 + 0.06 * near;
        field_row(&line, 0);
        rng r = rng_seed(line.seed);
        float crowns = p->height * 0.012f * near, tree = 0;
        p->edge[i] = draw_alloc(line.width, sizeof(float));
        for (uint32_t x = 0; x < line.width; x++) {
            tree += 0.5f * ((float)rng_unit(&r) - tree); /* treetops against the sky */
            p->edge[i][x] =
                p->height * (0.36f + 0.42f * near + (0.34f - 0.20f * near) * line.row[x]) +
                crowns * tree;
        }
    }
}

static colour photo_sky(float v, float shape) {
    static const colour zenith = {{62, 110, 178}}, horizon = {{226, 214, 198}};
    static const colour cloud = {{240, 236, 232}}, shadow = {{176, 182, 196}};
    float low = v * 2.0f > 1.0f ? 1.0f : v * 2.0f;
    colour blue = colour_mix(zenith, horizon, low * (0.4f + 0.6f * low));
    float cover = (float)smooth_step((double)(shape + 0.02f) / 0.22);
    return colour_mix(blue, colour_mix(cloud, shadow, 1.6f * shape * cover), 0.85f * cover);
}

/* depth: distance below the ridge's edge, relative to the image height. */
static colour photo_ground(int ridge, float depth, float shape, float grain) {
    static const colour haze = {{188, 196, 206}}, wood = {{44, 62, 40}}, meadow = {{126, 132, 58}};
    float near = (float)ridge / (RIDGES - 1);
    float patch = (float)smooth_step(((double)(shape + 0.3f * depth) - -0.08) / (0.10 - -0.08));
    colour own = colour_mix(wood, meadow, patch * near);
    float light = 1.0f + 0.9f * shape + (0.10f + 0.75f * near) * grain;
    for (int i = 0; i < 3; i++)
        own.c[i] *= light;
    float air = (1.0f - near) * (1.0f - near) * 0.86f + 0.10f * (1.0f - near);
    air += (1.0f - air) * 0.5f * (depth > 0.16f ? 1.0f : depth / 0.16f) * (1.0f - near);
    return colour_mix(own, haze, air);
}

static colour photo_pixel(const photo *p, uint32_t x, uint32_t y) {
    float shape = p->shape.row[x], at = (float)y;
    colour c = photo_sky(at / p->height, shape);
    for (int i = 0; i < RIDGES; i++) {
        float below = at + 0.5f - p->edge[i][x];
        if (below <= -0.5f)
            continue;
        colour own = photo_ground(i, below > 0 ? below / p->height : 0, shape, p->grain.row[x]);
        c = colour_mix(c, own, below > 0.5f ? 1.0f : below + 0.5f); /* edge one pixel wide */
    }
    return c;
}

/* Add shot noise, which grows with brightness, and write the samples. Half of the noise is common
 * to all channels, as in a demosaicked image. */
static void photo_expose(colour c, int channels, int bits, rng *r, uint8_t *out) {
    if (channels == 1)
        c.c[0] = 0.30f * c.c[0] + 0.59f * c.c[1] + 0.11f * c.c[2];
    float common = (float)rng_normal(r);
    for (int i = 0; i < channels; i++) {
        float level = c.c[i] < 0 ? 0 : c.c[i] > 255 ? 255 : c.c[i];
        float own = channels == 1 ? 0 : (float)rng_normal(r);
        float noise = (0.55f + 0.0025f * level) * (common + own) * 0.56f;
        if (bits == 8) {
            level += noise + 0.5f;
            out[i] = (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
            continue;
        }
        level = (level + noise) * 257.0f + 0.5f;
        uint32_t sample = level < 0 ? 0 : level > 65535 ? 65535 : (uint32_t)level;
        out[2 * i] = (uint8_t)(sample >> 8);
        out[2 * i + 1] = (uint8_t)(sample & 255);
    }
}

static void draw_photo(canvas *out, uint32_t seed) {
    uint32_t width = out->width, extent = width > out->height ? width : out->height;
    photo p = {.height = (float)out->height,
               .shape = field_new(width, extent, 4, 0.5, seed * 31u + 1u),
               .grain = field_new(width, extent < 64 ? extent : 64, 2, 0.75, seed * 31u + 2u)};
    photo_raise_ridges(&p, seed);
    for (uint32_t y = 0; y < out->height; y++) {
        rng r = rng_seed((uint64_t)seed << 32 | y);
        uint8_t *samples = out->row;
        field_row(&p.shape, y);
        field_row(&p.grain, y);
        for (uint32_t x = 0; x < width; x++, samples += out->channels * out->bits / 8)
            photo_expose(photo_pixel(&p, x, y), out->channels, out->bits, &r, samples);
        canvas_write(out);
    }
    field_free(&p.shape);
    field_free(&p.grain);
    for (int i = 0; i < RIDGES; i++)
        free(p.edge[i]);
}

/* ---- poster ---------------------------------------------------------------------------------- */

/* Flat hills and a sun on a gradient, and a skyline with lit windows: long runs, repeated shapes
 * and gradient steps without noise. */

enum { HILLS = 5, HOUSES = 48, FLOORS = 200, PANES = 6 };

/* Value noise in one dimension, in [0, 1), with three octaves. */
static double poster_noise(double x, double row) {
    double sum = 0, total = 0, weight = 1;
    for (uint32_t octave = 0; octave < 3; octave++) {
        int32_t i = (int32_t)x, j = (int32_t)row;
        double tx = smooth_step(x - i), ty = smooth_step(row - j), value[2];
        for (int32_t k = 0; k < 2; k++) {
            double left = hash_unit(i, j + k, 0, 11 + octave);
            value[k] = left + (hash_unit(i + 1, j + k, 0, 11 + octave) - left) * tx;
        }
        sum += weight * (value[0] + (value[1] - value[0]) * ty);
        total += weight;
        weight *= 0.5;
        x *= 2;
        row *= 2;
    }
    return sum / total;
}

/* Blend ink over out with coverage `cover`, clipped to [0, 1]. Partial coverage antialiases
 * edges. */
static void poster_paint(double out[3], const uint8_t ink[3], double cover) {
    double part = cover < 0 ? 0 : cover > 1 ? 1 : cover;
    for (int i = 0; i < 3; i++)
        out[i] += (ink[i] - out[i]) * part;
}

/* Draw a row of houses at the bottom. Their windows form a grid. */
static void poster_town(double width, double height, double x, double y, double out[3]) {
    static const uint8_t house[3] = {24, 30, 44}, lit[3] = {250, 210, 120};
    double u = x / width * HOUSES;
    int32_t which = (int32_t)u;
    double roof = height * (0.78 + 0.14 * hash_unit(which, 0, 0, 5));
    poster_paint(out, house, y - roof + 0.5);
    double across = (u - which) * PANES, level = (y - roof) / height * FLOORS;
    if (level < 1)
        return;
    int32_t pane = (int32_t)across, storey = (int32_t)level;
    bool glass = across - pane > 0.25 && across - pane < 0.75 && level - storey > 0.3 && pane > 0 &&
                 pane < PANES - 1;
    if (glass && hash_unit(which, pane, storey, 6) > 0.6)
        poster_paint(out, lit, 1);
}

static void draw_poster(canvas *out) {
    static const uint8_t hills[HILLS][3] = {
        {148, 176, 190}, {112, 150, 164}, {84, 122, 132}, {58, 94, 96}, {36, 66, 62}};
    static const uint8_t sun[3] = {252, 240, 206};
    static const double top[3] = {58, 96, 160}, low[3] = {244, 190, 150};
    double width = out->width, height = out->height;
    float *edge = draw_alloc((size_t)out->width * HILLS, sizeof *edge); /* first row of each hill */
    for (uint32_t x = 0; x < out->width; x++)
        for (int i = 0; i < HILLS; i++)
            edge[(size_t)x * HILLS + (size_t)i] =
                (float)(height *
                        (0.46 + 0.09 * i + 0.22 * (poster_noise(x / width * 4, i * 3.7) - 0.5)));
    for (uint32_t row = 0; row < out->height; row++) {
        for (uint32_t column = 0; column < out->width; column++) {
            double x = column + 0.5, y = row + 0.5, pixel[3];
            for (int i = 0; i < 3; i++)
                pixel[i] = top[i] + (low[i] - top[i]) * y / height;
            double dx = x - 0.68 * width, dy = y - 0.30 * height;
            poster_paint(pixel, sun, 0.09 * width - sqrt(dx * dx + dy * dy) + 0.5);
            for (size_t i = 0; i < HILLS; i++)
                poster_paint(pixel, hills[i], y - (double)edge[column * (size_t)HILLS + i] + 0.5);
            poster_town(width, height, x, y, pixel);
            for (size_t i = 0; i < 3; i++)
                out->row[column * (size_t)3 + i] = (uint8_t)(pixel[i] + 0.5);
        }
        canvas_write(out);
    }
    free(edge);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Fill the canvas with copies of a PNG. Each column of copies starts at a different row. Equal
 * neighbouring tiles would be zlib matches and make the file far smaller than a real image of that
 * size. */
static void draw_tiles(canvas *out, png_image *in, const char *path) {
    out->channels = (int)PNG_IMAGE_SAMPLE_CHANNELS(in->format);
    canvas_open(out);
    uint8_t *pixels = draw_alloc(PNG_IMAGE_SIZE(*in), 1);
    if (!png_image_finish_read(in, NULL, pixels, 0, NULL))
        draw_fail(path, in->message);
    size_t stride = PNG_IMAGE_ROW_STRIDE(*in);
    for (uint32_t y = 0; y < out->height; y++) {
        for (size_t x = 0, row = y; x < out->row_bytes; x += stride, row += in->height / 5 + 1) {
            size_t left = out->row_bytes - x;
            memcpy(out->row + x, pixels + row % in->height * stride, left < stride ? left : stride);
        }
        canvas_write(out);
    }
    free(pixels);
}

/* ---- command line ---------------------------------------------------------------------------- */

/* Accept digits only: strtoul would also accept signs and spaces. */
static uint32_t draw_parse_number(const char *text, uint32_t min, uint32_t max) {
    uint64_t n = 0;
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; i < digits && n <= max; i++)
        n = n * 10 + (uint64_t)(text[i] - '0');
    if (!digits || text[digits] || n < min || n > max)
        draw_fail(text, "not a number in range");
    return (uint32_t)n;
}

int main(int argc, char **argv) {
    canvas out = {.channels = 3, .bits = 8};
    int at = 1;
    for (; at < argc && (!strcmp(argv[at], "--grey") || !strcmp(argv[at], "--16")); at++)
        if (argv[at][2] == 'g')
            out.channels = 1;
        else
            out.bits = 16;
    const char *kind = at < argc ? argv[at] : "";
    bool is_photo = !strcmp(kind, "--photo"), is_tile = !strcmp(kind, "--tile");
    if (!(is_photo && argc - at == 5) && !(is_tile && argc == 6) &&
        !(!strcmp(kind, "--poster") && argc == 5)) {
        fputs(
            "usage: draw [--grey] [--16] --photo WIDTH HEIGHT SEED OUT  (.png; of 8 bits .ppm, "
            ".pgm)\n"
            "       draw --poster WIDTH HEIGHT OUT\n"
            "       draw --tile IN WIDTH HEIGHT OUT  (IN: an 8-bit grey or RGB PNG)\n",
            stderr);
        return 1;
    }
    const uint32_t limit = 1000000; /* of libpng */
    out.width = draw_parse_number(argv[at + 1 + is_tile], 1, limit);
    out.height = draw_parse_number(argv[at + 2 + is_tile], 1, limit);
    out.path = argv[argc - 1];
    if (is_tile) {
        png_image in = {.version = PNG_IMAGE_VERSION};
        if (!png_image_begin_read_from_file(&in, argv[at + 1]))
            draw_fail(argv[at + 1], in.message);
        if (in.format & ~(png_uint_32)PNG_FORMAT_FLAG_COLOR)
            draw_fail(argv[at + 1], "not an 8-bit grey or RGB PNG");
        draw_tiles(&out, &in, argv[at + 1]);
    } else if (is_photo) {
        uint32_t seed = draw_parse_number(argv[at + 3], 0, UINT32_MAX);
        canvas_open(&out);
        draw_photo(&out, seed);
    } else {
        canvas_open(&out);
        draw_poster(&out);
    }
    canvas_close(&out);
    return 0;
}
