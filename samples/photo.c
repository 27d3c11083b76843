/* A landscape of any size, made row by row. What matters is not the view but how it compresses:
 * detail at every scale down to the pixel, edges, flat areas, and the noise of a sensor, so that
 * a PNG of it is about as large as one of a photograph. */
#include "draw.h"
#include "noise.h"
#include "picture.h"
#include "random.h"

#include <stdlib.h>

enum { MOST_OCTAVES = 18, RIDGES = 5 };

/* Value noise of many octaves along one row. Only the part of an octave that the row needs is kept:
 * its lattice values already mixed between the lattice rows above and below. */
typedef struct field {
    uint32_t width;
    uint32_t seed;
    int octaves;
    uint32_t finest; /* lattice step of the last octave, in pixels */
    double keep;     /* weight of an octave over that of the one twice as coarse */
    float *lattice;
    float *row;
} field;

typedef struct colour {
    float c[3];
} colour;

static colour mix(colour a, colour b, float t) {
    for (int i = 0; i < 3; i++)
        a.c[i] += (b.c[i] - a.c[i]) * t;
    return a;
}

/* Octaves from half of `extent` down to `finest`. */
static bool field_start(field *f, uint32_t width, uint32_t extent, uint32_t finest, double keep,
                        uint32_t seed) {
    *f = (field){.width = width, .seed = seed, .finest = finest, .keep = keep, .octaves = 1};
    while (f->octaves < MOST_OCTAVES && (uint64_t)finest << f->octaves <= extent / 2)
        f->octaves++;
    f->lattice = malloc(((size_t)width / finest + 3) * sizeof(float));
    f->row = malloc((size_t)width * sizeof(float));
    return f->lattice && f->row;
}

static void field_end(field *f) {
    free(f->lattice);
    free(f->row);
}

static void add_octave(field *f, uint32_t y, uint32_t step, float weight, uint32_t seed) {
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

/* Fills f->row with row y: mean 0, about [-0.5, 0.5] if keep is 1/2. */
static void field_row(field *f, uint32_t y) {
    for (uint32_t x = 0; x < f->width; x++)
        f->row[x] = 0;
    float weight = 0.5f;
    for (int o = f->octaves - 1; o >= 0; o--) {
        add_octave(f, y, f->finest << o, weight, f->seed + (uint32_t)o * 77u);
        weight *= (float)f->keep;
    }
}

typedef struct photo {
    photo_size size;
    uint32_t seed;
    field shape;         /* clouds, slopes, patches of ground */
    field grain;         /* leaves and grass: the finest detail */
    float *edge[RIDGES]; /* the row at which each ridge begins, by column; far to near */
} photo;

/* Far ridges are high in the picture, pale and calm; near ones low, dark and rough. */
static void raise_ridges(photo *p) {
    field line = p->shape;
    float height = (float)p->size.height;
    for (int i = 0; i < RIDGES; i++) {
        float near = (float)i / (RIDGES - 1);
        line.seed = p->seed * 31u + 1000u + (uint32_t)i;
        line.keep = 0.46 + 0.06 * near;
        field_row(&line, 0);
        rng r = rng_seed(line.seed);
        float crowns = height * 0.012f * near, tree = 0;
        for (uint32_t x = 0; x < p->size.width; x++) {
            tree += 0.5f * ((float)rng_unit(&r) - tree); /* the tops of a forest, against the sky */
            p->edge[i][x] = height * (0.36f + 0.42f * near + (0.34f - 0.20f * near) * line.row[x]) +
                            crowns * tree;
        }
    }
}

static bool photo_start(photo *p) {
    uint32_t w = p->size.width, h = p->size.height, extent = w > h ? w : h;
    bool ok = field_start(&p->shape, w, extent, 4, 0.5, p->seed * 31u + 1u);
    ok &= field_start(&p->grain, w, extent < 64 ? extent : 64, 2, 0.75, p->seed * 31u + 2u);
    for (int i = 0; i < RIDGES; i++) {
        p->edge[i] = malloc((size_t)w * sizeof(float));
        ok &= p->edge[i] != NULL;
    }
    if (ok)
        raise_ridges(p);
    return ok;
}

static void photo_end(photo *p) {
    field_end(&p->shape);
    field_end(&p->grain);
    for (int i = 0; i < RIDGES; i++)
        free(p->edge[i]);
}

static colour sky(float v, float shape) {
    static const colour zenith = {{62, 110, 178}}, horizon = {{226, 214, 198}};
    static const colour cloud = {{240, 236, 232}}, shadow = {{176, 182, 196}};
    float low = v * 2.0f > 1.0f ? 1.0f : v * 2.0f;
    colour blue = mix(zenith, horizon, low * (0.4f + 0.6f * low));
    float cover = (float)smooth_step(0.0, 0.22, (double)(shape + 0.02f));
    return mix(blue, mix(cloud, shadow, 1.6f * shape * cover), 0.85f * cover);
}

/* depth: how far below its edge, in heights of the picture. */
static colour ground(int ridge, float depth, float shape, float grain) {
    static const colour haze = {{188, 196, 206}}, wood = {{44, 62, 40}}, meadow = {{126, 132, 58}};
    float near = (float)ridge / (RIDGES - 1);
    float patch = (float)smooth_step(-0.08, 0.10, (double)(shape + 0.3f * depth));
    colour own = mix(wood, meadow, patch * near);
    float light = 1.0f + 0.9f * shape + (0.10f + 0.75f * near) * grain;
    for (int i = 0; i < 3; i++)
        own.c[i] *= light;
    float air = (1.0f - near) * (1.0f - near) * 0.86f + 0.10f * (1.0f - near);
    air += (1.0f - air) * 0.5f * (depth > 0.16f ? 1.0f : depth / 0.16f) * (1.0f - near);
    return mix(own, haze, air);
}

static colour view(const photo *p, uint32_t x, uint32_t y) {
    float height = (float)p->size.height, shape = p->shape.row[x], at = (float)y;
    colour c = sky(at / height, shape);
    for (int i = 0; i < RIDGES; i++) {
        float below = at + 0.5f - p->edge[i][x];
        if (below <= -0.5f)
            continue;
        colour own = ground(i, below > 0 ? below / height : 0, shape, p->grain.row[x]);
        c = mix(c, own, below > 0.5f ? 1.0f : below + 0.5f); /* the edge is smoothed over a pixel */
    }
    return c;
}

/* Shot noise grows with the light; half of it is common to the channels, as a demosaicked sensor
 * has it. */
static void expose(colour c, int channels, int bits, rng *r, uint8_t *out) {
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

static bool write_rows(photo *p, const char *path, uint8_t *row) {
    const photo_size *size = &p->size;
    size_t pixel = (size_t)size->channels * (size_t)size->bits / 8;
    picture *out =
        picture_open(path, size->width, size->height, size->channels, size->bits, PICTURE_FAST);
    if (!out)
        return false;
    for (uint32_t y = 0; y < size->height; y++) {
        rng r = rng_seed((uint64_t)p->seed << 32 | y);
        field_row(&p->shape, y);
        field_row(&p->grain, y);
        for (uint32_t x = 0; x < size->width; x++)
            expose(view(p, x, y), size->channels, size->bits, &r, row + (size_t)x * pixel);
        if (!picture_row(out, row))
            break;
    }
    return picture_close(out);
}

bool draw_photo(const char *path, photo_size size, uint32_t seed) {
    photo p = {.size = size, .seed = seed};
    uint8_t *row = malloc((size_t)size.width * (size_t)size.channels * (size_t)size.bits / 8);
    bool ok = photo_start(&p) && row;
    if (!ok)
        picture_complain(path, "out of memory");
    ok = ok && write_rows(&p, path, row);
    photo_end(&p);
    free(row);
    return ok;
}
