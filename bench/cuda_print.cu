// Output of the GPU benchmark: machine, table and JSON file.
#include "cuda_bench.cuh"

#include <algorithm>

#include <stdio.h>
#include <string.h>

#ifndef GF_BENCH_COMMIT
#define GF_BENCH_COMMIT "unknown"
#endif

std::string bench_machine() {
    int device = 0, runtime = 0, driver = 0, clock = 0, memory_clock = 0, l2 = 0;
    cudaGetDevice(&device);
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, device);
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device);
    cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, device);
    cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device);
    char text[512];
    snprintf(text, sizeof text,
             "%s, %d SMs, %d MHz, memory %d MHz, L2 %d MiB, driver for CUDA %d.%d, runtime "
             "%d.%d, commit %s",
             properties.name, properties.multiProcessorCount, clock / 1000, memory_clock / 1000,
             l2 >> 20, driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10,
             GF_BENCH_COMMIT);
    return text;
}

static const BenchRunner *best_peer(const BenchResult &result) {
    const BenchRunner *best = nullptr;
    for (size_t i = BENCH_PEERS; i < result.runners.size(); i++) {
        const BenchRunner &peer = result.runners[i];
        if (!peer.failed && !peer.mismatch && (!best || bench_rate(peer) > bench_rate(*best)))
            best = &peer;
    }
    return best;
}

void bench_print_head() {
    printf("%-9s %-28s %-8s %-4s %2s %6s %7s %7s %7s %6s %5s  %-19s %6s %6s\n", "kernel", "case",
           "content", "type", "ch", "width", "copy", "read", "ours", "ratio", "goal", "best peer",
           "ratio", "times");
    fflush(stdout);
}

void bench_print_row(const BenchResult &result) {
    const BenchRow &row = result.row;
    printf("%-9s %-28s %-8s %-4s %2u %6llu", row.group, *row.text ? row.text : "default",
           bench_content_name(row.content), gf_type_name(row.type), row.channels,
           static_cast<unsigned long long>(row.width));
    if (!result.mismatch.empty()) {
        printf(" WRONG: %s\n", result.mismatch.c_str());
        fflush(stdout);
        return;
    }
    const BenchRunner &copy = result.runners[BENCH_COPY], &ours = result.runners[BENCH_OURS];
    const double ratio = bench_ratio(ours, copy);
    char goal[16] = "-";
    if (row.goal > 0)
        snprintf(goal, sizeof goal, "%.2f%s", row.goal, ratio >= row.goal ? "" : "!");
    printf(" %7.0f %7.0f %7.0f %6.3f %5s", bench_rate(copy), bench_rate(result.runners[BENCH_READ]),
           bench_rate(ours), ratio, goal);
    if (const BenchRunner *peer = best_peer(result))
        printf("  %-19s %6.3f %6.2f\n", (peer->name + (peer->caveat.empty() ? "" : "*")).c_str(),
               bench_ratio(*peer, copy), bench_ratio(ours, *peer));
    else
        printf("  -\n");
    for (size_t i = BENCH_PEERS; i < result.runners.size(); i++)
        if (result.runners[i].failed || result.runners[i].mismatch)
            printf("          (%s: %s)\n", result.runners[i].name.c_str(),
                   result.runners[i].failed ? "failed" : "wrong result");
    fflush(stdout);
}

void bench_print_notes(const std::vector<BenchResult> &results) {
    std::vector<std::string> notes;
    for (const BenchResult &result : results) {
        if (strcmp(result.row.filter, "normalize") == 0)
            notes.push_back(
                "normalize: only the pass that writes; a run starts with a pass of axis-sum");
        for (const BenchRunner &runner : result.runners)
            if (!runner.caveat.empty())
                notes.push_back("* " + runner.name + ": " + runner.caveat);
    }
    for (size_t i = 0; i < notes.size(); i++)
        if (std::find(notes.begin(), notes.begin() + static_cast<ptrdiff_t>(i), notes[i]) ==
            notes.begin() + static_cast<ptrdiff_t>(i))
            printf("%s\n", notes[i].c_str());
}

static void write_runner(FILE *file, const BenchRunner &runner, const BenchRunner &copy,
                         bool first) {
    fprintf(file, "%s\n      {\"name\": \"%s\", \"state\": \"%s\"", first ? "" : ",",
            runner.name.c_str(),
            runner.failed     ? "failed"
            : runner.mismatch ? "mismatch"
            : !runner.checked ? "unchecked"
                              : "ok");
    if (!runner.caveat.empty())
        fprintf(file, ", \"caveat\": \"%s\"", runner.caveat.c_str());
    if (!runner.failed)
        fprintf(file, ", \"ms\": %.6f, \"gb_per_s\": %.2f, \"bytes\": %.0f, \"ratio\": %.4f",
                bench_median(runner.ms), bench_rate(runner), runner.bytes,
                bench_ratio(runner, copy));
    fputc('}', file);
}

bool bench_write_json(const char *path, const std::string &machine,
                      const std::vector<BenchResult> &results) {
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    fprintf(file, "{\n  \"machine\": \"%s\",\n  \"rows\": [", machine.c_str());
    for (size_t i = 0; i < results.size(); i++) {
        const BenchResult &result = results[i];
        fprintf(file,
                "%s\n    {\"kernel\": \"%s\", \"case\": \"%s\", \"content\": \"%s\", \"type\": "
                "\"%s\", \"channels\": %u, \"width\": %llu, \"height\": %llu, \"goal\": %.2f, "
                "\"mismatch\": \"%s\", \"runners\": [",
                i ? "," : "", result.row.group, result.row.text,
                bench_content_name(result.row.content), gf_type_name(result.row.type),
                result.row.channels, static_cast<unsigned long long>(result.row.width),
                static_cast<unsigned long long>(result.rows), result.row.goal,
                result.mismatch.c_str());
        for (size_t k = 0; k < result.runners.size(); k++)
            write_runner(file, result.runners[k], result.runners[BENCH_COPY], k == 0);
        fprintf(file, "]}");
    }
    fprintf(file, "\n  ]\n}\n");
    return fclose(file) == 0;
}
