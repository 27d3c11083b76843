/* Ring of strips and threads of the encoders. */
#include "io/strip/encoder.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"

/* Memory of the first thread that is not counted. Only wide rows need more. */
#define UNCOUNTED_BYTES (UINT64_C(16) << 20)

static gf_encoder_slot *encoder_slot_at(const gf_encoder *encoder, uint64_t k) {
    return &encoder->slots[k % encoder->slot_count];
}

static void encoder_work(void *context, uint32_t task, uint32_t thread) {
    gf_encoder_slot *s = context;
    gf_encoder *encoder = s->encoder;
    gf_png_scratch **scratch = &encoder->scratch[thread];
    (void)task;
    if (encoder->stop)
        return;
    if (!*scratch)
        *scratch = gf_png_scratch_new(&encoder->strips);
    s->encoded = *scratch && encoder->encode(s, *scratch);
}

/* Wait for strips and write them until at most max remain. */
static gf_status encoder_write_strips(gf_encoder *encoder, uint64_t max, gf_error *error) {
    const char *name = gf_output_name(encoder->base.output);
    gf_status status = GF_OK;
    while (encoder->filled - encoder->written > max && !status) {
        gf_encoder_slot *s = encoder_slot_at(encoder, encoder->written);
        const double start = gf_now();
        if (encoder->pool)
            gf_pool_wait(encoder->pool, &s->work);
        encoder->caller_seconds -= gf_now() - start;
        encoder->written++;
        status = s->encoded ? encoder->write(encoder, s, error)
                 : s->failure[0]
                     ? gf_fail(error, GF_FAILED, "%s: %s", name, s->failure)
                     : gf_fail_memory(error, name, encoder->scratch_bytes, "the encoder");
    }
    return status;
}

static unsigned char *encoder_row_in(const gf_encoder *encoder, const gf_encoder_slot *s,
                                     uint64_t r) {
    return s->memory + GF_PNG_PAD + (size_t)r * encoder->strips.row_stride;
}

gf_status gf_encoder_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                           gf_error *error) {
    gf_encoder *encoder = (gf_encoder *)base;
    const unsigned char *from = src;
    const gf_png_strips *strips = &encoder->strips;
    const gf_png_simd *simd = gf_png_simd_of(strips->isa);
    const double start = gf_now();
    gf_status status = GF_OK;
    for (uint64_t i = 0; i < rows && !status; i++) {
        gf_encoder_slot *s = encoder_slot_at(encoder, encoder->filled);
        if (encoder->y % strips->rows == 0) {
            /* Start with the last rows of the previous strip. The row above the image is zeroed. */
            const uint64_t context = encoder->y < strips->context ? encoder->y : strips->context;
            const gf_encoder_slot *before = encoder_slot_at(encoder, encoder->filled - 1);
            const uint64_t before_rows = before->strip.context + before->strip.count;
            s->first = encoder->y == 0;
            for (uint64_t r = 0; r <= context && !s->first; r++)
                memmove(encoder_row_in(encoder, s, r),
                        encoder_row_in(encoder, before, before_rows - context + r),
                        strips->row_bytes);
            s->strip = (gf_png_strip){.rows = encoder_row_in(encoder, s, 0), .context = context};
        }
        unsigned char *to = encoder_row_in(encoder, s, s->strip.context + 1 + s->strip.count++);
        if (encoder->swap)
            simd->swap16(to, from + i * stride, strips->row_bytes / 2);
        else
            memcpy(to, from + i * stride, strips->row_bytes);
        if (base->counts_clipped)
            base->clipped += simd->count_largest(&encoder->format, to);
        const bool last = ++encoder->y == encoder->format.height;
        if (!last && encoder->y % strips->rows != 0)
            continue;
        /* Submit the full strip to the pool, or encode it here. Then it belongs to its thread. */
        gf_png_scratch *scratch = encoder->scratch[base->threads];
        s->strip.last = last;
        if (gf_png_tries_zlib(strips->effort))
            gf_png_strip_choose(scratch, encoder->rule, &s->strip);
        encoder->rule = s->strip.rule;
        encoder->filled++;
        if (encoder->pool)
            gf_pool_submit(encoder->pool, &s->work);
        else
            s->encoded = !encoder->encode || encoder->encode(s, scratch);
        status = encoder_write_strips(encoder, last ? 0 : encoder->slot_count - 1, error);
    }
    encoder->caller_seconds += gf_now() - start;
    return status;
}

static size_t encoder_memory_bytes(const gf_png_strips *strips) {
    return GF_PNG_PAD + (size_t)(strips->rows + strips->context + 1) * strips->row_stride;
}

/* Two more slots than threads: one is filled, one is written. */
static uint64_t encoder_bytes_for(const gf_encoder *encoder, uint32_t threads) {
    const uint64_t slot_bytes = encoder_memory_bytes(&encoder->strips) + encoder->out_bytes;
    return threads <= 1 ? slot_bytes + encoder->scratch_bytes
                        : (threads + 2) * slot_bytes + (threads + 1) * encoder->scratch_bytes;
}

/* Allocate for at most `threads` threads: the memory of all but the first, and the part of the
 * first that is counted, is limited to half of max_memory. */
static gf_status encoder_open_slots(gf_encoder *encoder, uint32_t threads, gf_error *error) {
    const gf_png_strips *strips = &encoder->strips;
    const char *name = gf_output_name(encoder->base.output);
    const uint64_t count = (encoder->format.height - 1) / strips->rows + 1;
    const uint64_t min = encoder_bytes_for(encoder, 1);
    const uint64_t counted = min > UNCOUNTED_BYTES ? min - UNCOUNTED_BYTES : 0;
    uint32_t used = !encoder->encode ? 1 : threads < count ? threads : (uint32_t)count;
    while (used > 1 && encoder_bytes_for(encoder, used) - min + counted > encoder->max_memory / 2)
        used--;
    threads = used > 1 ? used : 0;
    encoder->base.threads = threads;
    encoder->slot_count = used > 1 ? used + 2 : 1;
    encoder->base.memory = encoder->held_bytes + encoder_bytes_for(encoder, used) - min + counted;
    if (gf_check_memory(counted, encoder->max_memory, name, "the encoder", error))
        return GF_FAILED;
    encoder->slots = calloc(encoder->slot_count, sizeof *encoder->slots);
    encoder->scratch = calloc((size_t)threads + 1, sizeof(gf_png_scratch *));
    bool complete = encoder->slots && encoder->scratch;
    for (uint32_t i = 0; i < encoder->slot_count && complete; i++) {
        gf_encoder_slot *s = &encoder->slots[i];
        s->encoder = encoder;
        s->work = (gf_work){.run = encoder_work, .context = s, .count = 1};
        s->memory = calloc(1, encoder_memory_bytes(strips));
        s->out = malloc(encoder->out_bytes);
        complete = s->memory && s->out;
    }
    if (complete && threads)
        complete = !gf_pool_open(threads, &encoder->pool, NULL);
    if (complete && encoder->encode && (!threads || gf_png_tries_zlib(strips->effort)))
        complete = (encoder->scratch[threads] = gf_png_scratch_new(strips));
    return complete ? GF_OK
                    : gf_fail_memory(error, name, encoder_bytes_for(encoder, used), "the encoder");
}

/* Running work completes first. */
static void encoder_free_slots(gf_encoder *encoder) {
    encoder->stop = true;
    gf_pool_close(encoder->pool);
    for (uint32_t i = 0; encoder->slots && i < encoder->slot_count; i++) {
        free(encoder->slots[i].memory);
        free(encoder->slots[i].out);
    }
    for (uint32_t i = 0; encoder->scratch && i <= encoder->base.threads; i++)
        gf_png_scratch_free(encoder->scratch[i]);
    free(encoder->scratch);
    free(encoder->slots);
    encoder->pool = NULL;
    encoder->slots = NULL;
    encoder->scratch = NULL;
    encoder->stop = false;
}

static gf_status encoder_shrink(gf_sink *base, gf_error *error) {
    gf_encoder *encoder = (gf_encoder *)base;
    base->shrink = NULL;
    encoder_free_slots(encoder);
    return encoder_open_slots(encoder, 1, error);
}

gf_status gf_encoder_open(gf_encoder *encoder, const gf_sink_setup *setup, gf_error *error) {
    encoder->base.counts_clipped = setup->format->type != GF_F32;
    encoder->base.shrink = encoder_shrink;
    encoder->format = *setup->format;
    encoder->max_memory = setup->max_memory - encoder->held_bytes;
    return encoder_open_slots(encoder, setup->threads, error);
}

void gf_encoder_end(gf_encoder *encoder) {
    encoder->base.busy_seconds =
        encoder->caller_seconds + (encoder->pool ? gf_pool_busy(encoder->pool) : 0);
}

void gf_encoder_close(gf_encoder *encoder) {
    gf_output_close(encoder->base.output);
    encoder_free_slots(encoder);
}
