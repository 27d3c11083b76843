// Rows of the GPU benchmark: filters, cases and contents.
#include "cuda_bench.cuh"

#include <string.h>

#define WIDTH 6000

static void add(std::vector<BenchRow> &rows, const char *group, const char *text, gf_type type,
                uint32_t channels, uint64_t width, BenchContent content, double goal) {
    const bool hist = strcmp(group, "extract") == 0 || strcmp(group, "statistics") == 0;
    const char *filter = hist ? "hist" : group;
    rows.push_back({group, filter, text, type, channels, width, content, goal});
}

static void add_smooth(std::vector<BenchRow> &rows) {
    static const double goals[3][4] = {
        {0.95, 0, 0.90, 0.90}, {0.92, 0, 0.92, 0}, {0.97, 0.97, 0.97, 0.97}};
    static const gf_type types[] = {GF_U8, GF_U16, GF_F32};
    for (int t = 0; t < 3; t++)
        for (uint32_t c = 1; c <= 4; c++)
            add(rows, "smooth", "", types[t], c, WIDTH, BENCH_PHOTO, goals[t][c - 1]);
    add(rows, "smooth", "", GF_U8, 1, WIDTH, BENCH_UNIFORM, 0.95);
    add(rows, "smooth", "", GF_U8, 1, WIDTH, BENCH_FLAT_100, 0.95);
    add(rows, "smooth", "", GF_U8, 1, WIDTH, BENCH_FLAT_125, 0.95);
    add(rows, "smooth", "", GF_U16, 1, WIDTH, BENCH_UNIFORM, 0.92);
    add(rows, "smooth", "", GF_F32, 1, WIDTH, BENCH_UNIFORM, 0.97);
    // Most samples of these rows are ties.
    add(rows, "smooth", "", GF_U8, 3, WIDTH, BENCH_FLAT_125, 0);
    for (const char *text :
         {"gain=2 weight=0.5", "stages=enhance gain=0.5", "stages=enhance,blur gain=1.5"})
        add(rows, "smooth", text, GF_U8, 1, WIDTH, BENCH_UNIFORM, 0);
    add(rows, "smooth", "gain=2 weight=0.5", GF_U8, 3, WIDTH, BENCH_UNIFORM, 0);
    // Nearly all samples of these rows are clamped.
    for (uint32_t c = 1; c <= 3; c += 2)
        add(rows, "smooth", "", GF_U8, c, WIDTH, BENCH_DOCUMENT, 0);
    // Ties in all areas, no clamping.
    add(rows, "smooth", "keep-brightness", GF_U8, 1, WIDTH, BENCH_DOCUMENT, 0);
    add(rows, "smooth", "stages=enhance,blur gain=0.9", GF_U8, 1, WIDTH, BENCH_DOCUMENT, 0);
    static const char *const others[] = {"gain=0.9 weight=0.45",
                                         "radius=1",
                                         "radius=3",
                                         "radius=8",
                                         "keep-brightness",
                                         "weight=0.123",
                                         "stages=enhance gain=1.5"};
    for (const char *text : others)
        for (uint32_t c = 1; c <= 3; c += 2)
            add(rows, "smooth", text, GF_U8, c, WIDTH, BENCH_PHOTO, 0.55);
    static const uint64_t widths[] = {6001, 5999, 1000, 512, 100, 64, 17};
    for (uint64_t width : widths)
        for (uint32_t c = 1; c <= 3; c += 2)
            add(rows, "smooth", "", GF_U8, c, width, BENCH_PHOTO, 0);
    for (gf_type type : {GF_U16, GF_F32})
        for (uint64_t width : {512, 100})
            add(rows, "smooth", "", type, 1, width, BENCH_PHOTO, 0);
    for (gf_type type : types)
        for (uint32_t c = 1; c <= 3; c += 2) {
            add(rows, "smooth", "axis=xy", type, c, WIDTH, BENCH_PHOTO,
                type == GF_U8 ? 0.50 : 0.70);
            add(rows, "smooth", "axis=y", type, c, WIDTH, BENCH_PHOTO, 0.93);
        }
}

static void add_windows(std::vector<BenchRow> &rows) {
    static const gf_type types[] = {GF_U8, GF_U16, GF_F32};
    static const struct {
        const char *text;
        double goals[3][2]; // of grey and RGB
    } gaussian[] = {
        {"", {{0.55, 0.60}, {0.75, 0.75}, {0.90, 0.85}}},
        {"sigma=2", {{0.35, 0.35}, {0.50, 0.50}, {0.65, 0.65}}},
        {"sigma=5", {{0.25, 0.25}, {0, 0}, {0, 0}}},
    };
    for (const auto &one : gaussian)
        for (int t = 0; t < 3; t++)
            for (uint32_t c = 1; c <= 4; c++)
                add(rows, "gaussian", one.text, types[t], c, WIDTH, BENCH_PHOTO,
                    c % 2 == 0 ? 0 : one.goals[t][c / 2]);
    for (const char *text : {"radius=2", "radius=7"})
        for (uint32_t c = 1; c <= 3; c += 2)
            add(rows, "box", text, GF_U8, c, WIDTH, BENCH_PHOTO, 0.60);
    add(rows, "box", "radius=2", GF_F32, 3, WIDTH, BENCH_PHOTO, 0);
    add(rows, "sharpen", "", GF_U8, 3, WIDTH, BENCH_PHOTO, 0);
    for (uint32_t c = 1; c <= 3; c += 2)
        add(rows, "convolve", "kernel=0,-1,0,-1,5,-1,0,-1,0", GF_U8, c, WIDTH, BENCH_PHOTO, 0.60);
    add(rows, "convolve", "kernel=1,4,6,4,1,4,16,24,16,4,6,24,36,24,6,4,16,24,16,4,1,4,6,4,1",
        GF_U8, 3, WIDTH, BENCH_PHOTO, 0);
}

static void add_order(std::vector<BenchRow> &rows) {
    static const struct {
        const char *filter, *text;
        double goals[3]; // by type
    } cases[] = {
        {"median", "", {0.75, 0.75, 0.75}},     {"median", "radius=2", {0.25, 0, 0}},
        {"median", "radius=3", {0.12, 0, 0}},   {"median", "radius=7", {0.05, 0, 0}},
        {"median", "radius=25", {0, 0, 0}},     {"erode", "", {0.70, 0.70, 0.70}},
        {"erode", "radius=7", {0.70, 0, 0.70}}, {"erode", "radius=63", {0.70, 0, 0}},
    };
    static const gf_type types[] = {GF_U8, GF_U16, GF_F32};
    for (const auto &one : cases)
        for (int t = 0; t < 3; t++)
            for (uint32_t c = 1; c <= 3; c += 2)
                add(rows, one.filter, one.text, types[t], c, WIDTH, BENCH_PHOTO, one.goals[t]);
}

static void add_sums(std::vector<BenchRow> &rows) {
    static const uint64_t widths[] = {512, WIDTH, 32768};
    for (uint64_t width : widths)
        add(rows, "axis-sum", "", GF_U8, 1, width, BENCH_UNIFORM, 0.95);
    add(rows, "axis-sum", "", GF_U16, 1, WIDTH, BENCH_UNIFORM, 0);
    add(rows, "axis-sum", "", GF_F32, 1, WIDTH, BENCH_UNIFORM, 0);
    add(rows, "axis-sum", "", GF_U8, 3, WIDTH, BENCH_UNIFORM, 0);
    add(rows, "axis-sum", "", GF_U8, 4, WIDTH, BENCH_UNIFORM, 0);
    add(rows, "axis-sum", "", GF_U8, 1, 5999, BENCH_UNIFORM, 0);
    add(rows, "axis-sum", "", GF_U8, 1, 100, BENCH_UNIFORM, 0);
    add(rows, "axis-sum", "axis=y", GF_U8, 1, WIDTH, BENCH_UNIFORM, 0);
    add(rows, "axis-sum", "axis=y", GF_U8, 3, WIDTH, BENCH_UNIFORM, 0);
    add(rows, "axis-sum", "axis=y", GF_F32, 1, WIDTH, BENCH_UNIFORM, 0);
}

static void add_hist(std::vector<BenchRow> &rows) {
    static const BenchContent contents[] = {BENCH_UNIFORM, BENCH_FLAT_100, BENCH_PHOTO};
    for (const char *text : {"bins=8", "bins=256"})
        for (BenchContent content : contents)
            add(rows, "hist", text, GF_U8, 1, WIDTH, content, 0.85);
    add(rows, "hist", "bins=256 channel=all", GF_U8, 3, WIDTH, BENCH_PHOTO, 0);
    add(rows, "hist", "bins=8 channel=all", GF_U8, 3, WIDTH, BENCH_PHOTO, 0);
    add(rows, "hist", "bins=256 channel=luma", GF_U8, 3, WIDTH, BENCH_PHOTO, 0);
    add(rows, "hist", "bins=256", GF_U16, 1, WIDTH, BENCH_PHOTO, 0);
    add(rows, "hist", "bins=65536", GF_U16, 1, WIDTH, BENCH_UNIFORM, 0);
    add(rows, "hist", "bins=256", GF_F32, 1, WIDTH, BENCH_PHOTO, 0);
    add(rows, "statistics", "bins=8 statistics", GF_U8, 1, WIDTH, BENCH_PHOTO, 0);
    add(rows, "statistics", "bins=256 statistics", GF_U16, 1, WIDTH, BENCH_PHOTO, 0);
    add(rows, "statistics", "bins=256 statistics", GF_F32, 1, WIDTH, BENCH_PHOTO, 0);
    add(rows, "statistics", "bins=256 statistics channel=all", GF_F32, 3, WIDTH, BENCH_PHOTO, 0);
    add(rows, "extract", "bins=8 extract=3", GF_U8, 1, WIDTH, BENCH_UNIFORM, 0.45);
    add(rows, "extract", "bins=8 extract=3", GF_U8, 1, WIDTH, BENCH_RARE, 0);
    add(rows, "extract", "bins=8 extract=3", GF_U8, 1, WIDTH, BENCH_FULL, 0);
    add(rows, "extract", "bins=8 extract=3", GF_U8, 1, WIDTH, BENCH_PHOTO, 0);
    add(rows, "extract", "bins=8 extract=3", GF_U16, 1, WIDTH, BENCH_UNIFORM, 0);
    add(rows, "extract", "bins=8 extract=1,3,6", GF_U8, 1, WIDTH, BENCH_UNIFORM, 0);
    add(rows, "extract", "bins=8 extract=3 channel=all", GF_U8, 3, WIDTH, BENCH_PHOTO, 0);
}

std::vector<BenchRow> bench_rows() {
    std::vector<BenchRow> rows;
    add_smooth(rows);
    add_windows(rows);
    add_order(rows);
    add_sums(rows);
    add_hist(rows);
    add(rows, "dot", "", GF_U8, 1, WIDTH, BENCH_UNIFORM, 0.95);
    add(rows, "dot", "", GF_U16, 1, WIDTH, BENCH_UNIFORM, 0);
    add(rows, "dot", "", GF_F32, 1, WIDTH, BENCH_UNIFORM, 0.95);
    add(rows, "dot", "", GF_U8, 3, WIDTH, BENCH_UNIFORM, 0);
    for (BenchContent content : {BENCH_UNIFORM, BENCH_SOME_DIFFER, BENCH_ALL_DIFFER}) {
        add(rows, "compare", "", GF_U8, 1, WIDTH, content, 0);
        add(rows, "compare", "", GF_U8, 3, WIDTH, content, 0);
        add(rows, "compare", "", GF_F32, 1, WIDTH, content, 0);
    }
    for (gf_type type : {GF_U8, GF_U16, GF_F32})
        add(rows, "normalize", "", type, 1, WIDTH, BENCH_PHOTO, 0);
    add(rows, "normalize", "", GF_U8, 3, WIDTH, BENCH_PHOTO, 0);
    return rows;
}
