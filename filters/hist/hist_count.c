/* Counting on the CPU: which way, and the ways. */
#include "hist/hist_count.h"

#include <string.h>

/* ---- edges ----------------------------------------------------------------------------------- */

/* Value number `key` of a type in ascending order; of f32 from -infinity to infinity. */
static void value_at(gf_type type, uint32_t key, void *value) {
    const uint8_t u8 = (uint8_t)key;
    const uint16_t u16 = (uint16_t)key;
    const uint32_t f32 = key & 0x80000000u ? key ^ 0x80000000u : ~key;
    memcpy(value,
           type == GF_U8    ? (const void *)&u8
           : type == GF_U16 ? (const void *)&u16
                            : (const void *)&f32,
           gf_type_bytes(type));
}

#define FIRST_F32 0x007fffffu /* the key of -infinity */
#define LAST_F32 0xff800000u  /* and of infinity */

/* The place of a sample among the ascending classes: below the range, the bins, above it. */
static uint32_t class_of(const gf_hist_plan *plan, const gf_hist_simd *simd, uint32_t key) {
    uint32_t value, bin;
    value_at(plan->head.in.type, key, &value);
    simd->bins(plan, &value, 1, &bin);
    if (!plan->ranged)
        return bin;
    return bin == plan->bins + GF_HIST_AT_BELOW   ? 0
           : bin == plan->bins + GF_HIST_AT_ABOVE ? plan->bins + 1
                                                  : bin + 1;
}

/* Classes never descend where values ascend: each operation that makes one of the other is
 * monotone, and so is its rounding. */
static bool find_edge(const gf_hist_plan *plan, const gf_hist_simd *simd, uint32_t class,
                      void *value) {
    const gf_type type = plan->head.in.type;
    uint32_t first = type == GF_F32 ? FIRST_F32 : 0;
    uint32_t last = type == GF_F32 ? LAST_F32 : gf_hist_max(plan);
    if (class_of(plan, simd, last) < class)
        return false;
    while (first < last) {
        const uint32_t middle = first + (last - first) / 2;
        if (class_of(plan, simd, middle) < class)
            first = middle + 1;
        else
            last = middle;
    }
    value_at(type, first, value);
    return true;
}

bool gf_hist_edge(const gf_hist_plan *plan, const gf_hist_simd *simd, uint32_t bin, void *value) {
    return find_edge(plan, simd, bin + plan->ranged, value);
}

/* ---- which way ------------------------------------------------------------------------------- */

/* Copies of a table for 1 to 4 measured channels: as many counters are touched before the same
 * value or bin may meet the same counter again. */
static const uint32_t copies_of[] = {0, 8, 4, 4, 2};

/* Counters from one table to the next: not a power of 2, so that they do not share cache sets, nor
 * a load wait for the store to another one. */
#define CELLS_SMALL 272
#define CELLS_LARGE 1040

static const uint32_t period_of[] = {GF_HIST_PERIOD_U8, GF_HIST_PERIOD_U16, GF_HIST_PERIOD_F32};

/* Count the edges between classes. The first class of f32 has one, too: NaN does not reach it. */
static uint32_t edges_of(const gf_hist_plan *plan) {
    return plan->bins + (plan->ranged ? 2 : 0) - (plan->head.in.type != GF_F32);
}

static size_t cells(const gf_hist_plan *plan, gf_hist_way way) {
    const size_t tables = (size_t)plan->measured * copies_of[plan->measured];
    switch (way) {
    case GF_HIST_ABOVE:
        return (size_t)edges_of(plan) * period_of[plan->head.in.type];
    case GF_HIST_VALUES:
        return tables * CELLS_SMALL;
    case GF_HIST_BINS:
        return tables * (plan->counters <= CELLS_SMALL ? CELLS_SMALL : CELLS_LARGE);
    default:
        return 0;
    }
}

static bool suits(const gf_hist_plan *plan, gf_hist_way way) {
    switch (way) {
    case GF_HIST_ABOVE:
        return edges_of(plan) <= GF_HIST_MAX_EDGES;
    case GF_HIST_VALUES:
        return plan->head.in.type == GF_U8;
    case GF_HIST_BINS:
        return plan->counters <= CELLS_LARGE;
    default:
        return true;
    }
}

size_t gf_hist_table_bytes(const gf_hist_plan *plan) {
    size_t most = 0;
    for (gf_hist_way way = GF_HIST_ABOVE; way < GF_HIST_DIRECT; way++)
        if (suits(plan, way) && cells(plan, way) > most)
            most = cells(plan, way);
    return most * sizeof(uint32_t);
}

gf_hist_counter gf_hist_counter_new(const gf_hist_plan *plan, const gf_hist_simd *simd,
                                    uint64_t pixels, uint32_t *tables) {
    const gf_type type = plan->head.in.type;
    gf_hist_counter counter = {.plan = plan, .simd = simd, .tables = tables};
    const bool few =
        edges_of(plan) <= simd->most_edges[type] &&
        plan->head.in.width * plan->measured >= (uint64_t)simd->least_periods * period_of[type];
    /* Clearing and adding up the counters must not cost more than it saves. */
    while (!suits(plan, counter.way) || (counter.way == GF_HIST_ABOVE && !few) ||
           cells(plan, counter.way) > pixels * plan->measured)
        counter.way++;
    if (counter.way == GF_HIST_ABOVE)
        for (uint32_t e = 0; e < edges_of(plan); e++)
            if (find_edge(plan, simd, e + (type != GF_F32),
                          counter.edges.u8 + e * gf_type_bytes(type)))
                counter.edge_count++; /* no value reaches the others either */
    return counter;
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Counters of 32 bits: no more pixels than this go into them. */
#define FLUSH_PIXELS (UINT64_C(1) << 31)

#define LINE_BYTES 64 /* of the cache */

/* Sample i of a turn has table i: channel i % measured, copy i / measured. */
#define TURNS(NAME, TYPE)                                                                          \
    static inline __attribute__((always_inline)) void NAME##_turns(                                \
        const gf_hist_piece *piece, const TYPE *values, const bool ask, const uint32_t turn,       \
        const uint32_t stride, uint32_t *restrict tables) {                                        \
        const unsigned char *ahead = piece->ahead;                                                 \
        const size_t n = piece->samples, step = turn * piece->ahead_bytes;                         \
        size_t i = 0;                                                                              \
        for (; n - i >= turn; i += turn) {                                                         \
            if (ask) {                                                                             \
                __builtin_prefetch(ahead, 0, 2);                                                   \
                if (step > LINE_BYTES)                                                             \
                    __builtin_prefetch(ahead + LINE_BYTES, 0, 2);                                  \
                ahead += step;                                                                     \
            }                                                                                      \
            _Pragma("GCC unroll 12") for (uint32_t j = 0; j < turn; j++)                           \
                tables[j * stride + values[i + j]]++;                                              \
        }                                                                                          \
        for (uint32_t j = 0; j < n - i; j++)                                                       \
            tables[j * stride + values[i + j]]++;                                                  \
    }                                                                                              \
    static inline __attribute__((always_inline)) void NAME(                                        \
        const gf_hist_piece *piece, const TYPE *values, uint32_t turn, const uint32_t stride,      \
        uint32_t *tables) {                                                                        \
        if (turn == 8 && piece->ahead)                                                             \
            NAME##_turns(piece, values, true, 8, stride, tables);                                  \
        else if (turn == 8)                                                                        \
            NAME##_turns(piece, values, false, 8, stride, tables);                                 \
        else if (piece->ahead)                                                                     \
            NAME##_turns(piece, values, true, 12, stride, tables);                                 \
        else                                                                                       \
            NAME##_turns(piece, values, false, 12, stride, tables);                                \
    }

TURNS(count_values, uint8_t)
TURNS(count_bins, uint32_t)

static void count_direct(const gf_hist_plan *plan, const gf_hist_piece *piece, uint64_t *counts) {
    const uint32_t *bins = piece->bins;
    const uint64_t channel = plan->counters;
    if (plan->measured == 1) {
        for (size_t i = 0; i < piece->samples; i++)
            counts[bins[i]]++;
        return;
    }
    for (size_t i = 0; i < piece->samples; i += plan->measured)
        for (uint32_t s = 0; s < plan->measured; s++)
            counts[s * channel + bins[i + s]]++;
}

void gf_hist_counter_begin(gf_hist_counter *counter, uint64_t *counts) {
    counter->counts = counts;
    counter->pixels = 0;
    memset(counter->tables, 0, cells(counter->plan, counter->way) * sizeof(uint32_t));
}

void gf_hist_counter_add(gf_hist_counter *counter, const gf_hist_piece *piece) {
    const gf_hist_plan *plan = counter->plan;
    const uint32_t turn = plan->measured * copies_of[plan->measured];
    switch (counter->way) {
    case GF_HIST_ABOVE:
        counter->simd->above[plan->head.in.type](piece->values, piece->samples, &counter->edges,
                                                 counter->edge_count, counter->tables);
        break;
    case GF_HIST_VALUES:
        count_values(piece, piece->values, turn, CELLS_SMALL, counter->tables);
        break;
    case GF_HIST_BINS:
        if (plan->counters <= CELLS_SMALL)
            count_bins(piece, piece->bins, turn, CELLS_SMALL, counter->tables);
        else
            count_bins(piece, piece->bins, turn, CELLS_LARGE, counter->tables);
        break;
    default:
        count_direct(plan, piece, counter->counts);
        break;
    }
    counter->pixels += piece->samples / plan->measured;
    if (counter->pixels >= FLUSH_PIXELS) {
        gf_hist_counter_end(counter);
        gf_hist_counter_begin(counter, counter->counts);
    }
}

/* ---- adding up ------------------------------------------------------------------------------- */

/* The counter of the class below edge e, or behind the last. */
static uint32_t counter_of(const gf_hist_plan *plan, uint32_t e) {
    if (plan->head.in.type == GF_F32 && e-- == 0)
        return plan->bins + GF_HIST_AT_NAN;
    if (!plan->ranged)
        return e;
    return e == 0            ? plan->bins + GF_HIST_AT_BELOW
           : e <= plan->bins ? e - 1
                             : plan->bins + GF_HIST_AT_ABOVE;
}

static void end_above(const gf_hist_counter *counter, uint32_t s, uint64_t *counts) {
    const gf_hist_plan *plan = counter->plan;
    const uint32_t period = period_of[plan->head.in.type];
    uint64_t below = counter->pixels; /* that reach the edge below */
    for (uint32_t e = 0; e < edges_of(plan); e++) {
        uint64_t above = 0;
        for (uint32_t j = s; e < counter->edge_count && j < period; j += plan->measured)
            above += counter->tables[(size_t)e * period + j];
        counts[counter_of(plan, e)] += below - above;
        below = above;
    }
    counts[counter_of(plan, edges_of(plan))] += below;
}

/* The bin of each value, or of each bin. */
static void end_tables(const gf_hist_counter *counter, uint32_t s, const uint32_t *bins, uint32_t n,
                       size_t stride, uint64_t *counts) {
    const uint32_t measured = counter->plan->measured;
    for (uint32_t v = 0; v < n; v++) {
        uint64_t sum = 0;
        for (uint32_t j = s; j < measured * copies_of[measured]; j += measured)
            sum += counter->tables[j * stride + v];
        counts[bins ? bins[v] : v] += sum;
    }
}

void gf_hist_counter_end(gf_hist_counter *counter) {
    const gf_hist_plan *plan = counter->plan;
    uint32_t bins[256];
    if (counter->way == GF_HIST_VALUES) {
        uint8_t values[256];
        for (int v = 0; v < 256; v++)
            values[v] = (uint8_t)v;
        counter->simd->bins(plan, values, 256, bins);
    }
    for (uint32_t s = 0; s < plan->measured; s++) {
        uint64_t *counts = counter->counts + (size_t)s * plan->counters;
        if (counter->way == GF_HIST_ABOVE)
            end_above(counter, s, counts);
        else if (counter->way == GF_HIST_VALUES)
            end_tables(counter, s, bins, 256, CELLS_SMALL, counts);
        else if (counter->way == GF_HIST_BINS)
            end_tables(counter, s, NULL, plan->counters,
                       plan->counters <= CELLS_SMALL ? CELLS_SMALL : CELLS_LARGE, counts);
    }
}
