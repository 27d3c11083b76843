// A row of the table made ready: plan, memory, golden's answer; and our kernels against that.
#include "cuda_bench.cuh"

#include <stdlib.h>
#include <string.h>

extern "C" {
#include "core/filter.h"
#include "engine/backend.h"
}
#include "hist/hist.h"

// Some peers read a few samples beyond both ends of a row.
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

// A filter that comes first measures the first rows: both plans learn the same.
static bool learn(BenchCase *made, std::string *why) {
    const gf_filter *before = made->filter->before;
    if (!before)
        return true;
    gf_error error = {};
    gf_plan *plan = nullptr;
    void *data = nullptr;
    gf_settings *settings = gf_settings_new(before->info.params, before->info.param_count);
    gf_keep keep = {};
    keep.name = "bench";
    bool good = !gf_plan_new(before, settings, &made->small_plan->in, &plan, &error) &&
                !before->measure->open(plan, &keep, &data, &error);
    if (good) {
        std::vector<unsigned char> records(gf_out_bytes(plan) * BENCH_PERIOD);
        gf_strip strip = {};
        strip.in = {made->small_in.data(), made->in_stride, 0, BENCH_PERIOD};
        strip.out = {records.data(), gf_out_bytes(plan), 0, BENCH_PERIOD};
        good = !before->golden(plan, &strip, &error) &&
               !before->measure->rows(plan, data, &strip.out, &error) &&
               !before->measure->finish(plan, data, nullptr, &error);
    }
    if (good) {
        made->filter->learn(made->small_plan, plan, data);
        // What a plan says for itself comes before what it learned.
        const gf_format in = made->plan->in, out = made->plan->out;
        memcpy(made->plan, made->small_plan, made->filter->plan_bytes);
        made->plan->in = in;
        made->plan->out = out;
    }
    if (data)
        before->measure->close(data);
    free(plan);
    gf_settings_free(settings);
    return good || failed(error, why);
}

// What golden makes of the first rows.
static bool make_want(BenchCase *made, std::string *why) {
    gf_error error = {};
    const gf_plan *plan = made->small_plan;
    made->want.resize(made->out_stride * BENCH_PERIOD);
    made->want_state.resize(plan->state_bytes);
    made->want_payload.resize(made->payload_size);
    const gf_strip strip = {{made->small_in.data(), made->in_stride, 0, BENCH_PERIOD},
                            {made->want.data(), made->out_stride, 0, BENCH_PERIOD},
                            made->want_state.data(),
                            made->want_payload.data()};
    if (made->filter->golden(plan, &strip, &error))
        return failed(error, why);
    if (plan->has_payload)
        made->payload_used = made->filter->payload->used(plan, made->want_payload.data());
    return true;
}

static bool allocate(BenchCase *made, std::string *why) {
    const gf_plan *plan = made->plan;
    made->in_memory = bench_memory(made->rows * made->in_stride + 2 * MARGIN);
    made->out_memory = bench_memory(made->rows * made->out_stride + 2 * MARGIN);
    made->state = bench_memory(plan->state_bytes);
    size_t payload = 0, scratch = 0;
    if (plan->has_payload) {
        payload = made->filter->payload->bytes(plan, made->rows);
        made->payload_size = made->filter->payload->bytes(made->small_plan, BENCH_PERIOD);
    }
    if (made->filter->cuda->scratch_bytes) {
        const size_t small = made->filter->cuda->scratch_bytes(made->small_plan, BENCH_PERIOD);
        scratch = made->filter->cuda->scratch_bytes(plan, made->rows);
        scratch = scratch < small ? small : scratch;
    }
    made->payload = bench_memory(payload);
    made->scratch = bench_memory(scratch);
    *why = "not enough memory on the device";
    if (!made->in_memory || !made->out_memory || !made->state || !made->payload || !made->scratch)
        return false;
    made->in = made->in_memory.get() + MARGIN;
    made->out = made->out_memory.get() + MARGIN;
    return true;
}

bool bench_case_new(BenchCase *made, const BenchRow *row, uint64_t about, std::string *why) {
    *made = BenchCase();
    made->row = row;
    made->filter = gf_filter_find(row->filter);
    made->settings = gf_settings_new(made->filter->info.params, made->filter->info.param_count);
    gf_format format = {};
    format.width = row->width;
    format.channels = row->channels;
    format.type = row->type;
    made->in_stride = made->filter->info.inputs * gf_align(gf_row_bytes(&format));
    made->rows = about / made->in_stride / BENCH_PERIOD * BENCH_PERIOD;
    made->rows = made->rows ? made->rows : BENCH_PERIOD;
    gf_error error = {};
    gf_format small = format;
    small.height = BENCH_PERIOD;
    format.height = made->rows;
    if (gf_settings_apply_case(made->settings, row->text, &error) ||
        gf_plan_new(made->filter, made->settings, &format, &made->plan, &error) ||
        gf_plan_new(made->filter, made->settings, &small, &made->small_plan, &error))
        return failed(error, why);
    made->out_stride = gf_out_stride(made->plan);
    if (!allocate(made, why))
        return false;
    bench_fill(made);
    made->small_in = bench_download<unsigned char>(made->in, made->in_stride * BENCH_PERIOD);
    if (!learn(made, why) || !make_want(made, why))
        return false;
    const double samples = static_cast<double>(gf_row_bytes(&format)) * made->plan->inputs;
    const double written =
        static_cast<double>(made->plan->out.width ? gf_row_bytes(&made->plan->out) : 0) +
        made->plan->record;
    made->bytes = static_cast<double>(made->rows) * (samples + written) +
                  static_cast<double>(made->payload_used) * static_cast<double>(made->repeats());
    return true;
}

void bench_case_free(BenchCase *made) {
    gf_settings_free(made->settings);
    free(made->plan);
    free(made->small_plan);
    *made = BenchCase();
}

static bool launch(const BenchCase *made, const gf_plan *plan, uint64_t rows, cudaStream_t stream) {
    gf_strip strip = {};
    strip.in = {made->in, made->in_stride, 0, rows};
    strip.out = {made->out, made->out_stride, 0, rows};
    strip.state = made->state.get();
    strip.payload = made->payload.get();
    if (plan->state_bytes && cudaMemsetAsync(strip.state, 0, plan->state_bytes, stream))
        return false;
    return made->filter->cuda->launch(plan, &strip, made->scratch.get(), stream, nullptr) == GF_OK;
}

bool bench_case_launch(const BenchCase *made, cudaStream_t stream) {
    return launch(made, made->plan, made->rows, stream);
}

// ---- checking -----------------------------------------------------------------------------------

// The first rows of out are golden's.
static bool rows_right(const BenchCase *made) {
    const size_t bytes = gf_out_bytes(made->plan);
    const std::vector<unsigned char> got =
        bench_download<unsigned char>(made->out, made->out_stride * BENCH_PERIOD);
    for (size_t y = 0; y < BENCH_PERIOD; y++)
        if (memcmp(&got[y * made->out_stride], &made->want[y * made->out_stride], bytes) != 0)
            return false;
    return true;
}

static bool state_right(const BenchCase *made, const std::vector<unsigned char> &want) {
    return bench_download<unsigned char>(made->state.get(), want.size()) == want;
}

// The state after the whole image: the small one as often as it repeats. Where the order counts,
// golden goes through the whole image.
static bool whole_state_right(const BenchCase *made) {
    std::vector<unsigned char> want(made->plan->state_bytes);
    if (!made->plan->ordered) {
        for (uint64_t i = 0; i < made->repeats(); i++)
            made->filter->measure->merge(made->plan, want.data(), made->want_state.data());
        return state_right(made, want);
    }
    std::vector<unsigned char> in =
        bench_download<unsigned char>(made->in, made->in_stride * made->rows);
    std::vector<unsigned char> out(made->out_stride * made->rows + 1);
    const gf_strip strip = {{in.data(), made->in_stride, 0, made->rows},
                            {out.data(), made->out_stride, 0, made->rows},
                            want.data(),
                            nullptr};
    return !made->filter->golden(made->plan, &strip, nullptr) && state_right(made, want);
}

// Of every extracted bin the samples of the first rows are golden's, and all others repeat them.
static bool whole_payload_right(const BenchCase *made) {
    const uint32_t bins = reinterpret_cast<const gf_hist_plan *>(made->plan)->extracts;
    const uint64_t *want = reinterpret_cast<const uint64_t *>(made->want_payload.data());
    const uint64_t *want_positions = want + bins + 1;
    const size_t sample = gf_type_bytes(made->row->type);
    const unsigned char *want_values =
        reinterpret_cast<const unsigned char *>(want_positions + want[bins]);
    const uint64_t *head = reinterpret_cast<const uint64_t *>(made->payload.get());
    const std::vector<uint64_t> begins = bench_download<uint64_t>(head, bins + 1);
    for (uint32_t i = 0; i <= bins; i++)
        if (begins[i] != want[i] * made->repeats())
            return false;
    const uint64_t *to_positions = head + bins + 1;
    const unsigned char *to_values =
        reinterpret_cast<const unsigned char *>(to_positions + begins[bins]);
    for (uint32_t i = 0; i < bins; i++) {
        const uint64_t count = want[i + 1] - want[i];
        const uint64_t *positions = to_positions + begins[i];
        const unsigned char *values = to_values + begins[i] * sample;
        if (memcmp(bench_download<uint64_t>(positions, count).data(), want_positions + want[i],
                   count * sizeof *want) != 0 ||
            memcmp(bench_download<unsigned char>(values, count * sample).data(),
                   want_values + want[i] * sample, count * sample) != 0 ||
            !bench_payload_repeats(made, positions, values, count))
            return false;
    }
    return true;
}

bool bench_case_check(const BenchCase *made, std::string *why) {
    const gf_plan *plan = made->plan;
    for (int whole = 0; whole < 2; whole++) {
        const std::string on = whole ? " of the whole image" : " of the first rows";
        cudaMemset(made->out, 0xa5, made->out_stride * made->rows);
        cudaMemset(made->state.get(), 0xa5, plan->state_bytes);
        const bool launched = whole ? bench_case_launch(made, nullptr)
                                    : launch(made, made->small_plan, BENCH_PERIOD, nullptr);
        const cudaError_t result = cudaDeviceSynchronize();
        if (!launched || result != cudaSuccess) {
            *why = std::string("the kernel") + on + " failed: " + cudaGetErrorString(result);
            return false;
        }
        *why = "rows" + on;
        // Beyond a halo the first rows alone are another image.
        if (gf_out_bytes(plan) && !(whole && plan->halo) && !rows_right(made))
            return false;
        if (gf_out_bytes(plan) && whole && !plan->halo && !bench_rows_repeat(made))
            return false;
        *why = "the state" + on;
        if (plan->state_bytes &&
            !(whole ? whole_state_right(made) : state_right(made, made->want_state)))
            return false;
        *why = "the payload" + on;
        if (plan->has_payload && whole && !whole_payload_right(made))
            return false;
        if (plan->has_payload && !whole &&
            memcmp(bench_download<unsigned char>(made->payload.get(), made->payload_used).data(),
                   made->want_payload.data(), made->payload_used) != 0)
            return false;
    }
    why->clear();
    return true;
}
