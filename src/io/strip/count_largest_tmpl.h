/* Template of row_filter_simd.c: count the largest values of a row. Parameter: TYPE, u8 or u16. */

/* All vectors have the same alpha lanes: 2 and 4 channels divide the number of lanes, and images
 * with 1 or 3 channels have no alpha. step: the last of every `step` samples is alpha; 0: none. A
 * lane counts up to `largest` samples before its count is added to the total. */
static uint64_t GF_T(count_largest)(const GF_T(sample) * row, uint64_t samples, uint32_t step) {
    typedef GF_T(sample) lanes __attribute__((vector_size(sizeof(vec))));
    enum { WIDTH = sizeof(lanes) / sizeof *row };
    const GF_T(sample) largest = (GF_T(sample)) - 1;
    lanes counted = {0};
    for (uint32_t lane = 0; lane < WIDTH; lane++)
        counted[lane] = step && lane % step == step - 1 ? 0 : largest;
    uint64_t count = 0, i = 0;
    while (samples - i >= WIDTH) {
        const uint64_t left = (samples - i) / WIDTH, steps = left < largest ? left : largest;
        lanes counts = {0};
        for (const GF_T(sample) *end = row + i + steps * WIDTH; row + i != end; i += WIDTH) {
            lanes x;
            memcpy(&x, row + i, sizeof x);
            counts -= (lanes)(x == largest) & counted;
        }
        for (uint32_t lane = 0; lane < WIDTH; lane++)
            count += counts[lane];
    }
    for (; i < samples; i++)
        count += row[i] == largest && counted[i % WIDTH];
    return count;
}

#undef TYPE
