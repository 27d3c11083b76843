/* The samples of one bin go into their file as they come, whatever their number. Those of several
 * bins leave bin by bin: until the last band they are kept, within max_memory. */
#include "hist/hist_samples.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "error.h"
#include "io/sample_sink.h"
#include "result.h"

/* A payload that is kept. */
typedef struct gf_kept {
    struct gf_kept *next;
    uint64_t payload[];
} gf_kept;

struct gf_hist_samples {
    const gf_hist_plan *plan;
    gf_keep keep;
    bool hold; /* payloads are kept until the end */
    uint64_t held_bytes;
    gf_kept *first, *last;
    uint64_t *counts;    /* of each bin; once ranks have joined, of all ranks, in rank 0 */
    uint64_t *begins;    /* of the shown ones; one more than bins */
    uint64_t *positions; /* shown ones */
    unsigned char *values;
    uint64_t room; /* in both: samples */
};

static size_t type_bytes(const gf_hist_samples *samples) {
    return gf_type_bytes(samples->plan->head.in.type);
}

/* Shown ones of a bin at most, while they come in. */
static uint64_t quota(const gf_hist_samples *samples) {
    return samples->plan->extracts <= GF_HIST_SHOWN_BINS ? GF_HIST_SHOWN : 0;
}

static gf_status make_room(gf_hist_samples *samples, uint64_t room, gf_error *error) {
    samples->room = room;
    samples->positions = malloc(room * sizeof *samples->positions + 1);
    samples->values = malloc(room * type_bytes(samples) + 1);
    if (!samples->positions || !samples->values)
        return gf_fail_memory(error, samples->keep.name,
                              room * (sizeof *samples->positions + type_bytes(samples)),
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
        status = make_room(samples, plan->extracts * quota(samples), error);
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
        gf_kept *next = samples->first->next;
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
typedef struct gf_bin_samples {
    uint64_t count;
    const uint64_t *positions;
    const unsigned char *values;
} gf_bin_samples;

static gf_bin_samples piece_of(const gf_hist_samples *samples, const uint64_t *payload,
                               uint32_t rank) {
    const uint32_t extracts = samples->plan->extracts;
    const uint64_t *positions = payload + extracts + 1;
    const unsigned char *values = (const unsigned char *)(positions + payload[extracts]);
    const uint64_t begin = payload[rank];
    return (gf_bin_samples){payload[rank + 1] - begin, positions + begin,
                            values + begin * type_bytes(samples)};
}

/* Copies samples of a piece to place `at` of those that are shown. */
static void show(gf_hist_samples *samples, uint64_t at, const gf_bin_samples *piece,
                 uint64_t count) {
    memcpy(samples->positions + at, piece->positions, count * sizeof *piece->positions);
    memcpy(samples->values + at * type_bytes(samples), piece->values, count * type_bytes(samples));
}

static gf_status hold(gf_hist_samples *samples, const uint64_t *payload, gf_error *error) {
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
    gf_kept *kept = malloc(sizeof *kept + bytes);
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

static gf_status write_piece(const gf_hist_samples *samples, uint32_t rank,
                             const gf_bin_samples *piece, gf_error *error) {
    const gf_hist_plan *plan = samples->plan;
    return gf_sample_sink_write(samples->keep.samples,
                                plan->extract_all ? rank : plan->listed[rank], piece->positions,
                                piece->values, piece->count, error);
}

gf_status gf_hist_samples_take(gf_hist_samples *samples, const void *payload, gf_error *error) {
    const uint64_t most = quota(samples);
    gf_status status = GF_OK;
    for (uint32_t rank = 0; rank < samples->plan->extracts && !status; rank++) {
        gf_bin_samples piece = piece_of(samples, payload, rank);
        const uint64_t had = samples->counts[rank];
        if (!samples->keep.all && had < most)
            show(samples, rank * most + had, &piece,
                 piece.count < most - had ? piece.count : most - had);
        samples->counts[rank] += piece.count;
        if (samples->keep.samples && !samples->hold)
            status = write_piece(samples, rank, &piece, error);
    }
    if (!status && samples->hold && ((const uint64_t *)payload)[samples->plan->extracts] > 0)
        status = hold(samples, payload, error);
    return status;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

/* What a rank tells the others, in one block of memory. */
typedef struct gf_seen {
    uint64_t *counts;    /* of each bin */
    uint64_t *positions; /* of those shown, a quota for each bin */
    unsigned char *values;
} gf_seen;

static size_t seen_bytes(const gf_hist_samples *samples) {
    const size_t extracts = samples->plan->extracts, room = extracts * (size_t)quota(samples);
    return (extracts + room) * sizeof(uint64_t) + room * type_bytes(samples);
}

static gf_seen seen_in(const gf_hist_samples *samples, void *block) {
    const size_t extracts = samples->plan->extracts, room = extracts * (size_t)quota(samples);
    uint64_t *counts = block;
    return (gf_seen){.counts = counts,
                     .positions = counts + extracts,
                     .values = (unsigned char *)(counts + extracts + room)};
}

/* The first ones of both, by their positions: whose they are and who comes when is all the same. */
static void merge_shown(const gf_hist_samples *samples, const gf_seen *to, const gf_seen *from,
                        uint32_t bin) {
    const uint64_t most = quota(samples);
    const size_t bytes = type_bytes(samples);
    const gf_seen *sides[] = {to, from};
    uint64_t positions[GF_HIST_SHOWN] = {0}, at[] = {0, 0}, shown = 0;
    unsigned char values[GF_HIST_SHOWN * sizeof(float)] = {0};
    while (shown < most && (at[0] < to->counts[bin] || at[1] < from->counts[bin])) {
        const uint64_t *own = to->positions + bin * most + at[0];
        const uint64_t *other = from->positions + bin * most + at[1];
        const bool second =
            at[0] == to->counts[bin] || (at[1] < from->counts[bin] && *other < *own);
        positions[shown] = second ? *other : *own;
        memcpy(values + shown * bytes, sides[second]->values + (bin * most + at[second]) * bytes,
               bytes);
        at[second]++;
        shown++;
    }
    memcpy(to->positions + bin * most, positions, shown * sizeof *positions);
    memcpy(to->values + bin * most * bytes, values, shown * bytes);
}

static void merge_seen(const void *context, void *data, const void *other) {
    const gf_hist_samples *samples = context;
    const gf_seen to = seen_in(samples, data), from = seen_in(samples, (void *)other);
    for (uint32_t bin = 0; bin < samples->plan->extracts; bin++) {
        merge_shown(samples, &to, &from, bin);
        to.counts[bin] += from.counts[bin];
    }
}

gf_status gf_hist_samples_join(gf_hist_samples *samples, const gf_ranks *ranks, gf_error *error) {
    const size_t bytes = seen_bytes(samples);
    const size_t counts = samples->plan->extracts * sizeof *samples->counts;
    const size_t shown = samples->room * sizeof *samples->positions;
    void *block = malloc(bytes);
    gf_status status = GF_OK;
    if (!block)
        status = gf_fail_memory(error, samples->keep.name, bytes, "extracted samples");
    status = gf_ranks_agree(ranks, status, error);
    if (!status && block && !gf_alone(ranks)) {
        const gf_seen seen = seen_in(samples, block);
        memcpy(seen.counts, samples->counts, counts);
        memcpy(seen.positions, samples->positions, shown);
        memcpy(seen.values, samples->values, samples->room * type_bytes(samples));
        ranks->reduce(ranks->context, block, bytes, merge_seen, samples);
        memset(samples->counts, 0, counts);
        if (gf_is_first(ranks)) {
            memcpy(samples->counts, seen.counts, counts);
            memcpy(samples->positions, seen.positions, shown);
            memcpy(samples->values, seen.values, samples->room * type_bytes(samples));
        }
    }
    free(block);
    return status;
}

/* ---- after the last band --------------------------------------------------------------------- */

/* Every bin's shown samples move up to where those of the bin before it end. */
static void close_gaps(gf_hist_samples *samples) {
    const uint64_t most = quota(samples);
    uint64_t at = 0;
    for (uint32_t rank = 0; rank < samples->plan->extracts; rank++) {
        const uint64_t count = samples->counts[rank] < most ? samples->counts[rank] : most;
        const size_t bytes = type_bytes(samples);
        samples->begins[rank] = at;
        memmove(samples->positions + at, samples->positions + rank * most,
                count * sizeof *samples->positions);
        memmove(samples->values + at * bytes, samples->values + rank * most * bytes, count * bytes);
        at += count;
    }
    samples->begins[samples->plan->extracts] = at;
}

static gf_status deliver(gf_hist_samples *samples, gf_error *error) {
    uint64_t at = 0;
    for (uint32_t rank = 0; rank < samples->plan->extracts; rank++) {
        if (samples->keep.all)
            samples->begins[rank] = at;
        for (const gf_kept *kept = samples->first; kept; kept = kept->next) {
            gf_bin_samples piece = piece_of(samples, kept->payload, rank);
            gf_status status = GF_OK;
            if (samples->keep.samples)
                status = write_piece(samples, rank, &piece, error);
            if (status)
                return status;
            if (samples->keep.all)
                show(samples, at, &piece, piece.count);
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
        status = make_room(samples, all, error);
    else
        close_gaps(samples);
    if (!status && samples->hold && samples->keep.samples &&
        gf_sample_sink_wants_count(samples->keep.samples))
        status = gf_sample_sink_count(samples->keep.samples, all, error);
    if (!status && samples->hold)
        status = deliver(samples, error);
    return status;
}

uint64_t gf_hist_samples_count(const gf_hist_samples *samples, uint32_t rank) {
    return samples->counts[rank];
}

uint64_t gf_hist_samples_shown(const gf_hist_samples *samples) {
    return samples->begins[samples->plan->extracts];
}

uint64_t gf_hist_samples_begin(const gf_hist_samples *samples, uint32_t rank) {
    return samples->begins[rank];
}

gf_hist_sample gf_hist_samples_at(const gf_hist_samples *samples, uint64_t i) {
    const unsigned char *value = samples->values + i * type_bytes(samples);
    uint16_t u16;
    float f32;
    switch (samples->plan->head.in.type) {
    case GF_U8:
        return (gf_hist_sample){samples->positions[i], gf_value_uint(*value)};
    case GF_U16:
        memcpy(&u16, value, sizeof u16);
        return (gf_hist_sample){samples->positions[i], gf_value_uint(u16)};
    default:
        memcpy(&f32, value, sizeof f32);
        return (gf_hist_sample){samples->positions[i], gf_value_float(f32)};
    }
}
