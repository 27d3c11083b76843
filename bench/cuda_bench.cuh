// Internal interface of the GPU benchmark: rows of the table, their memory, and the runners.
#ifndef GF_CUDA_BENCH_CUH
#define GF_CUDA_BENCH_CUH

#include "cuda/device.cuh"

#include <functional>
#include <memory>
#include <string>
#include <vector>

// Rows after which the content repeats. Golden computes this many rows on the host; the kernels'
// results for the whole image must repeat them.
#define BENCH_PERIOD 64

enum BenchContent {
    BENCH_PHOTO, // slow waves with some noise
    BENCH_UNIFORM,
    BENCH_FLAT_100, // value 100; u16 and f32: the same fraction of their range
    BENCH_FLAT_125,
    BENCH_RARE,     // 1 % of the samples in bin 3 of 8
    BENCH_FULL,     // 100 % of the samples in bin 3 of 8
    BENCH_DOCUMENT, // two flat greys; every 16th row is noise
    // For compare: uniform content; the second image differs in one of 50 samples, or in all.
    BENCH_SOME_DIFFER,
    BENCH_ALL_DIFFER,
};

const char *bench_content_name(BenchContent content);

// A row of the table.
struct BenchRow {
    const char *group, *filter, *text; // text: settings, as in gf_filter_info.cases
    gf_type type;
    uint32_t channels;
    uint64_t width;
    BenchContent content;
    double goal; // wanted ratio to the copy; 0: none
};

std::vector<BenchRow> bench_rows();

// Device memory, reference-counted.
typedef std::shared_ptr<unsigned char> BenchMemory;
// Allocate zeroed device memory. Returns NULL if there is not enough.
BenchMemory bench_memory(size_t bytes);

// Image, plan and memory of a row, and golden's result for the first BENCH_PERIOD rows.
struct BenchCase {
    const BenchRow *row;
    const gf_filter *filter;
    gf_settings *settings;
    gf_plan *plan, *small_plan; // of the image; of its first rows
    uint64_t rows;
    size_t in_stride, out_stride;
    BenchMemory in_memory, out_memory, state, payload, scratch, constants;
    unsigned char *in, *out;                   // inside their memory, with margins
    size_t payload_size;                       // bytes of expected_payload
    double bytes;                              // read and written, each byte once
    std::vector<unsigned char> small_in;       // input in the device's layout
    std::vector<unsigned char> expected;       // output rows, out_stride apart, then records
    std::vector<unsigned char> expected_state; // after BENCH_PERIOD rows
    std::vector<unsigned char> expected_payload;
    size_t payload_used;

    uint64_t repeats() const {
        return rows / BENCH_PERIOD;
    }
    const gf_format &format() const {
        return plan->in;
    }
    // Return the first byte of input i.
    const unsigned char *input(uint32_t i) const {
        return in + i * in_stride * rows;
    }
    // Return the bytes of all inputs.
    size_t in_bytes() const {
        return plan->inputs * in_stride * rows;
    }
    // Return golden's record of row y.
    const unsigned char *record(size_t y) const {
        return &expected[BENCH_PERIOD * out_stride + y * plan->record];
    }
    // Return a strip of the first `all` rows of memory that holds `capacity` rows.
    gf_strip strip(unsigned char *from, unsigned char *to, uint64_t capacity, uint64_t all) const {
        gf_strip first = {};
        for (uint32_t i = 0; i < plan->inputs; i++)
            first.in[i] = {from + i * in_stride * capacity, in_stride, 0, all};
        first.out = {to, out_stride, 0, all};
        first.records = to + out_stride * capacity;
        return first;
    }
};

// Prepare a row. target_bytes: bytes of all inputs together. Returns false and the reason on
// failure.
bool bench_case_new(BenchCase *bench, const BenchRow *row, uint64_t target_bytes, std::string *why);
void bench_case_free(BenchCase *bench);
// Compare our kernels with golden, on the first rows and on the whole image.
bool bench_case_check(const BenchCase *bench, std::string *why);
// Queue all device work for one result: clear the state, then run the kernels.
bool bench_case_launch(const BenchCase *bench, cudaStream_t stream);

void bench_fill(const BenchCase *bench);
// On the device, check that all rows repeat those of the first period.
bool bench_rows_repeat(const BenchCase *bench);
// Check that the samples of an extracted bin repeat, `count` per period, with advancing positions.
bool bench_payload_repeats(const BenchCase *bench, const uint64_t *positions, const void *values,
                           uint64_t count);
// Copy the rows of one input without padding, for peers that require this.
BenchMemory bench_packed(const BenchCase *bench, uint32_t input);

// A timed operation.
struct BenchRunner {
    std::string name;
    double bytes; // bytes moved, for the rate
    std::function<bool(cudaStream_t)> run;
    std::function<bool()>
        validate; // check the result of the last run; none: the peer computes something else
    bool failed = false, mismatch = false;
    bool checked = false; // validate was called
    std::string caveat;   // how the computation of a peer differs from ours
    std::vector<double> ms;
};

// Time all runners once per round, so that times of a round are comparable. Marks runners that
// fail. spin_ns: the device waits so long, while the host queues the work of a runner.
void bench_time(std::vector<BenchRunner> &runners, int warm_ups, int rounds,
                unsigned spin_ns = 40000);
double bench_median(std::vector<double> values);
double bench_rate(const BenchRunner &runner); // median, GB/s
// Return the median ratio of a's rate to b's in the same round.
double bench_ratio(const BenchRunner &a, const BenchRunner &b);

BenchRunner bench_copy(const BenchCase *bench);
BenchRunner bench_read(const BenchCase *bench);
// Add the peers of a row. They own the memory they need. *missing: libraries that were not found.
void bench_cub_sums(const BenchCase *bench, std::vector<BenchRunner> &peers);
void bench_cub_hist(const BenchCase *bench, std::vector<BenchRunner> &peers);
void bench_npp(const BenchCase *bench, std::vector<BenchRunner> &peers, std::string *missing);
void bench_cublas(const BenchCase *bench, std::vector<BenchRunner> &peers, std::string *missing);

// All results of a row.
struct BenchResult {
    BenchRow row;
    uint64_t rows;
    std::string mismatch;             // why our result is invalid; empty: valid
    std::vector<BenchRunner> runners; // copy, read, ours, peers
};
enum { BENCH_COPY, BENCH_READ, BENCH_OURS, BENCH_PEERS };

void bench_print_head();
void bench_print_row(const BenchResult &result);
// Print the meaning of the marks in the rows.
void bench_print_notes(const std::vector<BenchResult> &results);
bool bench_write_json(const char *path, const std::string &machine,
                      const std::vector<BenchResult> &results);
std::string bench_machine();

template <typename T> static inline std::vector<T> bench_download(const void *from, size_t count) {
    std::vector<T> values(count);
    cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
}

#endif
