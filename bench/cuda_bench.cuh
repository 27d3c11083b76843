// What the files of the GPU benchmark share: a row of the table, its memory, and who runs on it.
#ifndef GF_CUDA_BENCH_CUH
#define GF_CUDA_BENCH_CUH

#include "device.cuh"

#include <functional>
#include <memory>
#include <string>
#include <vector>

// Rows after which the content repeats: golden computes so many on the host, and what the kernels
// make of the whole image must be that again and again.
#define BENCH_PERIOD 64

enum BenchContent {
    BENCH_PHOTO, // slow waves and a little noise
    BENCH_UNIFORM,
    BENCH_FLAT_100, // one value; u16 and f32: as much of their scale
    BENCH_FLAT_125,
    BENCH_RARE,     // 1 % of the samples in bin 3 of 8
    BENCH_FULL,     // all of them there
    BENCH_DOCUMENT, // two flat greys, and a line of noise now and then
    // For compare, whose images are equal otherwise: uniform, and the second one differs.
    BENCH_SOME_DIFFER, // in a sample of 50
    BENCH_ALL_DIFFER,
};

const char *bench_content_name(BenchContent content);

// A line of the table.
struct BenchRow {
    const char *group, *filter, *text; // text: a filter's case
    gf_type type;
    uint32_t channels;
    uint64_t width;
    BenchContent content;
    double goal; // ratio to the copy that is wanted; 0: none was named
};

std::vector<BenchRow> bench_rows();

// Device memory, freed when the last one that uses it is gone.
typedef std::shared_ptr<unsigned char> BenchMemory;
// NULL if there is not so much. The bytes are zero.
BenchMemory bench_memory(size_t bytes);

// A row's image, plan, memory, and what golden makes of the first BENCH_PERIOD rows.
struct BenchCase {
    const BenchRow *row;
    const gf_filter *filter;
    gf_settings *settings;
    gf_plan *plan, *small_plan; // of the image, and of its first rows alone
    uint64_t rows;
    size_t in_stride, out_stride;
    BenchMemory in_memory, out_memory, state, payload, scratch;
    unsigned char *in, *out;               // a margin inside their memory
    size_t payload_size;                   // of the small plan's
    double bytes;                          // read and written, each once
    std::vector<unsigned char> small_in;   // input as it lies on the device
    std::vector<unsigned char> want;       // rows of output, an out_stride apart
    std::vector<unsigned char> want_state; // after these rows
    std::vector<unsigned char> want_payload;
    size_t payload_used;

    uint64_t repeats() const {
        return rows / BENCH_PERIOD;
    }
    const gf_format &format() const {
        return plan->in;
    }
    // First byte of a row of input i.
    const unsigned char *input(uint32_t i) const {
        return in + i * (in_stride / plan->inputs);
    }
};

// False with the reason if it cannot be had. about: bytes of all inputs together.
bool bench_case_new(BenchCase *made, const BenchRow *row, uint64_t about, std::string *why);
void bench_case_free(BenchCase *made);
// Does our kernel give golden's bits, on the first rows alone and on the whole image?
bool bench_case_check(const BenchCase *made, std::string *why);
// All that the device does for one result, on the stream: empties the state, and runs the kernels.
bool bench_case_launch(const BenchCase *made, cudaStream_t stream);

void bench_fill(const BenchCase *made);
// On the device: are all rows those of the first period again?
bool bench_rows_repeat(const BenchCase *made);
// ... and the extracted samples of a bin, `count` a period, with positions that go on?
bool bench_payload_repeats(const BenchCase *made, const uint64_t *positions, const void *values,
                           uint64_t count);
// Rows of one input without the padding between them, for those who only take that.
BenchMemory bench_packed(const BenchCase *made, uint32_t input);

// Somebody whose time is taken.
struct BenchRunner {
    std::string name;
    double bytes; // it is said to move
    std::function<bool(cudaStream_t)> run;
    std::function<bool()> right; // of what the last run left; none: it computes something else
    bool failed = false, wrong = false;
    bool checked = false; // was it found right or wrong?
    std::string unlike;   // what else it computes, if it does
    std::vector<double> ms;
};

// Takes the times in turn, so that those of one round are a pair. Runners that fail are marked.
void bench_time(std::vector<BenchRunner> &runners, int warm_ups, int rounds);
double bench_median(std::vector<double> values);
double bench_rate(const BenchRunner &runner); // median, GB/s
// Median of a's rate to b's in the same round.
double bench_ratio(const BenchRunner &a, const BenchRunner &b);

BenchRunner bench_copy(const BenchCase *made);
BenchRunner bench_read(const BenchCase *made);
// The others; they keep what they need. *absent: what could not be loaded.
void bench_cub_sums(const BenchCase *made, std::vector<BenchRunner> &peers);
void bench_cub_hist(const BenchCase *made, std::vector<BenchRunner> &peers);
void bench_npp(const BenchCase *made, std::vector<BenchRunner> &peers, std::string *absent);
void bench_cublas(const BenchCase *made, std::vector<BenchRunner> &peers, std::string *absent);

// Every result of a row.
struct BenchResult {
    BenchRow row;
    uint64_t rows;
    std::string wrong;                // why ours does not count; empty: it does
    std::vector<BenchRunner> runners; // copy, read, ours, peers
};
enum { BENCH_COPY, BENCH_READ, BENCH_OURS, BENCH_PEERS };

void bench_print_head();
void bench_print_row(const BenchResult &result);
// What the marks in the rows mean, where there are any.
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
