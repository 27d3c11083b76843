/* PNG encoder. The caller fills strips in a ring and submits them to a thread pool. It also writes
 * the compressed strips in order, when it needs their slots again. */
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/thread.h"
#include "io/bytes.h"
#include "io/png.h"

/* ---- compression efforts --------------------------------------------------------------------- */

const char *const *gf_compressions(void) {
    static const char *const names[] = {[GF_PNG_FAST] = "fast",
                                        [GF_PNG_BALANCED] = "balanced",
                                        [GF_PNG_SMALL] = "small",
                                        [GF_PNG_STORED] = "none",
                                        NULL};
    return names;
}

/* Return false for a name that gf_compressions() does not contain. NULL: fast. */
static bool png_effort_of(const char *name, gf_png_effort *effort) {
    const char *const *names = gf_compressions();
    int i = 0; /* default: fast */
    while (name && names[i] && strcmp(name, names[i]) != 0)
        i++;
    *effort = names[i] ? (gf_png_effort)i : GF_PNG_FAST;
    return names[i] != NULL;
}

double gf_png_encode_cost(const char *compression) {
    gf_png_effort effort;
    png_effort_of(compression, &effort);
    return effort == GF_PNG_STORED ? GF_PNG_ENCODE_COST_NONE
           : effort == GF_PNG_FAST ? GF_PNG_ENCODE_COST_FAST
                                   : GF_PNG_ENCODE_COST_SLOW;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static const unsigned char idat_name[4] = {'I', 'D', 'A', 'T'};

static gf_status chunk_write(gf_output *output, const char *name, const void *data, size_t size,
                             gf_error *error) {
    unsigned char head[8], tail[4];
    gf_put_big32(head, (uint32_t)size);
    memcpy(head + 4, name, 4);
    uint32_t crc = crc32_gzip_refl(0, head + 4, 4);
    if (size)
        crc = crc32_gzip_refl(crc, data, size);
    gf_put_big32(tail, crc);
    gf_status status = gf_output_write(output, head, sizeof head, error);
    if (!status)
        status = gf_output_write(output, data, size, error);
    return status ? status : gf_output_write(output, tail, sizeof tail, error);
}

/* Write the metadata chunks before the pixels, or those after them (late). */
static gf_status chunk_write_metadata(gf_output *output, const gf_metadata *metadata, bool late,
                                      gf_error *error) {
    gf_metadata chunks;
    gf_metadata_init(&chunks);
    gf_status status = gf_metadata_to_png(metadata, &chunks, gf_output_name(output), error);
    for (size_t i = 0; i < chunks.count && !status; i++) {
        const gf_chunk *chunk = &chunks.chunks[i];
        if (chunk->late == late)
            status = chunk_write(output, chunk->name, chunk->data, chunk->size, error);
    }
    gf_metadata_clear(&chunks);
    return status;
}

void gf_png_head(const gf_format *format, unsigned char head[GF_PNG_HEAD]) {
    static const unsigned char color_types[] = {[1] = 0, [2] = 4, [3] = 2, [4] = 6};
    enum { DATA_BYTES = 13, DATA = 16 };
    memset(head, 0, GF_PNG_HEAD); /* deflate, adaptive filtering, not interlaced */
    memcpy(head, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", DATA);
    gf_put_big32(head + DATA, (uint32_t)format->width);
    gf_put_big32(head + DATA + 4, (uint32_t)format->height);
    head[DATA + 8] = format->type == GF_U16 ? 16 : 8;
    head[DATA + 9] = color_types[format->channels];
    gf_put_big32(head + DATA + DATA_BYTES, crc32_gzip_refl(0, head + DATA - 4, 4 + DATA_BYTES));
}

/* Write an IDAT chunk around its data: 8 bytes before and 4 bytes after are overwritten. crc: of
 * the chunk type and the data. */
static gf_status idat_write(gf_output *output, unsigned char *data, size_t size, uint32_t crc,
                            gf_error *error) {
    gf_put_big32(data - 8, (uint32_t)size);
    memcpy(data - 4, idat_name, 4);
    gf_put_big32(data + size, crc);
    return gf_output_write(output, data - 8, size + 12, error);
}

/* Save and restore the next bytes, which the CRC of a chunk overwrites. */
gf_status gf_png_idat_write_parts(gf_output *output, unsigned char *data, size_t size, size_t max,
                                  gf_error *error) {
    gf_status status = GF_OK;
    while (size && !status) {
        const size_t part = size < max ? size : max;
        unsigned char saved[4];
        memcpy(data - 4, idat_name, 4);
        memcpy(saved, data + part, 4);
        status = idat_write(output, data, part, crc32_gzip_refl(0, data - 4, part + 4), error);
        memcpy(data + part, saved, 4);
        data += part;
        size -= part;
    }
    return status;
}

/* ---- the encoder ----------------------------------------------------------------------------- */

enum {
    HEAD_BYTES = 2 + GF_PNG_IDAT_HEAD, /* with the zlib header of the first strip */
    TAIL_BYTES = 4 + GF_PNG_IDAT_TAIL  /* with the Adler-32 of the last strip */
};

/* Memory of the first thread that is not counted. Only wide rows need more. */
#define UNCOUNTED_BYTES (UINT64_C(16) << 20)

typedef struct png_encoder png_encoder;

typedef struct encoder_slot {
    png_encoder *encoder;
    unsigned char *memory; /* rows with their padding */
    unsigned char *out;
    gf_png_strip strip;
    size_t head;  /* bytes of the zlib header in the chunk: 2 for the first strip */
    uint32_t crc; /* of the chunk type and the compressed strip */
    gf_work work; /* encodes the strip */
    bool encoded; /* false after work: out of memory */
} encoder_slot;

struct png_encoder {
    gf_sink base; /* threads: 0 if the caller encodes */
    gf_png_strips strips;
    gf_format format;
    uint64_t max_memory;
    double caller_seconds; /* busy time of the caller */
    uint64_t y;            /* rows received */
    uint64_t filled;       /* strips filled */
    uint64_t written;      /* strips written */
    uint32_t adler;        /* of all strips written */
    gf_png_rule rule;      /* of the last strip submitted */
    encoder_slot *slots;
    uint32_t slot_count;
    gf_pool *pool;                  /* base.threads threads; NULL: none */
    gf_png_scratch **scratch;       /* one per pool thread, allocated by that thread */
    gf_png_scratch *caller_scratch; /* to encode strips or choose their filters */
    atomic_bool stop;
};

/* ---- encoding -------------------------------------------------------------------------------- */

static encoder_slot *encoder_slot_at(const png_encoder *encoder, uint64_t k) {
    return &encoder->slots[k % encoder->slot_count];
}

/* Return the data of the IDAT chunk of a strip. */
static unsigned char *encoder_chunk_data(const encoder_slot *s) {
    return s->out + HEAD_BYTES - s->head;
}

static void encoder_encode_strip(encoder_slot *s, gf_png_scratch *scratch) {
    static const unsigned char zlib_head[2] = {0x78, 0x01}; /* window of 32 KiB; fastest level */
    s->strip.out = s->out + HEAD_BYTES;
    s->encoded = scratch && gf_png_strip_encode(scratch, &s->strip);
    unsigned char *chunk = encoder_chunk_data(s) - 4;
    memcpy(chunk, idat_name, 4);
    memcpy(chunk + 4, zlib_head, s->head);
    if (s->encoded && s->strip.size + s->head <= GF_PNG_IDAT_MAX)
        s->crc = crc32_gzip_refl(0, chunk, 4 + s->head + s->strip.size);
}

static void encoder_work(void *context, uint32_t task, uint32_t thread) {
    encoder_slot *s = context;
    gf_png_scratch **scratch = &s->encoder->scratch[thread];
    (void)task;
    if (s->encoder->stop)
        return;
    if (!*scratch)
        *scratch = gf_png_scratch_new(&s->encoder->strips);
    encoder_encode_strip(s, *scratch);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Write the next strip, which has been encoded. */
static gf_status encoder_write_strip(png_encoder *encoder, gf_error *error) {
    encoder_slot *s = encoder_slot_at(encoder, encoder->written++);
    unsigned char *data = encoder_chunk_data(s);
    size_t size = s->strip.size + s->head;
    if (!s->encoded)
        return gf_fail_memory(error, gf_output_name(encoder->base.output),
                              gf_png_scratch_bytes(&encoder->strips), "the encoder");
    encoder->adler =
        (uint32_t)adler32_combine(encoder->adler, s->strip.adler, (z_off_t)s->strip.filtered);
    const bool single = size <= GF_PNG_IDAT_MAX;
    if (s->strip.last) {
        gf_put_big32(data + size, encoder->adler);
        s->crc = single ? crc32_gzip_refl(s->crc, data + size, 4) : 0;
        size += 4;
    }
    return single
               ? idat_write(encoder->base.output, data, size, s->crc, error)
               : gf_png_idat_write_parts(encoder->base.output, data, size, GF_PNG_IDAT_MAX, error);
}

/* Wait for strips and write them until at most max remain. */
static gf_status encoder_write_strips(png_encoder *encoder, uint64_t max, gf_error *error) {
    gf_status status = GF_OK;
    while (encoder->filled - encoder->written > max && !status) {
        const double start = gf_now();
        if (encoder->pool)
            gf_pool_wait(encoder->pool, &encoder_slot_at(encoder, encoder->written)->work);
        encoder->caller_seconds -= gf_now() - start;
        status = encoder_write_strip(encoder, error);
    }
    return status;
}

/* ---- filling --------------------------------------------------------------------------------- */

static unsigned char *encoder_row_in(const png_encoder *encoder, const encoder_slot *s,
                                     uint64_t r) {
    return s->memory + GF_PNG_PAD + (size_t)r * encoder->strips.row_stride;
}

/* Start a strip with the last rows of the previous one. */
static void encoder_begin_strip(png_encoder *encoder) {
    const gf_png_strips *strips = &encoder->strips;
    encoder_slot *s = encoder_slot_at(encoder, encoder->filled);
    s->head = encoder->y == 0 ? 2 : 0;
    if (encoder->y == 0) {
        s->strip = (gf_png_strip){.rows = encoder_row_in(encoder, s, 0)}; /* zeroed row above */
        return;
    }
    const encoder_slot *before = encoder_slot_at(encoder, encoder->filled - 1);
    const uint64_t held = before->strip.context + before->strip.count;
    const uint64_t context = encoder->y < strips->context ? encoder->y : strips->context;
    for (uint64_t r = 0; r <= context; r++)
        memmove(encoder_row_in(encoder, s, r), encoder_row_in(encoder, before, held - context + r),
                strips->row_bytes);
    s->strip = (gf_png_strip){.rows = encoder_row_in(encoder, s, 0), .context = context};
}

/* Submit a full strip to the pool, or encode it here. */
static gf_status encoder_submit_strip(png_encoder *encoder, gf_error *error) {
    encoder_slot *s = encoder_slot_at(encoder, encoder->filled++);
    s->strip.last = encoder->y == encoder->format.height;
    if (gf_png_tries_zlib(encoder->strips.effort))
        gf_png_strip_choose(encoder->caller_scratch, encoder->rule, &s->strip);
    encoder->rule = s->strip.rule;
    if (encoder->pool)
        gf_pool_submit(encoder->pool, &s->work);
    else
        encoder_encode_strip(s, encoder->caller_scratch);
    return encoder_write_strips(encoder, s->strip.last ? 0 : encoder->slot_count - 1, error);
}

static gf_status encoder_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                               gf_error *error) {
    png_encoder *encoder = (png_encoder *)base;
    const unsigned char *from = src;
    const gf_png_strips *strips = &encoder->strips;
    const gf_png_simd *simd = gf_png_simd_of(strips->isa);
    const double start = gf_now();
    gf_status status = GF_OK;
    for (uint64_t i = 0; i < rows && !status; i++) {
        encoder_slot *s = encoder_slot_at(encoder, encoder->filled);
        if (encoder->y % strips->rows == 0)
            encoder_begin_strip(encoder);
        unsigned char *to = encoder_row_in(encoder, s, s->strip.context + 1 + s->strip.count++);
        if (encoder->format.type == GF_U16)
            simd->swap16(to, from + i * stride, strips->row_bytes / 2);
        else
            memcpy(to, from + i * stride, strips->row_bytes);
        encoder->base.clipped += simd->count_largest(&encoder->format, to);
        encoder->y++;
        if (encoder->y % strips->rows == 0 || encoder->y == encoder->format.height)
            status = encoder_submit_strip(encoder, error);
    }
    encoder->caller_seconds += gf_now() - start;
    return status;
}

static gf_status encoder_write_encoded(gf_sink *base, const void *data, size_t size,
                                       gf_error *error) {
    return gf_output_write(base->output, data, size, error);
}

/* ---- opening and closing --------------------------------------------------------------------- */

size_t gf_png_bound(const gf_format *format) {
    enum { END_BYTES = 4 + 12 }; /* Adler-32 and the IEND chunk */
    gf_png_strips strips;
    if (gf_format_check(format, "png", NULL) || format->type == GF_F32)
        return 0;
    gf_png_strips_init(format, GF_PNG_FAST, gf_isa_best(), &strips);
    const uint64_t count = (format->height - 1) / strips.rows + 1;
    return GF_PNG_HEAD + 2 + END_BYTES +
           (size_t)count * (gf_png_strip_bound(&strips) + GF_PNG_IDAT_HEAD + GF_PNG_IDAT_TAIL);
}

static size_t encoder_memory_bytes(const gf_png_strips *strips) {
    return GF_PNG_PAD + (size_t)(strips->rows + strips->context + 1) * strips->row_stride;
}

static size_t encoder_out_bytes(const gf_png_strips *strips) {
    return HEAD_BYTES + gf_png_strip_bound(strips) + TAIL_BYTES;
}

/* Two more slots than threads: one is filled, one is written. */
static uint64_t encoder_bytes_for(const gf_png_strips *strips, uint32_t threads) {
    const uint64_t slot_bytes = encoder_memory_bytes(strips) + encoder_out_bytes(strips);
    return threads <= 1 ? slot_bytes + gf_png_scratch_bytes(strips)
                        : (threads + 2) * slot_bytes + (threads + 1) * gf_png_scratch_bytes(strips);
}

static bool encoder_allocate(png_encoder *encoder) {
    const gf_png_strips *strips = &encoder->strips;
    const uint32_t threads = encoder->base.threads;
    encoder->slots = calloc(encoder->slot_count, sizeof *encoder->slots);
    if (!encoder->slots)
        return false;
    for (uint32_t i = 0; i < encoder->slot_count; i++) {
        encoder_slot *s = &encoder->slots[i];
        s->encoder = encoder;
        s->work = (gf_work){.run = encoder_work, .context = s, .count = 1};
        s->memory = calloc(1, encoder_memory_bytes(strips));
        s->out = malloc(encoder_out_bytes(strips));
        if (!s->memory || !s->out)
            return false;
    }
    if (threads && (!(encoder->scratch = calloc(threads, sizeof(gf_png_scratch *))) ||
                    gf_pool_open(threads, &encoder->pool, NULL)))
        return false;
    if (threads && !gf_png_tries_zlib(strips->effort))
        return true;
    encoder->caller_scratch = gf_png_scratch_new(strips);
    return encoder->caller_scratch;
}

/* Allocate for at most `threads` threads: the memory of all but the first, and the part of the
 * first that is counted, is limited to half of max_memory. */
static gf_status encoder_open_slots(png_encoder *encoder, uint32_t threads, gf_error *error) {
    const gf_png_strips *strips = &encoder->strips;
    const char *name = gf_output_name(encoder->base.output);
    const uint64_t count = (encoder->format.height - 1) / strips->rows + 1;
    const uint64_t min = encoder_bytes_for(strips, 1);
    const uint64_t counted = min > UNCOUNTED_BYTES ? min - UNCOUNTED_BYTES : 0;
    uint32_t used = threads < count ? threads : (uint32_t)count;
    while (used > 1 && encoder_bytes_for(strips, used) - min + counted > encoder->max_memory / 2)
        used--;
    encoder->base.threads = used > 1 ? used : 0;
    encoder->slot_count = used > 1 ? used + 2 : 1;
    encoder->base.memory = encoder_bytes_for(strips, used) - min + counted;
    const gf_status status =
        gf_check_memory(counted, encoder->max_memory, name, "the encoder", error);
    return status || encoder_allocate(encoder)
               ? status
               : gf_fail_memory(error, name, encoder_bytes_for(strips, used), "the encoder");
}

/* Running work completes first. */
static void encoder_free_slots(png_encoder *encoder) {
    encoder->stop = true;
    gf_pool_close(encoder->pool);
    for (uint32_t i = 0; encoder->slots && i < encoder->slot_count; i++) {
        free(encoder->slots[i].memory);
        free(encoder->slots[i].out);
    }
    for (uint32_t i = 0; encoder->scratch && i < encoder->base.threads; i++)
        gf_png_scratch_free(encoder->scratch[i]);
    gf_png_scratch_free(encoder->caller_scratch);
    free(encoder->scratch);
    free(encoder->slots);
    encoder->pool = NULL;
    encoder->slots = NULL;
    encoder->scratch = NULL;
    encoder->caller_scratch = NULL;
    encoder->stop = false;
}

static gf_status encoder_shrink(gf_sink *base, gf_error *error) {
    png_encoder *encoder = (png_encoder *)base;
    base->shrink = NULL;
    encoder_free_slots(encoder);
    return encoder_open_slots(encoder, 1, error);
}

static gf_status encoder_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    const png_encoder *encoder = (png_encoder *)base;
    gf_status status = GF_OK;
    base->busy_seconds =
        encoder->caller_seconds + (encoder->pool ? gf_pool_busy(encoder->pool) : 0);
    if (metadata)
        status = chunk_write_metadata(base->output, metadata, true, error);
    if (!status)
        status = chunk_write(base->output, "IEND", "", 0, error);
    return status ? status : gf_output_prepare(base->output, error);
}

static void encoder_close(gf_sink *base) {
    png_encoder *encoder = (png_encoder *)base;
    gf_output_close(base->output);
    encoder_free_slots(encoder);
    free(encoder);
}

gf_status gf_png_sink_open_for(gf_isa isa, const gf_sink_setup *setup, gf_sink **opened,
                               gf_error *error) {
    static const gf_sink_ops ops = {encoder_write, encoder_finish, encoder_close};
    png_encoder *encoder = gf_sink_new(sizeof *encoder, &ops, setup->output, error);
    if (!encoder)
        return GF_FAILED;
    encoder->base.cost = gf_png_encode_cost(setup->compression);
    encoder->base.exact = true;
    encoder->base.form = GF_FORM_PNG;
    encoder->base.counts_clipped = true;
    encoder->base.shrink = encoder_shrink;
    encoder->base.write_encoded = encoder_write_encoded;
    encoder->format = *setup->format;
    encoder->max_memory = setup->max_memory;
    encoder->adler = 1;
    gf_png_effort effort;
    unsigned char head[GF_PNG_HEAD];
    gf_status status = GF_OK;
    gf_png_head(setup->format, head);
    if (!png_effort_of(setup->compression, &effort))
        status = gf_fail(error, GF_USAGE,
                         "%s: unknown compression '%s'; use none, fast, balanced or small",
                         gf_output_name(setup->output), setup->compression);
    gf_png_strips_init(setup->format, effort, isa, &encoder->strips);
    if (!status)
        status = encoder_open_slots(encoder, setup->threads, error);
    if (!status)
        status = gf_output_write(setup->output, head, sizeof head, error);
    if (!status)
        status = chunk_write_metadata(setup->output, setup->metadata, false, error);
    if (status)
        encoder_close(&encoder->base);
    else
        *opened = &encoder->base;
    return status;
}

gf_status gf_png_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    return gf_png_sink_open_for(gf_isa_best(), setup, opened, error);
}
