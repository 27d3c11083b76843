// GPU benchmark: times every CUDA kernel, a copy of the same bytes, a read-only pass and other
// libraries. Every result is first checked against golden. See bench-cuda --help.
#include "cuda_bench.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace {

struct Options {
    std::string only, text;
    const char *json = nullptr;
    bool quick = false, peers = true;
    int rounds = 21;
    uint64_t bytes = UINT64_C(512) << 20;
};

const char usage[] =
    "usage: bench-cuda [OPTION...]\n"
    "  --only GROUP[,GROUP]  smooth, gaussian, box, sharpen, convolve, median, erode, axis-sum,\n"
    "                        hist, statistics, extract, dot, compare, normalize\n"
    "  --filter-text TEXT    only rows whose 'case content type Cn width' contains TEXT\n"
    "  --quick               only rows with a goal, 11 rounds\n"
    "  --rounds N            timed rounds (default 21)\n"
    "  --bytes N[K|M|G]      input bytes per row (default 512M); use several times the L2\n"
    "  --no-peers            omit other libraries\n"
    "  --json FILE           write all medians\n"
    "Ratios are relative to the GB/s of the copy in the same rounds; each byte read or written counts\n"
    "once. '!' marks a missed goal. times: our speed relative to the best peer; '*' marks a peer that\n"
    "computes something else. Exit status 1 if a result is wrong.\n";

bool parse_bytes(const char *text, uint64_t *bytes) {
    char *end;
    *bytes = strtoull(text, &end, 10);
    const int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    *bytes <<= shift;
    return end != text && end[shift ? 1 : 0] == 0 && *bytes > 0;
}

bool parse(int argc, char **argv, Options *options) {
    for (int i = 1; i < argc; i++) {
        const std::string name = argv[i];
        if (name == "--quick") {
            options->quick = true;
            options->rounds = 11;
            continue;
        }
        if (name == "--no-peers") {
            options->peers = false;
            continue;
        }
        if (++i == argc)
            return false;
        if (name == "--only")
            options->only = std::string(",") + argv[i] + ",";
        else if (name == "--filter-text")
            options->text = argv[i];
        else if (name == "--json")
            options->json = argv[i];
        else if (name == "--rounds")
            options->rounds = atoi(argv[i]);
        else if (name != "--bytes" || !parse_bytes(argv[i], &options->bytes))
            return false;
    }
    return options->rounds > 0;
}

bool selected(const Options &options, const BenchRow &row) {
    if (!options.only.empty() &&
        options.only.find("," + std::string(row.group) + ",") == std::string::npos)
        return false;
    if (options.quick && row.goal <= 0)
        return false;
    const std::string text = std::string(*row.text ? row.text : "default") + " " +
                             bench_content_name(row.content) + " " + gf_type_name(row.type) + " C" +
                             std::to_string(row.channels) + " " + std::to_string(row.width);
    return text.find(options.text) != std::string::npos;
}

BenchResult measure(const Options &options, const BenchRow &row, std::string *missing) {
    BenchResult result = {row, 0, "", {}};
    BenchCase bench;
    if (bench_case_new(&bench, &row, options.bytes, &result.mismatch) &&
        bench_case_check(&bench, &result.mismatch)) {
        result.rows = bench.rows;
        result.mismatch.clear();
        BenchRunner ours;
        ours.name = "gpufilter";
        ours.bytes = bench.bytes;
        ours.checked = true; // by bench_case_check
        ours.run = [&bench](cudaStream_t stream) { return bench_case_launch(&bench, stream); };
        result.runners = {bench_copy(&bench), bench_read(&bench), ours};
        if (options.peers) {
            bench_cub_sums(&bench, result.runners);
            bench_cub_hist(&bench, result.runners);
            bench_npp(&bench, result.runners, missing);
            bench_cublas(&bench, result.runners, missing);
        }
        bench_time(result.runners, 5, options.rounds);
        if (result.runners[BENCH_OURS].failed || result.runners[BENCH_COPY].failed)
            result.mismatch = "a launch failed";
        // The runners own device memory: free it with the row.
        for (BenchRunner &runner : result.runners)
            runner.run = nullptr, runner.validate = nullptr;
    }
    bench_case_free(&bench);
    return result;
}

} // namespace

int main(int argc, char **argv) {
    Options options;
    if (!parse(argc, argv, &options)) {
        fputs(usage, argc == 2 && strcmp(argv[1], "--help") == 0 ? stdout : stderr);
        return 2;
    }
    int devices = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);
    if (status != cudaSuccess || devices == 0) {
        fprintf(stderr, "bench-cuda: no device: %s\n", cudaGetErrorString(status));
        return 2;
    }
    const std::string machine = bench_machine();
    printf("%s\n%llu MiB of input per row, medians of %d rounds, GB/s\n", machine.c_str(),
           static_cast<unsigned long long>(options.bytes >> 20), options.rounds);
    bench_print_head();
    std::vector<BenchResult> results;
    std::string missing;
    bool mismatch = false;
    for (const BenchRow &row : bench_rows()) {
        if (!selected(options, row))
            continue;
        results.push_back(measure(options, row, &missing));
        bench_print_row(results.back());
        mismatch = mismatch || !results.back().mismatch.empty();
        if (cudaDeviceSynchronize() != cudaSuccess)
            break; // an illegal address: no further kernel can run
    }
    bench_print_notes(results);
    if (!missing.empty())
        printf("not found, not timed: %s\n", missing.c_str());
    if (options.json && !bench_write_json(options.json, machine, results)) {
        fprintf(stderr, "bench-cuda: cannot write %s\n", options.json);
        return 2;
    }
    return mismatch;
}
