/* Division of an image into strips: rows of each edge, and their positions in a ring. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"

static const gf_plan *cut_plan(const gf_nodes *nodes, uint32_t edge) {
    return nodes->node[edge - 1].plan;
}

uint64_t gf_edge_rows(const gf_nodes *nodes, uint32_t edge) {
    return edge ? gf_plan_rows(cut_plan(nodes, edge)) : nodes->node[0].plan->in.height;
}

/* Return the first row of an edge that is not due at a position. */
static uint64_t cut_ready(const gf_nodes *nodes, uint32_t edge, uint64_t position) {
    return edge ? gf_map_ready(cut_plan(nodes, edge),
                               cut_ready(nodes, nodes->node[edge - 1].from, position))
                : position;
}

uint64_t gf_cut_position(const gf_nodes *nodes, uint32_t edge, uint64_t end) {
    return edge ? gf_cut_position(nodes, nodes->node[edge - 1].from,
                                  gf_map_due(cut_plan(nodes, edge), end))
                : end;
}

gf_range gf_cut_together(const gf_nodes *nodes, uint32_t edge, gf_range rows) {
    const uint64_t all = gf_edge_rows(nodes, edge);
    return (gf_range){gf_min(cut_ready(nodes, edge, gf_cut_position(nodes, edge, rows.first)), all),
                      gf_min(cut_ready(nodes, edge, gf_cut_position(nodes, edge, rows.end)), all)};
}

/* Return the first row of an edge that strips before strip k do not have. */
static uint64_t cut_at(const gf_cut *cut, uint32_t edge, uint64_t k) {
    const gf_edge_cut *of = &cut->edge[edge];
    if (k == 0)
        return of->start;
    if (k >= cut->strips)
        return of->end;
    const uint64_t ready = cut_ready(cut->nodes, edge, cut->edge[0].start + k * cut->height);
    return ready < of->start ? of->start : gf_min(ready, of->end);
}

gf_range gf_cut_rows(const gf_cut *cut, uint32_t edge, uint64_t k) {
    return (gf_range){cut_at(cut, edge, k), cut_at(cut, edge, k + 1)};
}

/* Return whether strips deliver rows of an edge, or measurements of them. */
static bool cut_delivers(const gf_nodes *nodes, uint32_t edge) {
    return edge && ((nodes->written >> edge & 1) || cut_plan(nodes, edge)->filter->measure);
}

void gf_cut_alone(const gf_cut *cut, uint64_t k, gf_range rows[GF_MAX_EDGES]) {
    const gf_nodes *nodes = cut->nodes;
    for (uint32_t e = 0; e <= nodes->count; e++)
        rows[e] = cut_delivers(nodes, e) ? gf_cut_rows(cut, e, k) : (gf_range){0, 0};
    for (uint32_t i = nodes->count; i-- > 0;) {
        gf_range *from = &rows[nodes->node[i].from];
        const gf_range needs = gf_map_needs(nodes->node[i].plan, rows[i + 1]);
        if (from->first == from->end)
            *from = needs;
        else if (needs.first < needs.end)
            *from = (gf_range){gf_min(from->first, needs.first), gf_max(from->end, needs.end)};
    }
}

/* Return the first row of the source from which a row of an edge is computed. */
static uint64_t cut_lowest(const gf_nodes *nodes, uint32_t edge, uint64_t row) {
    return edge ? cut_lowest(nodes, nodes->node[edge - 1].from,
                             gf_map_needs(cut_plan(nodes, edge), (gf_range){row, row + 1}).first)
                : row;
}

gf_range gf_cut_needs(const gf_cut *cut, uint32_t edge, uint64_t k) {
    const gf_nodes *nodes = cut->nodes;
    gf_range rows = gf_cut_rows(cut, edge, k);
    if (cut->apart && edge == 0) {
        for (uint32_t e = 1; e <= nodes->count; e++)
            if (cut_delivers(nodes, e) && cut_at(cut, e, k) < cut->edge[e].end)
                rows.first = gf_min(rows.first, cut_lowest(nodes, e, cut_at(cut, e, k)));
        return rows;
    }
    for (uint32_t i = edge; i < nodes->count; i++)
        if (nodes->node[i].from == edge) {
            const uint64_t next = cut_at(cut, i + 1, k);
            if (next < cut->edge[i + 1].end)
                rows.first =
                    gf_min(rows.first,
                           gf_map_needs(nodes->node[i].plan, (gf_range){next, next + 1}).first);
        }
    return rows;
}

/* Set the rows of each edge that are computed, and delivered. */
static void cut_set_ranges(gf_cut *cut) {
    const gf_nodes *nodes = cut->nodes;
    uint64_t last = 0; /* position at which all rows are due */
    for (uint32_t e = 0; e <= nodes->count; e++)
        last = gf_max(last, gf_cut_position(nodes, e, gf_edge_rows(nodes, e)));
    if (cut->source.end == 0)
        cut->source.end = last;
    for (uint32_t e = 0; e <= nodes->count; e++) {
        const uint64_t rows = gf_edge_rows(nodes, e);
        const gf_format *image = e ? &cut_plan(nodes, e)->out : &nodes->node[0].plan->in;
        const uint64_t first = gf_min(cut_ready(nodes, e, cut->source.first), rows);
        cut->edge[e] = (gf_edge_cut){.start = first,
                                     .deliver = first,
                                     .end = gf_min(cut_ready(nodes, e, cut->source.end), rows),
                                     .stride = image->width ? gf_align(gf_row_bytes(image)) : 0};
    }
    for (uint32_t i = nodes->count; i-- > 0;) {
        const gf_edge_cut *to = &cut->edge[i + 1];
        gf_edge_cut *from = &cut->edge[nodes->node[i].from];
        if (to->start < to->end)
            from->start = gf_min(
                from->start,
                gf_map_needs(nodes->node[i].plan, (gf_range){to->start, to->start + 1}).first);
    }
}

/* Return whether the rows of an edge, or those that its readers need, are in a table. through: also
 * those that read it through other nodes. */
static bool cut_has_table(const gf_nodes *nodes, uint32_t edge, bool through) {
    uint64_t readers = UINT64_C(1) << edge; /* bit e: edge e is made from the edge */
    bool table = false;
    for (uint32_t i = edge; i < nodes->count; i++)
        if (readers >> nodes->node[i].from & 1) {
            table = table || nodes->node[i].plan->rows;
            readers |= through ? UINT64_C(1) << (i + 1) : 0;
        }
    for (uint32_t e = edge; e; e = nodes->node[e - 1].from)
        table = table || cut_plan(nodes, e)->rows;
    return table;
}

/* Return the most rows that nodes, also through others if strips are apart, read of an edge for one
 * row, without that row. There are no tables. */
static uint64_t cut_halo(const gf_cut *cut, uint32_t edge) {
    const gf_nodes *nodes = cut->nodes;
    uint64_t most = 0;
    for (uint32_t i = edge; i < nodes->count; i++)
        if (nodes->node[i].from == edge)
            most = gf_max(most, nodes->node[i].plan->before + nodes->node[i].plan->after +
                                    (cut->apart ? cut_halo(cut, i + 1) : 0));
    return most;
}

/* Set the most new and kept rows of the strips of an edge. */
static void cut_set_most(gf_cut *cut, uint32_t edge) {
    const gf_nodes *nodes = cut->nodes;
    gf_edge_cut *of = &cut->edge[edge];
    gf_range all[GF_MAX_EDGES];
    of->max_rows = of->keep = 0;
    if (!cut_has_table(nodes, edge, cut->apart)) {
        of->max_rows = gf_min(cut->height, of->end - of->start);
        of->keep = cut->strips > 1 ? gf_min(cut_halo(cut, edge), of->end - of->start) : 0;
        return;
    }
    for (uint64_t k = 0; k < cut->strips; k++) {
        const gf_range rows = gf_cut_rows(cut, edge, k), needs = gf_cut_needs(cut, edge, k);
        uint64_t most = needs.end - needs.first;
        if (cut->apart && edge) {
            gf_cut_alone(cut, k, all);
            most = all[edge].end - all[edge].first;
        }
        of->max_rows = gf_max(of->max_rows, rows.end - rows.first);
        of->keep = gf_max(of->keep, most - gf_min(most, rows.end - rows.first));
    }
}

void gf_cut_set(gf_cut *cut, uint64_t height, uint32_t slots) {
    enum { UNWRITTEN_STRIPS = 2 };
    cut_set_ranges(cut);
    const uint64_t first = cut->edge[0].start, all = cut->source.end - first;
    const uint64_t rows = cut->edge[0].end - first;
    cut->height = gf_min(height, rows);
    cut->strips = cut->height < rows ? (all - 1) / cut->height + 1 : 1;
    cut->slots = slots;
    for (uint32_t e = 0; e <= cut->nodes->count; e++) {
        gf_edge_cut *of = &cut->edge[e];
        cut_set_most(cut, e);
        const bool in_memory = e == 0 ? cut->in != NULL : e == cut->nodes->count && cut->out.data;
        const uint64_t count = of->end - of->start;
        const uint64_t strips =
            e == 0 || (cut->nodes->written >> e & 1) ? slots : gf_min(slots, UNWRITTEN_STRIPS);
        of->ring_rows = of->max_rows && strips >= count / of->max_rows
                            ? count
                            : gf_min(count, of->keep + strips * of->max_rows);
        if (!of->stride || in_memory)
            of->ring_rows = 0;
    }
}

size_t gf_cut_ring_bytes(const gf_cut *cut, size_t at[GF_MAX_NODES]) {
    size_t bytes = (size_t)cut->edge[0].ring_rows * cut->edge[0].stride;
    for (uint32_t i = 0; i < cut->nodes->count; i++) {
        const gf_edge_cut *edge = &cut->edge[cut->nodes->node[i].from];
        at[i] = bytes;
        if (gf_node_has_second(&cut->nodes->node[i]) && !cut->in)
            bytes += cut->slots * (size_t)edge->max_rows * edge->stride;
    }
    return bytes;
}

/* Return whether the ring turns: it has no room for a number of new rows before its end. */
static bool ring_turns(const gf_ring *ring, uint64_t rows) {
    return rows > ring->rows - ring->end;
}

bool gf_ring_place(gf_ring *ring, uint64_t k, uint64_t released, uint64_t kept, uint64_t rows,
                   uint64_t *at) {
    const bool turns = ring_turns(ring, rows);
    /* The kept rows in front of the end are those of strip k - 1. At a turn they are copied. */
    const uint64_t first = turns ? 0 : ring->end, end = (turns ? kept : ring->end) + rows;
    if (k - released >= GF_MAX_SLOTS || end > ring->rows)
        return false;
    for (uint64_t j = released; j < k; j++) {
        const struct gf_ring_use *use = &ring->use[j % GF_MAX_SLOTS];
        if (use->first < end && first < use->end)
            return false;
    }
    *at = turns ? 0 : ring->end - kept;
    ring->end = end;
    ring->use[k % GF_MAX_SLOTS] = (struct gf_ring_use){*at, end};
    return true;
}

bool gf_ring_take(gf_ring *ring, const gf_cut *cut, uint64_t k, uint64_t released, bool complete,
                  gf_rows *rows) {
    const gf_range new = gf_cut_rows(cut, ring->edge, k), needs = gf_cut_needs(cut, ring->edge, k);
    const uint64_t kept = new.first - needs.first;
    const size_t stride = cut->edge[ring->edge].stride;
    const unsigned char *end = ring->memory + ring->end * stride;
    const bool copies = kept && ring_turns(ring, new.end - new.first);
    uint64_t at;
    if ((copies && !complete) || !gf_ring_place(ring, k, released, kept, new.end - new.first, &at))
        return false;
    *rows = (gf_rows){ring->memory + at * stride, stride, needs.first, needs.end - needs.first};
    if (copies) /* in a ring of less than two strips, they overlap */
        memmove(rows->data, end - kept * stride, (size_t)kept * stride);
    return true;
}

void *gf_aligned_alloc(size_t n, size_t bytes) {
    size_t all;
    if (__builtin_mul_overflow(n, gf_align(bytes), &all))
        return NULL;
    return aligned_alloc(GF_ROW_ALIGN, all ? all : GF_ROW_ALIGN);
}

uint32_t gf_payload_pieces(const gf_cut *cut, uint32_t node, uint32_t wanted) {
    const gf_plan *plan = cut->nodes->node[node].plan;
    const uint64_t rows = cut->edge[node + 1].max_rows;
    const gf_payload_format *payload = plan->filter->payload;
    const size_t head = payload->bytes(plan, 0), all = payload->bytes(plan, rows);
    const uint64_t pieces = gf_min((all - head) / (4 * head) + 1, rows);
    return (uint32_t)gf_min(pieces, wanted);
}

size_t gf_payload_stride(const gf_cut *cut, uint32_t node, uint32_t pieces) {
    const gf_plan *plan = cut->nodes->node[node].plan;
    if (!plan->has_payload)
        return 0;
    const uint64_t rows = (cut->edge[node + 1].max_rows + pieces - 1) / pieces;
    return gf_align(plan->filter->payload->bytes(plan, rows));
}
