// Preparation of a row of the table: plan, memory and golden's result; and the check of our kernels
// against that result.
#include "cuda_bench.cuh"

#include <stdlib.h>
#include <string.h>

extern "C" {
#include "backend/backend.h"
#include "core/filter.h"
}
#include "hist/hist.h"

// Bytes before and after each image: some peers read a few samples beyond both ends of a row.
#define MARGIN 1024

BenchMemory bench_memory(size_t bytes) {
    void *memory = nullptr;
    if (cudaMalloc(&memory, bytes ? bytes : 1) != cudaSuccess) {
        cudaGetLastError();
        return BenchMemory();
    }
    cudaMemset(memory, 0, bytes);
    return BenchMemory(static_cast<unsigned char *>(memory),
                       [](unsigned char *old) { cudaFree(old); });
}

static bool failed(const gf_error &error, std::string *why) {
    *why = error.message;
    return false;
}

// Run the filter that must come first on the first rows, and pass its result to both plans.
static bool learn(BenchCase *bench, std::string *why) {
    const gf_plan *plan = bench->small_plan->measure_first;
    if (!plan)
        return true;
    const gf_measure *measure = plan->filter->measure;
    gf_error error = {};
    void *data = nullptr;
    gf_measure_options keep = {};
    keep.name = "bench";
    bool ok = !measure->open(plan, &keep, &data, &error);
    if (ok) {
        std::vector<unsigned char> measured(plan->record * BENCH_PERIOD + 1);
        std::vector<uint64_t> state(plan->state_bytes / 8 + 1);
        gf_strip strip =
            bench->strip(bench->small_in.data(), measured.data(), BENCH_PERIOD, BENCH_PERIOD);
        strip.records = measured.data();
        strip.state = state.data();
        const gf_rows records = gf_strip_records(plan, &strip);
        ok = !plan->filter->golden(plan, &strip, &error) &&
             (!plan->record || !measure->rows(plan, data, &records, &error)) &&
             !measure->finish(plan, data, state.data(), &error) &&
             !bench->filter->refine(bench->small_plan, data, &error);
        measure->close(data);
    }
    if (ok) {
        // Copy what was learned, but keep the plan's own formats and memory.
        const gf_plan own = *bench->plan;
        memcpy(bench->plan, bench->small_plan, bench->filter->plan_bytes);
        bench->plan->in = own.in;
        bench->plan->out = own.out;
        bench->plan->constants = own.constants;
        bench->plan->owned = own.owned;
        bench->plan->measure_first = own.measure_first;
    }
    return ok || failed(error, why);
}

// Upload the constants, and run golden on the first rows.
static bool compute_expected(BenchCase *bench, std::string *why) {
    gf_error error = {};
    const gf_plan *plan = bench->small_plan;
    bench->constants = bench_memory(plan->constant_bytes);
    cudaMemcpy(bench->constants.get(), plan->constants, plan->constant_bytes,
               cudaMemcpyHostToDevice);
    bench->expected.resize((bench->out_stride + plan->record) * BENCH_PERIOD + 1);
    bench->expected_state.resize(plan->state_bytes);
    bench->expected_payload.resize(bench->payload_size);
    gf_strip strip =
        bench->strip(bench->small_in.data(), bench->expected.data(), BENCH_PERIOD, BENCH_PERIOD);
    strip.state = bench->expected_state.data();
    strip.payload = bench->expected_payload.data();
    strip.constants = plan->constants;
    if (bench->filter->golden(plan, &strip, &error))
        return failed(error, why);
    if (plan->has_payload)
        bench->payload_used = bench->filter->payload->used(plan, bench->expected_payload.data());
    return true;
}

static bool allocate(BenchCase *bench, std::string *why) {
    const gf_plan *plan = bench->plan;
    bench->in_memory = bench_memory(bench->in_bytes() + 2 * MARGIN);
    bench->out_memory = bench_memory(bench->rows * (bench->out_stride + plan->record) + 2 * MARGIN);
    bench->state = bench_memory(plan->state_bytes);
    size_t payload = 0, scratch = 0;
    if (plan->has_payload) {
        payload = bench->filter->payload->bytes(plan, bench->rows);
        bench->payload_size = bench->filter->payload->bytes(bench->small_plan, BENCH_PERIOD);
    }
    if (gf_filter_kernels(bench->filter)->scratch_bytes) {
        const size_t small =
            gf_filter_kernels(bench->filter)->scratch_bytes(bench->small_plan, BENCH_PERIOD);
        scratch = gf_filter_kernels(bench->filter)->scratch_bytes(plan, bench->rows);
        scratch = scratch < small ? small : scratch;
    }
    bench->payload = bench_memory(payload);
    bench->scratch = bench_memory(scratch);
    *why = "not enough device memory";
    if (!bench->in_memory || !bench->out_memory || !bench->state || !bench->payload ||
        !bench->scratch)
        return false;
    bench->in = bench->in_memory.get() + MARGIN;
    bench->out = bench->out_memory.get() + MARGIN;
    return true;
}

bool bench_case_new(BenchCase *bench, const BenchRow *row, uint64_t target_bytes,
                    std::string *why) {
    *bench = BenchCase();
    bench->row = row;
    bench->filter = gf_filter_find(row->filter);
    bench->settings = gf_settings_new(bench->filter->info.params, bench->filter->info.param_count);
    gf_format format = {};
    format.width = row->width;
    format.channels = row->channels;
    format.alpha = row->channels % 2 == 0;
    format.type = row->type;
    bench->in_stride = gf_align(gf_row_bytes(&format));
    bench->rows = target_bytes / (bench->filter->info.inputs * bench->in_stride) / BENCH_PERIOD *
                  BENCH_PERIOD;
    bench->rows = bench->rows ? bench->rows : BENCH_PERIOD;
    gf_error error = {};
    gf_format small = format;
    small.height = BENCH_PERIOD;
    format.height = bench->rows;
    if (gf_settings_apply_case(bench->settings, row->text, &error) ||
        gf_plan_new(bench->filter, bench->settings, &format, &bench->plan, &error) ||
        gf_plan_new(bench->filter, bench->settings, &small, &bench->small_plan, &error))
        return failed(error, why);
    bench->out_stride = bench->plan->out.width ? gf_align(gf_row_bytes(&bench->plan->out)) : 0;
    if (!allocate(bench, why))
        return false;
    bench_fill(bench);
    for (uint32_t i = 0; i < bench->plan->inputs; i++) {
        const std::vector<unsigned char> first =
            bench_download<unsigned char>(bench->input(i), bench->in_stride * BENCH_PERIOD);
        bench->small_in.insert(bench->small_in.end(), first.begin(), first.end());
    }
    if (!learn(bench, why) || !compute_expected(bench, why))
        return false;
    const double samples = static_cast<double>(gf_row_bytes(&format)) * bench->plan->inputs;
    const double written =
        static_cast<double>(bench->plan->out.width ? gf_row_bytes(&bench->plan->out) : 0) +
        bench->plan->record;
    bench->bytes = static_cast<double>(bench->rows) * (samples + written) +
                   static_cast<double>(bench->payload_used) * static_cast<double>(bench->repeats());
    return true;
}

void bench_case_free(BenchCase *bench) {
    gf_settings_free(bench->settings);
    gf_plan_free(bench->plan);
    gf_plan_free(bench->small_plan);
    *bench = BenchCase();
}

static bool launch(const BenchCase *bench, const gf_plan *plan, uint64_t rows,
                   cudaStream_t stream) {
    gf_strip strip = bench->strip(bench->in, bench->out, bench->rows, rows);
    strip.constants = bench->constants.get();
    strip.state = bench->state.get();
    strip.payload = bench->payload.get();
    if (plan->state_bytes && cudaMemsetAsync(strip.state, 0, plan->state_bytes, stream))
        return false;
    gf_queue queue = {stream, nullptr, bench->filter->info.name, GF_OK, nullptr};
    gf_filter_kernels(bench->filter)->launch(plan, &strip, bench->scratch.get(), &queue);
    return queue.status == GF_OK;
}

bool bench_case_launch(const BenchCase *bench, cudaStream_t stream) {
    return launch(bench, bench->plan, bench->rows, stream);
}

// ---- checking -----------------------------------------------------------------------------------

// Compare the first rows of out with golden's.
static bool rows_match(const BenchCase *bench) {
    const gf_plan *plan = bench->plan;
    const size_t bytes = plan->out.width ? gf_row_bytes(&plan->out) : 0;
    const std::vector<unsigned char> got =
        bench_download<unsigned char>(bench->out, bench->out_stride * BENCH_PERIOD);
    const std::vector<unsigned char> records = bench_download<unsigned char>(
        bench->out + bench->out_stride * bench->rows, plan->record * BENCH_PERIOD);
    if (memcmp(records.data(), bench->record(0), records.size()) != 0)
        return false;
    for (size_t y = 0; bytes && y < BENCH_PERIOD; y++)
        if (memcmp(&got[y * bench->out_stride], &bench->expected[y * bench->out_stride], bytes) !=
            0)
            return false;
    return true;
}

static bool state_matches(const BenchCase *bench, const std::vector<unsigned char> &expected) {
    return bench_download<unsigned char>(bench->state.get(), expected.size()) == expected;
}

// Compare the state of the whole image with golden's state of the first rows, merged once per
// repetition. For ordered states, golden runs on the whole image.
static bool full_state_matches(const BenchCase *bench) {
    std::vector<unsigned char> expected(bench->plan->state_bytes);
    if (!bench->plan->ordered) {
        for (uint64_t i = 0; i < bench->repeats(); i++)
            bench->filter->measure->merge(bench->plan, expected.data(),
                                          bench->expected_state.data());
        return state_matches(bench, expected);
    }
    std::vector<unsigned char> in = bench_download<unsigned char>(bench->in, bench->in_bytes());
    std::vector<unsigned char> out((bench->out_stride + bench->plan->record) * bench->rows + 1);
    gf_strip strip = bench->strip(in.data(), out.data(), bench->rows, bench->rows);
    strip.state = expected.data();
    strip.constants = bench->plan->constants;
    return !bench->filter->golden(bench->plan, &strip, nullptr) && state_matches(bench, expected);
}

// Compare every extracted bin: its first samples with golden's, and all others with the first ones.
static bool full_payload_matches(const BenchCase *bench) {
    const uint32_t bins = reinterpret_cast<const gf_hist_plan *>(bench->plan)->extracts;
    const uint64_t *expected = reinterpret_cast<const uint64_t *>(bench->expected_payload.data());
    const uint64_t *expected_positions = expected + bins + 1;
    const size_t sample = gf_type_bytes(bench->row->type);
    const unsigned char *expected_values =
        reinterpret_cast<const unsigned char *>(expected_positions + expected[bins]);
    const uint64_t *head = reinterpret_cast<const uint64_t *>(bench->payload.get());
    const std::vector<uint64_t> begins = bench_download<uint64_t>(head, bins + 1);
    for (uint32_t i = 0; i <= bins; i++)
        if (begins[i] != expected[i] * bench->repeats())
            return false;
    const uint64_t *to_positions = head + bins + 1;
    const unsigned char *to_values =
        reinterpret_cast<const unsigned char *>(to_positions + begins[bins]);
    for (uint32_t i = 0; i < bins; i++) {
        const uint64_t count = expected[i + 1] - expected[i];
        const uint64_t *positions = to_positions + begins[i];
        const unsigned char *values = to_values + begins[i] * sample;
        if (memcmp(bench_download<uint64_t>(positions, count).data(),
                   expected_positions + expected[i], count * sizeof *expected) != 0 ||
            memcmp(bench_download<unsigned char>(values, count * sample).data(),
                   expected_values + expected[i] * sample, count * sample) != 0 ||
            !bench_payload_repeats(bench, positions, values, count))
            return false;
    }
    return true;
}

bool bench_case_check(const BenchCase *bench, std::string *why) {
    const gf_plan *plan = bench->plan;
    for (int whole = 0; whole < 2; whole++) {
        const std::string on = whole ? " (whole image)" : " (first rows)";
        cudaMemset(bench->out, 0xa5, (bench->out_stride + plan->record) * bench->rows);
        cudaMemset(bench->state.get(), 0xa5, plan->state_bytes);
        const bool launched = whole ? bench_case_launch(bench, nullptr)
                                    : launch(bench, bench->small_plan, BENCH_PERIOD, nullptr);
        const cudaError_t result = cudaDeviceSynchronize();
        if (!launched || result != cudaSuccess) {
            *why = std::string("kernel") + on + " failed: " + cudaGetErrorString(result);
            return false;
        }
        *why = "rows" + on;
        // With a halo, the first rows depend on the rows below them.
        if (!(whole && !gf_map_one_to_one(plan)) && !rows_match(bench))
            return false;
        if (whole && gf_map_one_to_one(plan) && !bench_rows_repeat(bench))
            return false;
        *why = "state" + on;
        if (plan->state_bytes &&
            !(whole ? full_state_matches(bench) : state_matches(bench, bench->expected_state)))
            return false;
        *why = "payload" + on;
        if (plan->has_payload && whole && !full_payload_matches(bench))
            return false;
        if (plan->has_payload && !whole &&
            memcmp(bench_download<unsigned char>(bench->payload.get(), bench->payload_used).data(),
                   bench->expected_payload.data(), bench->payload_used) != 0)
            return false;
    }
    why->clear();
    return true;
}
