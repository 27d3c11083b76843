/* Cuts: the rows of the edges of a chain in each strip, for all small chains; and rings, in which
 * the rows of strips in use stay. */
#include "backend/backend.h"
#include "testing.h"

/* A plan with a halo, or, with a table, of another height, whose rows overlap by the halo. */
static gf_plan plan_of(gf_range table[8], uint64_t in, uint64_t out, uint64_t before,
                       uint64_t after) {
    static const gf_filter filter = {.info = {.name = "test"}};
    gf_plan plan = {.filter = &filter, .in = {1, in, 1, GF_U8, false}, .inputs = 1};
    plan.out = (gf_format){1, out, 1, GF_U8, false};
    if (in == out) {
        plan.before = before;
        plan.after = after;
        return plan;
    }
    for (uint64_t y = 0; y < out; y++) {
        const uint64_t first = y * in / out, end = ((y + 1) * in + out - 1) / out;
        table[y] =
            (gf_range){first < before ? 0 : first - before, in - end < after ? in : end + after};
    }
    plan.rows = table;
    return plan;
}

/* Check the strips of a range: each edge gets all its rows in order, and each node finds the rows
 * that it reads. */
static void check_cut(const gf_cut *cut) {
    const gf_nodes *nodes = cut->nodes;
    for (uint32_t e = 0; e <= nodes->count; e++) {
        const gf_edge_cut *edge = &cut->edge[e];
        uint64_t next = edge->start;
        for (uint64_t k = 0; k < cut->strips; k++) {
            const gf_range rows = gf_cut_rows(cut, e, k);
            gf_range has = gf_cut_needs(cut, e, k), alone[GF_MAX_EDGES] = {{0, UINT64_MAX}};
            gf_cut_alone(cut, k, alone);
            if (cut->apart) {
                const gf_range all = alone[e];
                if (e == 0 && all.first < all.end) /* what a device uploads */
                    assert_true(all.first >= has.first && all.end <= has.end);
                assert_true(all.end - all.first <= edge->keep + edge->max_rows);
                for (uint32_t i = e; i < nodes->count; i++) {
                    const gf_range needs = gf_map_needs(nodes->node[i].plan, alone[i + 1]);
                    if (nodes->node[i].from == e && needs.first < needs.end)
                        assert_true(needs.first >= all.first && needs.end <= all.end);
                }
                if (e && (nodes->written >> e & 1) && rows.first < rows.end)
                    assert_true(alone[e].first <= rows.first && alone[e].end >= rows.end);
                assert_true(rows.first == next);
                next = rows.end;
                continue;
            }
            assert_int_equal(rows.first, next);
            assert_int_equal(has.end, rows.end);
            assert_true(rows.end - rows.first <= edge->max_rows);
            assert_true(rows.first - has.first <= edge->keep);
            assert_true(rows.first == has.first || has.first >= edge->start);
            next = rows.end;
            for (uint32_t i = e; i < nodes->count; i++) {
                const gf_range of = gf_cut_rows(cut, i + 1, k);
                const gf_range needs = gf_map_needs(nodes->node[i].plan, of);
                if (nodes->node[i].from == e && of.first < of.end)
                    assert_true(needs.first >= has.first && needs.end <= has.end);
            }
        }
        assert_int_equal(next, edge->end);
        assert_true(edge->ring_rows >=
                    gf_min(edge->keep + edge->max_rows, edge->end - edge->start));
    }
}

/* All chains of two nodes, in a row or side by side, of up to 6 rows, in two ranges. */
TEST(strips_have_the_rows_that_nodes_read) {
    gf_range tables[2][8];
    for (unsigned n = 0; n < 6 * 6 * 6 * 3 * 3 * 3 * 3 * 2; n++) {
        unsigned rest = n;
        uint64_t of[8];
        static const unsigned below[] = {6, 6, 6, 3, 3, 3, 3, 2};
        for (int i = 0; i < 8; i++, rest /= below[i - 1])
            of[i] = rest % below[i];
        const bool in_a_row = of[7];
        const uint64_t heights[] = {1 + of[0], 1 + of[1], 1 + of[2]};
        const gf_plan first = plan_of(tables[0], heights[0], heights[1], of[3], of[4]);
        const gf_plan second =
            plan_of(tables[1], heights[in_a_row ? 1 : 0], heights[2], of[5], of[6]);
        const gf_node node[] = {{&first, 0}, {&second, in_a_row ? 1 : 0}};
        const gf_nodes nodes = {node, 2, n % 7 < 3 ? 4 : 6};
        uint64_t last = 0;
        for (uint32_t e = 0; e <= 2; e++)
            last = gf_max(last, gf_cut_position(&nodes, e, gf_edge_rows(&nodes, e)));
        for (uint64_t height = 1; height <= 4; height += 1 + height / 2) {
            const uint64_t middle = 1 + n % last;
            const bool apart = n % 5 < 2;
            gf_cut a = {.nodes = &nodes, .source = {0, middle}, .apart = apart};
            gf_cut b = {.nodes = &nodes, .source = {middle, last}, .apart = apart};
            gf_cut_set(&a, height, 2);
            check_cut(&a);
            for (uint32_t e = 0; e <= 2; e++) {
                assert_int_equal(a.edge[e].deliver, 0);
                if (middle == last)
                    assert_int_equal(a.edge[e].end, gf_edge_rows(&nodes, e));
            }
            if (middle == last)
                continue;
            gf_cut_set(&b, height, 2);
            check_cut(&b);
            for (uint32_t e = 0; e <= 2; e++) {
                assert_int_equal(b.edge[e].deliver, a.edge[e].end);
                assert_int_equal(b.edge[e].end, gf_edge_rows(&nodes, e));
            }
        }
    }
}

/* Strips of any height in rings of any length: no new row is put where a row in use is, kept rows
 * are in front of the new ones, and with all strips released there is room. */
TEST(rings_keep_rows_in_use) {
    enum { ROWS = 64, STRIPS = 300 };
    test_random random = test_seeded(1);
    for (int round = 0; round < 300; round++) {
        static uint64_t memory[ROWS], at[STRIPS], begin[STRIPS], end[STRIPS];
        const uint64_t most = 1 + test_below(&random, 12), keep = test_below(&random, 12);
        gf_ring ring = {.rows = keep + most + test_below(&random, ROWS - keep - most + 1)};
        uint64_t released = 0, next = 0;
        for (uint64_t k = 0; k < STRIPS;) {
            const uint64_t kept =
                k ? test_below(&random, gf_min(keep, end[k - 1] - begin[k - 1]) + 1) : 0;
            const uint64_t rows = test_below(&random, most + 1), before = ring.end;
            uint64_t place;
            if (!gf_ring_place(&ring, k, released, kept, rows, &place)) {
                assert_true(released < k);
                released++;
                continue;
            }
            assert_true(place + kept + rows <= ring.rows);
            memmove(&memory[place], &memory[before - kept], kept * sizeof *memory);
            for (uint64_t i = 0; i < rows; i++)
                memory[place + kept + i] = next + i;
            at[k] = place;
            begin[k] = next - kept;
            end[k] = next += rows;
            for (uint64_t j = released; j <= k; j++)
                for (uint64_t y = begin[j]; y < end[j]; y++)
                    assert_int_equal(memory[at[j] + (y - begin[j])], y);
            k++;
            if (released < k && test_below(&random, 2))
                released += 1 + test_below(&random, k - released);
        }
    }
}

/* A ring is full to the last row, and remembers as many strips as may be in use. */
TEST(rings_are_full) {
    gf_ring ring = {.rows = 4};
    uint64_t at;
    for (uint64_t k = 0; k < 2; k++)
        assert_true(gf_ring_place(&ring, k, 0, 0, 2, &at));
    assert_int_equal(at, 2);
    assert_false(gf_ring_place(&ring, 2, 0, 0, 2, &at));
    assert_true(gf_ring_place(&ring, 2, 1, 0, 2, &at)); /* next to strip 1 */
    assert_int_equal(at, 0);
    ring = (gf_ring){.rows = GF_MAX_SLOTS + 1};
    for (uint64_t k = 0; k < GF_MAX_SLOTS; k++)
        assert_true(gf_ring_place(&ring, k, 0, 0, 1, &at));
    assert_false(gf_ring_place(&ring, GF_MAX_SLOTS, 0, 0, 1, &at));
    assert_true(gf_ring_place(&ring, GF_MAX_SLOTS, 1, 0, 1, &at));
}

int main(void) {
    return test_main(NULL);
}
