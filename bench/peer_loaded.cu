// NPP and cuBLAS, loaded at run time: optional both for building and for running.
#include "cuda_bench.cuh"
#include "peer_cub.cuh"

#include "smooth/smooth.h"

#include <algorithm>
#include <cmath>

#include <dlfcn.h>
#include <limits.h>

namespace {

// Load a library by its name in CUDA 13, 12 or 11. Returns NULL if none is found.
void *load(const char *name, std::string *missing) {
    for (const char *directory : {"", "/usr/local/cuda/lib64/"})
        for (const char *version : {".13", ".12", ".11", ""}) {
            const std::string file = std::string(directory) + name + ".so" + version;
            if (void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))
                return library;
        }
    if (missing->find(name) == std::string::npos)
        *missing += (missing->empty() ? "" : ", ") + std::string(name);
    return nullptr;
}

template <typename F> F find(void *library, const std::string &name) {
    return library ? reinterpret_cast<F>(dlsym(library, name.c_str())) : nullptr;
}

// ---- NPP ----------------------------------------------------------------------------------------

// Declarations as in the NPP manual. Any status but 0 is a failure or a warning.
struct Size {
    int width, height;
};

struct Context {
    cudaStream_t stream;
    int device, sms, threads_per_sm, threads_per_block;
    size_t shared_per_block;
    int major, minor;
    unsigned stream_flags;
    int reserved[5]; // larger than in any version
};

typedef int (*FilterRow)(const void *, int, void *, int, Size, const int *, int, int, int, Context);
typedef int (*FilterRowReal)(const void *, int, void *, int, Size, const float *, int, int,
                             Context);
typedef int (*HistogramEven)(const void *, int, Size, int *, int, int, int, unsigned char *,
                             Context);
typedef int (*HistogramBytes)(Size, int, size_t *, Context);
typedef int (*DotProduct)(const void *, int, const void *, int, Size, double *, unsigned char *,
                          Context);
typedef int (*DotBytes)(Size, size_t *, Context);

Context context(cudaStream_t stream) {
    Context c = {};
    c.stream = stream;
    cudaGetDevice(&c.device);
    int shared = 0;
    cudaDeviceGetAttribute(&c.sms, cudaDevAttrMultiProcessorCount, c.device);
    cudaDeviceGetAttribute(&c.threads_per_sm, cudaDevAttrMaxThreadsPerMultiProcessor, c.device);
    cudaDeviceGetAttribute(&c.threads_per_block, cudaDevAttrMaxThreadsPerBlock, c.device);
    cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlock, c.device);
    c.shared_per_block = static_cast<size_t>(shared);
    cudaDeviceGetAttribute(&c.major, cudaDevAttrComputeCapabilityMajor, c.device);
    cudaDeviceGetAttribute(&c.minor, cudaDevAttrComputeCapabilityMinor, c.device);
    if (stream)
        cudaStreamGetFlags(stream, &c.stream_flags);
    return c;
}

const char *type_name(gf_type type) {
    return type == GF_U8 ? "8u" : type == GF_U16 ? "16u" : "32f";
}

// Rows per call. FilterRow of u8 and u16 with one channel fails above about twice this number.
#define FILTER_ROWS 262144

// Time a convolution with the reach of the chain. Its result differs from smooth's.
void filter_row(const BenchCase *bench, Size size, std::vector<BenchRunner> &peers,
                std::string *missing) {
    const std::string name = std::string("nppiFilterRow_") + type_name(bench->row->type) + "_C" +
                             std::to_string(bench->row->channels) + "R_Ctx";
    void *const call = find<void *>(load("libnppif", missing), name);
    if (!call)
        return;
    const gf_smooth_plan *plan = reinterpret_cast<const gf_smooth_plan *>(bench->plan);
    const int radius = static_cast<int>(plan->radius) + plan->smooth;
    const int taps = 2 * radius + 1;
    const BenchMemory kernel = bench_memory(static_cast<size_t>(taps) * sizeof(float));
    const BenchMemory out = bench_memory(bench->in_stride * bench->rows);
    if (!kernel || !out)
        return;
    const bool real = bench->row->type == GF_F32;
    const std::vector<int> ones(static_cast<size_t>(taps), 1);
    const std::vector<float> parts(static_cast<size_t>(taps), 1.0f / static_cast<float>(taps));
    cudaMemcpy(kernel.get(), real ? static_cast<const void *>(parts.data()) : ones.data(),
               ones.size() * sizeof(int), cudaMemcpyHostToDevice);
    const int step = static_cast<int>(bench->in_stride);
    const unsigned char *in = bench->in;
    BenchRunner runner;
    runner.name = "NPP FilterRow";
    runner.caveat =
        "one sum with the same number of taps and another rounding, in calls of 262144 rows; result "
        "not checked";
    runner.bytes = bench->bytes;
    runner.run = [=](cudaStream_t stream) {
        const Context c = context(stream);
        int status = 0;
        for (int y = 0; y < size.height && status == 0; y += FILTER_ROWS) {
            const Size part = {size.width, std::min(size.height - y, FILTER_ROWS)};
            const unsigned char *from = in + static_cast<size_t>(y) * bench->in_stride;
            unsigned char *to = out.get() + static_cast<size_t>(y) * bench->in_stride;
            if (real)
                status = reinterpret_cast<FilterRowReal>(call)(
                    from, step, to, step, part, reinterpret_cast<const float *>(kernel.get()), taps,
                    radius, c);
            else
                status = reinterpret_cast<FilterRow>(call)(
                    from, step, to, step, part, reinterpret_cast<const int *>(kernel.get()), taps,
                    radius, taps, c);
        }
        return status == 0;
    };
    peers.push_back(runner);
}

void histogram(const BenchCase *bench, Size size, std::vector<BenchRunner> &peers,
               std::string *missing) {
    const std::string extension = std::string("_") + type_name(bench->row->type) + "_C1R_Ctx";
    void *const library = load("libnppist", missing);
    const HistogramEven call = find<HistogramEven>(library, "nppiHistogramEven" + extension);
    const HistogramBytes get_size =
        find<HistogramBytes>(library, "nppiHistogramEvenGetBufferSize" + extension);
    const std::string text = bench->row->text;
    const int bins = std::stoi(text.substr(text.find("bins=") + 5));
    size_t bytes = 0;
    if (!call || !get_size || get_size(size, bins + 1, &bytes, context(nullptr)) != 0)
        return;
    const BenchMemory temp = bench_memory(bytes);
    const BenchMemory counts = bench_memory(static_cast<size_t>(bins) * sizeof(int));
    const int step = static_cast<int>(bench->in_stride);
    const int top = bench->row->type == GF_U8 ? 256 : 65536;
    const unsigned char *in = bench->in;
    BenchRunner runner;
    runner.name = "NPP HistogramEven";
    runner.bytes = bench->bytes;
    runner.run = [=](cudaStream_t stream) {
        return call(in, step, size, reinterpret_cast<int *>(counts.get()), bins + 1, 0, top,
                    temp.get(), context(stream)) == 0;
    };
    runner.validate = [=] {
        const std::vector<int> got = bench_download<int>(counts.get(), static_cast<size_t>(bins));
        for (int i = 0; i < bins; i++)
            if (static_cast<uint64_t>(got[static_cast<size_t>(i)]) !=
                bench_expected_count(bench, 0, static_cast<uint32_t>(i)))
                return false;
        return true;
    };
    peers.push_back(runner);
}

void dot_product(const BenchCase *bench, Size size, std::vector<BenchRunner> &peers,
                 std::string *missing) {
    const std::string extension = std::string("_") + type_name(bench->row->type) + "64f_C1R_Ctx";
    void *const library = load("libnppist", missing);
    const DotProduct call = find<DotProduct>(library, "nppiDotProd" + extension);
    const DotBytes get_size = find<DotBytes>(library, "nppiDotProdGetBufferHostSize" + extension);
    size_t bytes = 0;
    if (!call || !get_size || get_size(size, &bytes, context(nullptr)) != 0)
        return;
    const BenchMemory temp = bench_memory(bytes), sum = bench_memory(sizeof(double));
    const int step = static_cast<int>(bench->in_stride);
    const unsigned char *a = bench->input(0), *b = bench->input(1);
    BenchRunner runner;
    runner.name = "NPP DotProd";
    runner.bytes = bench->bytes;
    runner.run = [=](cudaStream_t stream) {
        return call(a, step, b, step, size, reinterpret_cast<double *>(sum.get()), temp.get(),
                    context(stream)) == 0;
    };
    runner.validate = [=] {
        const double got = bench_download<double>(sum.get(), 1)[0],
                     expected = bench_expected_dot(bench);
        return std::fabs(got - expected) <= (bench->row->type == GF_F32 ? 1e-6 * expected : 0);
    };
    peers.push_back(runner);
}

} // namespace

void bench_npp(const BenchCase *bench, std::vector<BenchRunner> &peers, std::string *missing) {
    const std::string group = bench->row->group;
    if (bench->rows > INT_MAX || bench->row->width > INT_MAX)
        return;
    const Size size = {static_cast<int>(bench->row->width), static_cast<int>(bench->rows)};
    if (group == "smooth")
        filter_row(bench, size, peers, missing);
    if (group == "hist" && bench->row->channels == 1 && bench->row->type != GF_F32)
        histogram(bench, size, peers, missing);
    if (group == "dot" && bench->row->channels == 1)
        dot_product(bench, size, peers, missing);
}

// ---- cuBLAS -------------------------------------------------------------------------------------

void bench_cublas(const BenchCase *bench, std::vector<BenchRunner> &peers, std::string *missing) {
    typedef int (*Create)(void **);
    typedef int (*Destroy)(void *);
    typedef int (*SetStream)(void *, cudaStream_t);
    typedef int (*SetMode)(void *, int);
    typedef int (*Sdot)(void *, int, const float *, int, const float *, int, float *);
    if (std::string(bench->row->group) != "dot" || bench->row->type != GF_F32)
        return;
    void *const library = load("libcublas", missing);
    const Create create = find<Create>(library, "cublasCreate_v2");
    const Destroy destroy = find<Destroy>(library, "cublasDestroy_v2");
    const SetStream set_stream = find<SetStream>(library, "cublasSetStream_v2");
    const SetMode set_mode = find<SetMode>(library, "cublasSetPointerMode_v2");
    const Sdot sdot = find<Sdot>(library, "cublasSdot_v2");
    const uint64_t n = gf_row_samples(&bench->format()) * bench->rows;
    void *new_handle = nullptr;
    if (!create || !destroy || !set_stream || !set_mode || !sdot || n > INT_MAX ||
        create(&new_handle) != 0)
        return;
    const std::shared_ptr<void> handle(new_handle, destroy);
    if (set_mode(handle.get(), 1) != 0) // keep the result on the device
        return;
    const BenchMemory a = bench_packed(bench, 0), b = bench_packed(bench, 1);
    const BenchMemory sum = bench_memory(sizeof(float));
    if (!a || !b || !sum)
        return;
    BenchRunner runner;
    runner.name = "cuBLAS Sdot";
    runner.bytes = bench->bytes;
    runner.run = [=](cudaStream_t stream) {
        return set_stream(handle.get(), stream) == 0 &&
               sdot(handle.get(), static_cast<int>(n), reinterpret_cast<const float *>(a.get()), 1,
                    reinterpret_cast<const float *>(b.get()), 1,
                    reinterpret_cast<float *>(sum.get())) == 0;
    };
    runner.validate = [=] {
        const double got = static_cast<double>(bench_download<float>(sum.get(), 1)[0]);
        const double expected = bench_expected_dot(bench);
        return std::fabs(got - expected) <= 1e-3 * expected;
    };
    peers.push_back(runner);
}
