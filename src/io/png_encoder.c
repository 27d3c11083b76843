/* The caller fills bands in a ring and hands them to the threads; it also writes what they have
 * coded, in order, when it comes by. */
#include "io/png_encoder.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "clock.h"
#include "error.h"
#include "io/limits.h"
#include "io/png_idat_write.h"
#include "thread.h"

enum {
    FRONT = 2 + GF_PNG_IDAT_FRONT,  /* in the first band zlib's header stands there */
    BEHIND = 4 + GF_PNG_IDAT_BEHIND /* in the last Adler-32 */
};

/* What one thread needs is not counted as memory, up to here: only wide rows need more. */
#define FREE_BYTES (UINT64_C(16) << 20)

typedef struct slot {
    unsigned char *memory; /* rows with their paddings */
    unsigned char *out;
    gf_png_band band;
    uint32_t crc; /* of the chunk's name and the band's bytes */
    bool coded;
} slot;

struct gf_png_encoder {
    gf_png_bands bands;
    gf_format format;
    gf_output *output;
    uint64_t memory;
    double callers;   /* seconds that the caller was busy */
    uint64_t y;       /* rows taken so far */
    uint64_t written; /* bands */
    uint32_t adler;   /* of what was written */
    uint64_t clipped; /* samples at the largest value, of the rows taken so far */
    gf_png_rule rule; /* of the last band handed over */

    slot *slots;
    uint32_t slot_count;
    pthread_t *threads;
    gf_png_scratch *scratch; /* the caller's, if it codes by itself or looks at bands beforehand */
    uint32_t wanted, started;

    pthread_mutex_t lock;
    pthread_cond_t filled_more, coded_more;
    uint64_t filled, taken; /* bands */
    double busy;            /* of the threads */
    bool stop, no_memory;
};

/* ---- coding ---------------------------------------------------------------------------------- */

static unsigned char *bytes_of(const slot *s) {
    return s->out + FRONT;
}

/* A band's chunk begins at its own bytes, the first with zlib's header in front of them. */
static size_t head_bytes(uint64_t k) {
    return k == 0 ? 2 : 0;
}

static bool code(const gf_png_encoder *encoder, gf_png_scratch *scratch, uint64_t k) {
    static const unsigned char zlib_head[2] = {0x78, 0x01}; /* a window of 32 KiB; coded fast */
    slot *s = &encoder->slots[k % encoder->slot_count];
    s->band.out = bytes_of(s);
    if (!gf_png_band_code(&encoder->bands, scratch, &s->band))
        return false;
    unsigned char *chunk = bytes_of(s) - head_bytes(k) - 4;
    memcpy(chunk, gf_png_idat_name, 4);
    memcpy(chunk + 4, zlib_head, head_bytes(k));
    if (s->band.size + head_bytes(k) <= GF_PNG_IDAT_MOST)
        s->crc = crc32_gzip_refl(0, chunk, 4 + head_bytes(k) + s->band.size);
    return true;
}

static void *work(void *argument) {
    gf_png_encoder *encoder = argument;
    gf_png_scratch *scratch = gf_png_scratch_new(&encoder->bands);
    pthread_mutex_lock(&encoder->lock);
    if (!scratch)
        encoder->no_memory = true;
    while (!encoder->no_memory) {
        while (!encoder->stop && encoder->taken == encoder->filled)
            pthread_cond_wait(&encoder->filled_more, &encoder->lock);
        if (encoder->stop)
            break;
        const uint64_t k = encoder->taken++;
        pthread_mutex_unlock(&encoder->lock);
        const double start = gf_now();
        const bool good = code(encoder, scratch, k);
        const double seconds = gf_now() - start;
        pthread_mutex_lock(&encoder->lock);
        encoder->busy += seconds;
        encoder->no_memory |= !good;
        encoder->slots[k % encoder->slot_count].coded = true;
        pthread_cond_signal(&encoder->coded_more);
    }
    pthread_cond_signal(&encoder->coded_more);
    pthread_mutex_unlock(&encoder->lock);
    gf_png_scratch_free(scratch);
    return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

static gf_status write_band(gf_png_encoder *encoder, gf_error *error) {
    const uint64_t k = encoder->written++;
    slot *s = &encoder->slots[k % encoder->slot_count];
    unsigned char *data = bytes_of(s) - head_bytes(k);
    size_t size = s->band.size + head_bytes(k);
    encoder->adler =
        (uint32_t)adler32_combine(encoder->adler, s->band.adler, (z_off_t)s->band.filtered);
    const bool one = size <= GF_PNG_IDAT_MOST;
    if (s->band.last) {
        gf_png_put32(data + size, encoder->adler);
        s->crc = one ? crc32_gzip_refl(s->crc, data + size, 4) : 0;
        size += 4;
    }
    return one ? gf_png_idat_write(encoder->output, data, size, s->crc, error)
               : gf_png_idat_write_parts(encoder->output, data, size, GF_PNG_IDAT_MOST, error);
}

static gf_status fail_memory(const gf_png_encoder *encoder, gf_error *error) {
    return gf_fail_memory(error, gf_output_name(encoder->output),
                          gf_png_scratch_bytes(&encoder->bands), "the encoder");
}

/* Writes what is coded, and waits until no more than `most` bands are left. */
static gf_status write_coded(gf_png_encoder *encoder, uint64_t most, gf_error *error) {
    gf_status status = GF_OK;
    while (encoder->written < encoder->filled && !status) {
        slot *s = &encoder->slots[encoder->written % encoder->slot_count];
        pthread_mutex_lock(&encoder->lock);
        const double start = gf_now();
        while (!s->coded && !encoder->no_memory && encoder->filled - encoder->written > most)
            pthread_cond_wait(&encoder->coded_more, &encoder->lock);
        encoder->callers -= gf_now() - start;
        const bool coded = s->coded, no_memory = encoder->no_memory;
        pthread_mutex_unlock(&encoder->lock);
        if (no_memory)
            return fail_memory(encoder, error);
        if (!coded)
            break;
        status = write_band(encoder, error);
    }
    return status;
}

/* ---- filling --------------------------------------------------------------------------------- */

static size_t slot_rows(const gf_png_bands *bands) {
    return (size_t)(bands->rows + bands->context + 1);
}

static slot *slot_at(const gf_png_encoder *encoder, uint64_t k) {
    return &encoder->slots[k % encoder->slot_count];
}

static unsigned char *row_in(const gf_png_encoder *encoder, const slot *s, uint64_t r) {
    return s->memory + GF_PNG_PAD + (size_t)r * encoder->bands.row_stride;
}

/* A new band begins with rows of the one before. */
static void begin_band(gf_png_encoder *encoder) {
    const gf_png_bands *bands = &encoder->bands;
    slot *s = slot_at(encoder, encoder->filled);
    if (encoder->y == 0) {
        s->band = (gf_png_band){.rows = row_in(encoder, s, 0)}; /* new memory: zeros above */
        return;
    }
    const slot *before = slot_at(encoder, encoder->filled - 1);
    const uint64_t has = before->band.context + before->band.count;
    const uint64_t context = encoder->y < bands->context ? encoder->y : bands->context;
    for (uint64_t r = 0; r <= context; r++)
        memmove(row_in(encoder, s, r), row_in(encoder, before, has - context + r),
                bands->row_bytes);
    s->band = (gf_png_band){.rows = row_in(encoder, s, 0), .context = context};
    s->coded = false;
}

static gf_status start_threads(gf_png_encoder *encoder, gf_error *error) {
    while (encoder->started < encoder->wanted) {
        const int failed = gf_thread_start(&encoder->threads[encoder->started], work, encoder);
        if (failed && encoder->started == 0)
            return gf_fail(error, GF_FAILED, "%s: cannot start a thread: %s; use --threads 1",
                           gf_output_name(encoder->output), strerror(failed));
        if (failed)
            break;
        encoder->started++;
    }
    return GF_OK;
}

/* Hands a full band to the threads, or codes it here. */
static gf_status hand_over(gf_png_encoder *encoder, gf_error *error) {
    const uint64_t k = encoder->filled;
    gf_png_band *band = &slot_at(encoder, k)->band;
    band->last = encoder->y == encoder->format.height;
    if (encoder->bands.effort != GF_PNG_FAST)
        gf_png_band_choose(&encoder->bands, encoder->scratch, encoder->rule, band);
    encoder->rule = band->rule;
    if (encoder->wanted) {
        gf_status status = start_threads(encoder, error);
        if (status)
            return status;
        pthread_mutex_lock(&encoder->lock);
        encoder->filled++;
        pthread_cond_signal(&encoder->filled_more);
        pthread_mutex_unlock(&encoder->lock);
        return write_coded(encoder, encoder->slot_count - 1, error);
    }
    if (!code(encoder, encoder->scratch, k))
        return fail_memory(encoder, error);
    encoder->filled++;
    return write_band(encoder, error);
}

gf_status gf_png_encoder_write(gf_png_encoder *encoder, const unsigned char *src, size_t stride,
                               uint64_t rows, gf_error *error) {
    const gf_png_bands *bands = &encoder->bands;
    const gf_png_filter_simd *simd = gf_png_filter_simd_of(bands->isa);
    const double start = gf_now();
    gf_status status = GF_OK;
    for (uint64_t i = 0; i < rows && !status; i++) {
        slot *s = slot_at(encoder, encoder->filled);
        if (encoder->y % bands->rows == 0)
            begin_band(encoder);
        unsigned char *to = row_in(encoder, s, s->band.context + 1 + s->band.count++);
        if (encoder->format.type == GF_U16)
            simd->swap16(to, src + i * stride, bands->row_bytes / 2);
        else
            memcpy(to, src + i * stride, bands->row_bytes);
        encoder->clipped += simd->count_largest(&encoder->format, to);
        encoder->y++;
        if (encoder->y % bands->rows == 0 || encoder->y == encoder->format.height)
            status = hand_over(encoder, error);
    }
    if (!status && encoder->y == encoder->format.height)
        status = write_coded(encoder, 0, error);
    encoder->callers += gf_now() - start;
    return status;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static size_t memory_bytes(const gf_png_bands *bands) {
    return GF_PNG_PAD + slot_rows(bands) * bands->row_stride;
}

static size_t out_bytes(const gf_png_bands *bands) {
    return FRONT + gf_png_band_bound(bands) + BEHIND;
}

/* Two bands more than threads: one is being filled, one written. */
static uint64_t bytes_for(const gf_png_bands *bands, uint32_t threads) {
    const uint64_t slot_bytes = memory_bytes(bands) + out_bytes(bands);
    return threads <= 1 ? slot_bytes + gf_png_scratch_bytes(bands)
                        : (threads + 2) * slot_bytes + (threads + 1) * gf_png_scratch_bytes(bands);
}

static bool allocate(gf_png_encoder *encoder) {
    const gf_png_bands *bands = &encoder->bands;
    encoder->slots = calloc(encoder->slot_count, sizeof *encoder->slots);
    if (!encoder->slots)
        return false;
    for (uint32_t i = 0; i < encoder->slot_count; i++) {
        slot *s = &encoder->slots[i];
        s->memory = calloc(1, memory_bytes(bands));
        s->out = malloc(out_bytes(bands));
        if (!s->memory || !s->out)
            return false;
    }
    if (encoder->wanted && !(encoder->threads = calloc(encoder->wanted, sizeof(pthread_t))))
        return false;
    if (encoder->wanted && bands->effort == GF_PNG_FAST)
        return true;
    encoder->scratch = gf_png_scratch_new(bands);
    return encoder->scratch != NULL;
}

gf_status gf_png_encoder_open(const gf_format *format, gf_png_effort effort, gf_isa isa,
                              uint32_t threads, uint64_t max_memory, gf_output *output,
                              gf_png_encoder **opened, gf_error *error) {
    gf_png_encoder *encoder = calloc(1, sizeof *encoder);
    *opened = NULL;
    if (!encoder)
        return gf_fail_memory(error, gf_output_name(output), sizeof *encoder, "the encoder");
    pthread_mutex_init(&encoder->lock, NULL);
    pthread_cond_init(&encoder->filled_more, NULL);
    pthread_cond_init(&encoder->coded_more, NULL);
    encoder->format = *format;
    encoder->output = output;
    encoder->adler = 1;
    gf_png_bands_init(format, effort, isa, &encoder->bands);
    const gf_png_bands *bands = &encoder->bands;
    const uint64_t count = (format->height - 1) / bands->rows + 1;
    const uint64_t least = bytes_for(bands, 1);
    const uint64_t counted = least > FREE_BYTES ? least - FREE_BYTES : 0;
    uint32_t used = threads < count ? threads : (uint32_t)count;
    while (used > 1 && bytes_for(bands, used) - least + counted > max_memory / 2)
        used--;
    encoder->wanted = used > 1 ? used : 0;
    encoder->slot_count = used > 1 ? used + 2 : 1;
    encoder->memory = bytes_for(bands, used) - least + counted;
    const gf_status status =
        gf_check_memory(counted, max_memory, gf_output_name(output), "the encoder", error);
    if (status) {
        gf_png_encoder_close(encoder);
        return status;
    }
    if (!allocate(encoder)) {
        const uint64_t bytes = bytes_for(bands, used);
        gf_png_encoder_close(encoder);
        return gf_fail_memory(error, gf_output_name(output), bytes, "the encoder");
    }
    *opened = encoder;
    return GF_OK;
}

uint64_t gf_png_encoder_memory(const gf_png_encoder *encoder) {
    return encoder->memory;
}

uint64_t gf_png_encoder_clipped(const gf_png_encoder *encoder) {
    return encoder->clipped;
}

uint32_t gf_png_encoder_threads(const gf_png_encoder *encoder) {
    return encoder->wanted;
}

double gf_png_encoder_busy(const gf_png_encoder *encoder) {
    return encoder->busy + encoder->callers;
}

void gf_png_encoder_close(gf_png_encoder *encoder) {
    if (!encoder)
        return;
    pthread_mutex_lock(&encoder->lock);
    encoder->stop = true;
    pthread_cond_broadcast(&encoder->filled_more);
    pthread_mutex_unlock(&encoder->lock);
    for (uint32_t i = 0; i < encoder->started; i++)
        pthread_join(encoder->threads[i], NULL);
    for (uint32_t i = 0; encoder->slots && i < encoder->slot_count; i++) {
        free(encoder->slots[i].memory);
        free(encoder->slots[i].out);
    }
    gf_png_scratch_free(encoder->scratch);
    free(encoder->threads);
    free(encoder->slots);
    pthread_cond_destroy(&encoder->coded_more);
    pthread_cond_destroy(&encoder->filled_more);
    pthread_mutex_destroy(&encoder->lock);
    free(encoder);
}
