/* What payloads are, and what becomes of them. The samples of one bin go into their file as they
 * come, whatever their number. Those of several bins leave bin by bin: until the last band they are
 * kept, within max_memory. */
#include "hist/hist_samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "io/sample_sink.h"

/* A payload that is kept. */
typedef struct gf_hist_kept {
    struct gf_hist_kept *next;
    uint64_t payload[];
} gf_hist_kept;

static size_t hist_type_bytes(const gf_hist_samples *samples) {
    return gf_type_bytes(samples->plan->head.in.type);
}

/* Shown ones of a bin at most, while they come in. */
static uint64_t hist_quota(const gf_hist_samples *samples) {
    return samples->plan->extracts <= GF_HIST_SHOWN_BINS ? GF_HIST_SHOWN : 0;
}

static gf_status hist_alloc_shown(gf_hist_samples *samples, uint64_t room, gf_error *error) {
    samples->capacity = room;
    samples->positions = malloc(room * sizeof *samples->positions + 1);
    samples->values = malloc(room * hist_type_bytes(samples) + 1);
    if (!samples->positions || !samples->values)
        return gf_fail_memory(error, samples->keep.name,
                              room * (sizeof *samples->positions + hist_type_bytes(samples)),
                              "extracted samples");
    return GF_OK;
}

gf_status gf_hist_samples_open(const gf_hist_plan *plan, const gf_keep *keep, gf_hist_samples **out,
                               gf_error *error) {
    gf_hist_samples *samples = calloc(1, sizeof *samples);
    *out = samples;
    if (!samples)
        return gf_fail_memory(error, keep->name, sizeof *samples, "extracted samples");
    samples->plan = plan;
    samples->keep = *keep;
    samples->hold =
        keep->all ||
        (keep->samples && (plan->extracts > 1 || gf_sample_sink_wants_count(keep->samples)));
    samples->counts = calloc(plan->extracts, sizeof *samples->counts);
    samples->begins = calloc((size_t)plan->extracts + 1, sizeof *samples->begins);
    gf_status status = GF_OK;
    if (!samples->counts || !samples->begins)
        status = gf_fail_memory(error, keep->name, plan->extracts * 2 * sizeof(uint64_t),
                                "extracted samples");
    else if (!keep->all)
        status = hist_alloc_shown(samples, plan->extracts * hist_quota(samples), error);
    if (status) {
        gf_hist_samples_close(samples);
        *out = NULL;
    }
    return status;
}

void gf_hist_samples_close(gf_hist_samples *samples) {
    if (!samples)
        return;
    while (samples->first) {
        gf_hist_kept *next = samples->first->next;
        free(samples->first);
        samples->first = next;
    }
    free(samples->counts);
    free(samples->begins);
    free(samples->positions);
    free(samples->values);
    free(samples);
}

/* ---- payloads -------------------------------------------------------------------------------- */

/* The samples of one bin in a payload. */
typedef struct gf_hist_bin_samples {
    uint64_t count;
    const uint64_t *positions;
    const unsigned char *values;
} gf_hist_bin_samples;

static gf_hist_bin_samples hist_piece(const gf_hist_plan *plan, const uint64_t *payload,
                                      uint32_t rank) {
    const uint64_t *positions = payload + plan->extracts + 1;
    const unsigned char *values = (const unsigned char *)(positions + payload[plan->extracts]);
    const uint64_t begin = payload[rank];
    return (gf_hist_bin_samples){payload[rank + 1] - begin, positions + begin,
                                 values + begin * gf_type_bytes(plan->head.in.type)};
}

/* Copies samples of a piece to place `at` of those that are shown. */
static void hist_show(gf_hist_samples *samples, uint64_t at, const gf_hist_bin_samples *piece,
                      uint64_t count) {
    memcpy(samples->positions + at, piece->positions, count * sizeof *piece->positions);
    memcpy(samples->values + at * hist_type_bytes(samples), piece->values,
           count * hist_type_bytes(samples));
}

static gf_status hist_hold(gf_hist_samples *samples, const uint64_t *payload, gf_error *error) {
    const gf_hist_plan *plan = samples->plan;
    const size_t bytes =
        gf_hist_head_bytes(plan) + gf_hist_sample_bytes(plan, payload[plan->extracts]);
    /* What is to be looked at later is copied once more. */
    samples->held_bytes += bytes * (samples->keep.all ? 2 : 1);
    if (samples->held_bytes > samples->keep.max_memory)
        return gf_fail(error, GF_FAILED,
                       "%s: extracted samples of several bins, and .npy to a pipe, are held until "
                       "the end, and need more than %" PRIu64
                       " bytes; raise --max-memory, or extract one bin into a file",
                       samples->keep.name, samples->keep.max_memory);
    gf_hist_kept *kept = malloc(sizeof *kept + bytes);
    if (!kept)
        return gf_fail_memory(error, samples->keep.name, bytes, "extracted samples");
    kept->next = NULL;
    memcpy(kept->payload, payload, bytes);
    if (samples->last)
        samples->last->next = kept;
    else
        samples->first = kept;
    samples->last = kept;
    return GF_OK;
}

static gf_status hist_write_piece(const gf_hist_samples *samples, uint32_t rank,
                                  const gf_hist_bin_samples *piece, gf_error *error) {
    const gf_hist_plan *plan = samples->plan;
    return gf_sample_sink_write(samples->keep.samples, gf_hist_bin_of_rank(plan, rank),
                                piece->positions, piece->values, piece->count, error);
}

gf_status gf_hist_samples_take(gf_hist_samples *samples, const void *payload, gf_error *error) {
    const uint64_t most = hist_quota(samples);
    gf_status status = GF_OK;
    for (uint32_t rank = 0; rank < samples->plan->extracts && !status; rank++) {
        gf_hist_bin_samples piece = hist_piece(samples->plan, payload, rank);
        const uint64_t had = samples->counts[rank];
        if (!samples->keep.all && had < most)
            hist_show(samples, rank * most + had, &piece,
                      piece.count < most - had ? piece.count : most - had);
        samples->counts[rank] += piece.count;
        if (samples->keep.samples && !samples->hold)
            status = hist_write_piece(samples, rank, &piece, error);
    }
    if (!status && samples->hold && ((const uint64_t *)payload)[samples->plan->extracts] > 0)
        status = hist_hold(samples, payload, error);
    return status;
}

/* ---- after the last band --------------------------------------------------------------------- */

/* Every bin's shown samples move up to where those of the bin before it end. */
static void hist_close_gaps(gf_hist_samples *samples) {
    const uint64_t most = hist_quota(samples);
    uint64_t at = 0;
    for (uint32_t rank = 0; rank < samples->plan->extracts; rank++) {
        const uint64_t count = samples->counts[rank] < most ? samples->counts[rank] : most;
        const size_t bytes = hist_type_bytes(samples);
        samples->begins[rank] = at;
        memmove(samples->positions + at, samples->positions + rank * most,
                count * sizeof *samples->positions);
        memmove(samples->values + at * bytes, samples->values + rank * most * bytes, count * bytes);
        at += count;
    }
    samples->begins[samples->plan->extracts] = at;
}

static gf_status hist_deliver(gf_hist_samples *samples, gf_error *error) {
    uint64_t at = 0;
    for (uint32_t rank = 0; rank < samples->plan->extracts; rank++) {
        if (samples->keep.all)
            samples->begins[rank] = at;
        for (const gf_hist_kept *kept = samples->first; kept; kept = kept->next) {
            gf_hist_bin_samples piece = hist_piece(samples->plan, kept->payload, rank);
            gf_status status = GF_OK;
            if (samples->keep.samples)
                status = hist_write_piece(samples, rank, &piece, error);
            if (status)
                return status;
            if (samples->keep.all)
                hist_show(samples, at, &piece, piece.count);
            at += piece.count;
        }
    }
    if (samples->keep.all)
        samples->begins[samples->plan->extracts] = at;
    return GF_OK;
}

gf_status gf_hist_samples_finish(gf_hist_samples *samples, gf_error *error) {
    uint64_t all = 0;
    for (uint32_t rank = 0; rank < samples->plan->extracts; rank++)
        all += samples->counts[rank];
    gf_status status = GF_OK;
    if (samples->keep.all)
        status = hist_alloc_shown(samples, all, error);
    else
        hist_close_gaps(samples);
    if (!status && samples->hold && samples->keep.samples &&
        gf_sample_sink_wants_count(samples->keep.samples))
        status = gf_sample_sink_count(samples->keep.samples, all, error);
    if (!status && samples->hold)
        status = hist_deliver(samples, error);
    return status;
}

/* ---- against golden's ------------------------------------------------------------------------ */

/* Through the samples of one extracted bin, from piece to piece. */
typedef struct gf_hist_walk {
    const gf_payloads *payloads;
    uint32_t piece;
    uint64_t next;     /* of the piece's samples of this bin */
    uint64_t position; /* of the sample that was found last, and its bits */
    uint32_t bits;
} gf_hist_walk;

static const uint64_t *hist_payload(const gf_payloads *payloads, uint32_t piece) {
    return (const uint64_t *)(const void *)(payloads->data + piece * payloads->stride);
}

/* Does every head hold ascending offsets, and all together no more samples than there are? */
static bool hist_is_sound(const gf_hist_plan *plan, uint64_t rows, const gf_payloads *payloads) {
    uint64_t left = rows * plan->head.in.width * plan->measured;
    for (uint32_t p = 0; p < payloads->count; p++) {
        const uint64_t *offsets = hist_payload(payloads, p), count = offsets[plan->extracts];
        if (offsets[0] != 0 || count > left)
            return false;
        for (uint32_t r = 0; r < plan->extracts; r++)
            if (offsets[r] > offsets[r + 1])
                return false;
        left -= count;
    }
    return true;
}

/* Find the next sample of an extracted bin; false after the last one. */
static bool hist_next(const gf_hist_plan *plan, uint32_t rank, gf_hist_walk *walk) {
    for (; walk->piece < walk->payloads->count; walk->piece++, walk->next = 0) {
        const gf_hist_bin_samples piece =
            hist_piece(plan, hist_payload(walk->payloads, walk->piece), rank);
        if (walk->next == piece.count)
            continue;
        walk->position = piece.positions[walk->next];
        walk->bits = gf_sample_bits(plan->head.in.type, piece.values, walk->next++);
        return true;
    }
    return false;
}

/* In image order, of the samples of one bin. */
static bool hist_bin_differs(const gf_hist_plan *plan, uint32_t rank, const gf_payloads *golden,
                             const gf_payloads *got, char *where, size_t size) {
    const uint32_t bin = gf_hist_bin_of_rank(plan, rank);
    gf_hist_walk a = {.payloads = golden}, b = {.payloads = got};
    for (;;) {
        const bool wanted = hist_next(plan, rank, &a), there = hist_next(plan, rank, &b);
        if (!wanted && !there)
            return false;
        if (wanted && there && a.position == b.position && a.bits == b.bits)
            continue;
        if (wanted != there)
            snprintf(where, size, "bin %" PRIu32 " has %s samples than it should have", bin,
                     there ? "more" : "fewer");
        else
            snprintf(where, size,
                     "a sample of bin %" PRIu32 " is 0x%" PRIx32 " at place %" PRIu64
                     " and should be 0x%" PRIx32 " at place %" PRIu64,
                     bin, b.bits, b.position, a.bits, a.position);
        return true;
    }
}

static bool hist_payload_differ(const gf_plan *head, uint64_t rows, const gf_payloads *golden,
                                const gf_payloads *got, char *where, size_t size) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    if (!hist_is_sound(plan, rows, got)) {
        snprintf(where, size, "the numbers of extracted samples contradict each other");
        return true;
    }
    for (uint32_t rank = 0; rank < plan->extracts; rank++)
        if (hist_bin_differs(plan, rank, golden, got, where, size))
            return true;
    return false;
}

/* ---- what payloads are ----------------------------------------------------------------------- */

static size_t hist_payload_bytes(const gf_plan *head, uint64_t rows) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    return gf_hist_head_bytes(plan) +
           gf_hist_sample_bytes(plan, rows * head->in.width * plan->measured);
}

static size_t hist_payload_used(const gf_plan *head, const void *payload) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    const uint64_t *offsets = payload;
    return gf_hist_head_bytes(plan) + gf_hist_sample_bytes(plan, offsets[plan->extracts]);
}

static void hist_layout(const gf_plan *head, gf_sample_layout *out) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    *out = (gf_sample_layout){.type = head->in.type,
                              .width = head->in.width,
                              .channels = plan->measured,
                              .with_bin = plan->extracts > 1,
                              .bins = plan->bins};
    for (uint32_t s = 0; s < plan->measured; s++) {
        out->names[s] = gf_hist_channel_name(plan, s);
        out->indices[s] = plan->luma ? GF_SAMPLE_LUMA : (uint8_t)(plan->first + s);
    }
}

const gf_payload_format gf_hist_payload = {
    .bytes = hist_payload_bytes,
    .used = hist_payload_used,
    .differ = hist_payload_differ,
    .layout = hist_layout,
};
