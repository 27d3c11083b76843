// Benchmark of chains of three nodes on a GPU: node after node over the whole image, or in strips
// of rows that pass through all nodes while they are in the L2 cache. See bench-chain --help.
// No kernel has a switch between evict-first and other stores: those of normalize are always
// evict-first, also in strips.
#include "cuda_bench.cuh"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "backend/backend.h"
#include "core/filter.h"
}

namespace {

constexpr uint32_t node_count = 3, max_branches = 4;
constexpr uint64_t image_width = 6000, image_height = 4000;
constexpr int warm_ups = 5;
// The device waits while the host queues a graph; the largest one has 109 kernels.
constexpr unsigned spin_ns = 400000;

struct Chain {
    const char *name;
    struct {
        const char *filter, *text, *f32_text; // texts: settings, as in gf_filter_info.cases
    } nodes[node_count];
};

// normalize: its first pass is not timed, therefore it is pointwise here.
const Chain chains[] = {
    {"windows",
     {{"gaussian", "sigma=1", "sigma=1"}, {"median", "radius=1", "radius=1"}, {"sharpen", "", ""}}},
    {"measure",
     {{"gaussian", "sigma=1", "sigma=1"},
      {"normalize", "", ""},
      {"hist", "channel=all", "channel=all range=0,2"}}},
};

struct Image {
    gf_type type;
    uint32_t channels;
};

const Image images[] = {{GF_U8, 3}, {GF_U8, 1}, {GF_U16, 3}, {GF_F32, 1}};

struct Setting {
    unsigned strip_mb; // pixels of a strip of an edge, in 10^6 bytes; 0: the whole image
    uint64_t rows;     // per strip
    uint32_t branches; // of the graph: strips that may run concurrently
};

// Return the settings of an image. Its strips have nearly equal heights.
std::vector<Setting> chain_settings(const gf_format &format) {
    std::vector<Setting> settings = {{0, image_height, 1}};
    for (unsigned mb : {4, 8, 16, 24}) {
        const uint64_t bytes = mb * UINT64_C(1000000);
        const uint64_t strips = (gf_row_bytes(&format) * image_height + bytes / 2) / bytes;
        for (uint32_t branches : {1, 2, 4})
            if (branches <= strips)
                settings.push_back({mb, gf_divide_up(image_height, strips), branches});
    }
    return settings;
}

// A chain on one image. Edge e is the input of node e, and the output of the node before. Edges 0
// and 3 belong to the first branch. The edges of a branch are as large as the image; a strip uses
// their first rows.
struct Case {
    gf_format format = {};
    size_t stride = 0;
    gf_plan *plans[node_count] = {};
    BenchMemory edges[max_branches][node_count + 1], scratch[max_branches][node_count];
    BenchMemory constants[node_count], state; // state: of the last node
    cudaStream_t streams[max_branches] = {};
    cudaEvent_t fork = nullptr, joins[max_branches] = {};
    std::vector<unsigned char> expected; // result of the whole image: pixels, or the state

    ~Case() {
        for (gf_plan *plan : plans)
            gf_plan_free(plan);
        for (uint32_t b = 0; b < max_branches; b++) {
            if (streams[b])
                cudaStreamDestroy(streams[b]);
            if (joins[b])
                cudaEventDestroy(joins[b]);
        }
        if (fork)
            cudaEventDestroy(fork);
    }
    const gf_plan *last() const {
        return plans[node_count - 1];
    }
};

BenchMemory chain_allocate(size_t bytes, gf_queue *queue) {
    const BenchMemory memory = queue->status ? BenchMemory() : bench_memory(bytes);
    if (!queue->status && !memory)
        gf_queue_fail_memory(queue, bytes, "device memory");
    return memory;
}

// ---- launches -----------------------------------------------------------------------------------

gf_rows chain_rows(const Case &c, uint32_t edge, uint32_t branch, gf_range rows) {
    const bool whole = edge == 0 || edge == node_count;
    unsigned char *data = c.edges[whole ? 0 : branch][edge].get();
    if (data && whole)
        data += rows.first * c.stride;
    return {data, c.stride, rows.first, rows.end - rows.first};
}

// Queue the computation of rows by a node.
void chain_queue_node(const Case &c, uint32_t node, uint32_t branch, gf_range rows,
                      gf_queue *queue) {
    const gf_plan *plan = c.plans[node];
    gf_strip strip = {};
    strip.in[0] = chain_rows(c, node, branch, gf_map_needs(plan, rows));
    strip.out = chain_rows(c, node + 1, branch, rows);
    strip.constants = c.constants[node].get();
    strip.state = c.state.get();
    queue->name = plan->filter->info.name;
    gf_filter_kernels(plan->filter)->launch(plan, &strip, c.scratch[branch][node].get(), queue);
}

// Queue a strip of the last node's rows: all nodes, each on the rows that the later ones need.
void chain_queue_strip(const Case &c, uint32_t branch, gf_range rows, gf_queue *queue) {
    gf_range computed[node_count];
    for (uint32_t i = node_count; i-- > 0; rows = gf_map_needs(c.plans[i], rows))
        computed[i] = rows;
    for (uint32_t i = 0; i < node_count; i++)
        chain_queue_node(c, i, branch, computed[i], queue);
}

void chain_queue_clear(const Case &c, gf_queue *queue) {
    const uint64_t bytes = c.last()->state_bytes;
    if (bytes)
        gf_clear_rows({c.state.get(), bytes, 0, 1}, static_cast<uint32_t>(bytes / 8), queue);
}

// Queue all strips. The branches leave the first stream after the state was cleared, and join it at
// the end.
void chain_queue_setting(const Case &c, const Setting &setting, gf_queue *queue) {
    queue->stream = c.streams[0];
    chain_queue_clear(c, queue);
    gf_queue_record(queue, c.fork);
    for (uint32_t b = 1; b < setting.branches; b++) {
        queue->stream = c.streams[b];
        gf_queue_follow(queue, c.fork);
    }
    uint32_t k = 0;
    for (uint64_t y = 0; y < image_height; y += setting.rows, k++) {
        queue->stream = c.streams[k % setting.branches];
        chain_queue_strip(c, k % setting.branches, {y, gf_min(y + setting.rows, image_height)},
                          queue);
    }
    for (uint32_t b = 1; b < setting.branches; b++) {
        queue->stream = c.streams[b];
        gf_queue_record(queue, c.joins[b]);
        queue->stream = c.streams[0];
        gf_queue_follow(queue, c.joins[b]);
    }
}

// Return a runner that launches what `work` queues on the first stream, as a graph.
template <typename F>
BenchRunner chain_capture(const Case &c, const char *name, gf_queue *queue, F work) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    queue->stream = c.streams[0];
    gf_queue_call(queue, "cudaStreamBeginCapture",
                  cudaStreamBeginCapture(queue->stream, cudaStreamCaptureModeRelaxed));
    if (!queue->status) {
        work();
        gf_queue_check(queue, cudaStreamEndCapture(c.streams[0], &graph), "cudaStreamEndCapture");
    }
    gf_queue_call(queue, "cudaGraphInstantiate", cudaGraphInstantiateWithFlags(&exec, graph, 0));
    if (graph)
        cudaGraphDestroy(graph);
    const std::shared_ptr<CUgraphExec_st> owned(
        exec, [](cudaGraphExec_t old) { old ? cudaGraphExecDestroy(old) : cudaSuccess; });
    BenchRunner runner;
    runner.name = name;
    runner.bytes = 1; // bench_ratio of two runners is then that of their times, inverted
    runner.run = [owned](cudaStream_t stream) {
        return cudaGraphLaunch(owned.get(), stream) == cudaSuccess;
    };
    return runner;
}

// ---- preparation --------------------------------------------------------------------------------

// Create the plans. Their rows must be those of the image, and only the last one may measure.
void chain_make_plans(Case *c, const Chain &chain, gf_queue *queue) {
    for (uint32_t i = 0; i < node_count && !queue->status; i++) {
        const auto &node = chain.nodes[i];
        const gf_filter *filter = gf_filter_find(node.filter);
        gf_settings *settings = gf_settings_new(filter->info.params, filter->info.param_count);
        if (!settings)
            gf_queue_fail_memory(queue, filter->info.param_count, "settings");
        if (!queue->status)
            queue->status = gf_settings_apply_case(
                settings, c->format.type == GF_F32 ? node.f32_text : node.text, queue->error);
        if (!queue->status)
            queue->status = gf_plan_new(filter, settings, &c->format, &c->plans[i], queue->error);
        gf_settings_free(settings);
        const gf_plan *plan = c->plans[i];
        if (!queue->status &&
            (plan->inputs != 1 || plan->rows || plan->record || plan->has_payload ||
             plan->ordered || (i < node_count - 1 && plan->state_bytes) ||
             (plan->out.width ? !gf_format_equal(&plan->out, &c->format) : i < node_count - 1)))
            gf_queue_fail(queue, GF_USAGE, "a chain cannot have this node: %s", node.filter);
    }
}

void chain_make_memory(Case *c, gf_queue *queue) {
    c->edges[0][0] = chain_allocate(c->stride * image_height, queue);
    if (c->last()->out.width)
        c->edges[0][node_count] = chain_allocate(c->stride * image_height, queue);
    c->state = chain_allocate(c->last()->state_bytes, queue);
    gf_event_create(&c->fork, cudaEventDisableTiming, queue);
    for (uint32_t b = 0; b < max_branches; b++) {
        gf_stream_create(&c->streams[b], queue);
        gf_event_create(&c->joins[b], cudaEventDisableTiming, queue);
        for (uint32_t i = 0; i < node_count; i++) {
            const auto bytes = gf_filter_kernels(c->plans[i]->filter)->scratch_bytes;
            c->scratch[b][i] = chain_allocate(bytes ? bytes(c->plans[i], image_height) : 0, queue);
            if (i > 0)
                c->edges[b][i] = chain_allocate(c->stride * image_height, queue);
        }
    }
    for (uint32_t i = 0; i < node_count; i++) {
        const gf_plan *plan = c->plans[i];
        c->constants[i] = chain_allocate(plan->constant_bytes, queue);
        if (plan->constant_bytes)
            gf_queue_call(queue, "upload",
                          cudaMemcpy(c->constants[i].get(), plan->constants, plan->constant_bytes,
                                     cudaMemcpyHostToDevice));
    }
}

// Fill the input with waves and noise: no two rows are equal.
void chain_fill(const Case &c, gf_queue *queue) {
    std::vector<unsigned char> pixels(c.stride * image_height);
    std::vector<double> wave(image_width + image_height);
    for (size_t i = 0; i < wave.size(); i++)
        wave[i] = sin(static_cast<double>(i) * 0.004);
    uint32_t random = 1;
    gf_for_type(c.format.type, [&](auto sample) {
        typedef decltype(sample) T;
        const double max = sizeof(T) == 1 ? 255 : sizeof(T) == 2 ? 65535 : 1;
        for (uint64_t y = 0; y < image_height; y++) {
            T *row = reinterpret_cast<T *>(&pixels[y * c.stride]);
            for (uint64_t i = 0; i < image_width * c.format.channels; i++) {
                random = random * 1664525 + 1013904223;
                const double noise = (random >> 8) * 0x1p-24;
                row[i] = static_cast<T>(
                    max * (0.4 + 0.3 * wave[i / c.format.channels + y] * wave[y] + 0.2 * noise));
            }
        }
    });
    gf_queue_call(
        queue, "upload",
        cudaMemcpy(c.edges[0][0].get(), pixels.data(), pixels.size(), cudaMemcpyHostToDevice));
}

// Compute the constants that a node derives from the whole image of its input edge.
void chain_refine(const Case &c, uint32_t node, gf_queue *queue) {
    const gf_plan *plan = c.plans[node], *first = plan->measure_first;
    if (!first)
        return;
    const gf_filter_cuda *kernels = gf_filter_kernels(first->filter);
    const BenchMemory records = chain_allocate(image_height * first->record, queue);
    const BenchMemory scratch = chain_allocate(
        kernels->scratch_bytes ? kernels->scratch_bytes(first, image_height) : 0, queue);
    gf_strip strip = {};
    strip.in[0] = chain_rows(c, node, 0, {0, image_height});
    strip.out.rows = image_height;
    strip.records = records.get();
    const gf_rows measured = gf_strip_records(first, &strip);
    kernels->launch(first, &strip, scratch.get(), queue);
    gf_filter_kernels(plan->filter)->refine(plan, &measured, c.constants[node].get(), queue);
    gf_queue_synchronize(queue, "kernel execution"); // records and scratch end here
}

// Download the pixels of the last edge, or the state.
std::vector<unsigned char> chain_download(const Case &c, gf_queue *queue) {
    const size_t row = gf_row_bytes(&c.format), state = c.last()->state_bytes;
    std::vector<unsigned char> result(state ? state : row * image_height);
    gf_queue_synchronize(queue, "kernel execution");
    if (state)
        gf_queue_call(queue, "download",
                      cudaMemcpy(result.data(), c.state.get(), state, cudaMemcpyDeviceToHost));
    else
        gf_queue_call(queue, "download",
                      cudaMemcpy2D(result.data(), row, c.edges[0][node_count].get(), c.stride, row,
                                   image_height, cudaMemcpyDeviceToHost));
    return result;
}

// Compute the result of the whole image, node after node, without a graph.
void chain_compute_expected(Case *c, gf_queue *queue) {
    gf_queue_call(queue, "cudaDeviceSynchronize", cudaDeviceSynchronize());
    queue->stream = c->streams[0];
    chain_queue_clear(*c, queue);
    for (uint32_t i = 0; i < node_count && !queue->status; i++) {
        chain_refine(*c, i, queue);
        chain_queue_node(*c, i, 0, {0, image_height}, queue);
    }
    c->expected = chain_download(*c, queue);
}

// Compare the result of a setting. All memory that it writes is overwritten before.
void chain_check(const Case &c, const BenchRunner &runner, gf_queue *queue) {
    queue->stream = c.streams[0];
    for (uint32_t b = 0; b < max_branches; b++)
        for (uint32_t e = 1; e <= node_count; e++)
            if (c.edges[b][e])
                gf_queue_call(queue, "cudaMemset",
                              cudaMemsetAsync(c.edges[b][e].get(), 0xa5, c.stride * image_height,
                                              queue->stream));
    if (c.last()->state_bytes)
        gf_queue_call(queue, "cudaMemset",
                      cudaMemsetAsync(c.state.get(), 0xa5, c.last()->state_bytes, queue->stream));
    if (!queue->status && !runner.run(queue->stream))
        gf_queue_check(queue, cudaGetLastError(), "cudaGraphLaunch");
    const std::vector<unsigned char> got = chain_download(c, queue);
    if (!queue->status && memcmp(got.data(), c.expected.data(), got.size()) != 0)
        gf_queue_fail(queue, GF_FAILED, "%s: the result differs from that of the whole image",
                      runner.name.c_str());
}

// ---- measurement and output ---------------------------------------------------------------------

const char header[] = "chain,type,channels,strip_mb,rows,strips,branches";

void chain_print(const Chain &chain, const gf_format &format, const Setting &setting) {
    printf("%s,%s,%u,%u,%llu,%llu,%u", chain.name, gf_type_name(format.type), format.channels,
           setting.strip_mb, static_cast<unsigned long long>(setting.rows),
           static_cast<unsigned long long>(gf_divide_up(image_height, setting.rows)),
           setting.branches);
}

enum { COPY, SINGLES, SETTINGS = SINGLES + node_count };

// Capture the runners: a copy, single nodes, settings. Check the settings.
std::vector<BenchRunner> chain_make_runners(const Case &c, const std::vector<Setting> &settings,
                                            gf_queue *queue) {
    const size_t bytes = gf_row_bytes(&c.format) * image_height;
    std::vector<BenchRunner> runners = {chain_capture(c, "copy", queue, [&] {
        gf_queue_copy(queue, c.edges[1][1].get(), c.edges[0][0].get(), bytes, "copy");
    })};
    for (uint32_t i = 0; i < node_count; i++)
        runners.push_back(chain_capture(c, c.plans[i]->filter->info.name, queue, [&] {
            if (i == node_count - 1)
                chain_queue_clear(c, queue);
            chain_queue_node(c, i, 0, {0, image_height}, queue);
        }));
    for (const Setting &setting : settings) {
        const std::string name = std::to_string(setting.strip_mb) + " MB, " +
                                 std::to_string(setting.branches) + " branches";
        runners.push_back(
            chain_capture(c, name.c_str(), queue, [&] { chain_queue_setting(c, setting, queue); }));
        if (!queue->status)
            chain_check(c, runners.back(), queue);
    }
    return runners;
}

bool chain_measure(const Chain &chain, const gf_format &format, int repeat) {
    gf_error error = {};
    gf_queue queue = gf_queue_on(nullptr, chain.name, &error);
    const std::vector<Setting> settings = chain_settings(format);
    Case c;
    c.format = format;
    c.stride = gf_align(gf_row_bytes(&format));
    chain_make_plans(&c, chain, &queue);
    if (!queue.status)
        chain_make_memory(&c, &queue);
    if (!queue.status)
        chain_fill(c, &queue);
    if (!queue.status)
        chain_compute_expected(&c, &queue);
    std::vector<BenchRunner> runners;
    if (!queue.status)
        runners = chain_make_runners(c, settings, &queue);
    if (!queue.status)
        bench_time(runners, warm_ups, repeat, spin_ns);
    for (const BenchRunner &runner : runners)
        if (!queue.status && runner.failed)
            gf_queue_fail(&queue, GF_FAILED, "%s: a launch failed", runner.name.c_str());
    if (queue.status) {
        fprintf(stderr, "bench-chain: %s, %s, %u channels: %s\n", chain.name,
                gf_type_name(format.type), format.channels, error.message);
        return false;
    }
    double singles = 0;
    for (uint32_t i = 0; i < node_count; i++)
        singles += bench_median(runners[SINGLES + i].ms);
    for (size_t i = 0; i < settings.size(); i++) {
        const BenchRunner &runner = runners[SETTINGS + i];
        chain_print(chain, format, settings[i]);
        printf(",%.2f,%.3f,%.2f,%.2f\n", bench_median(runner.ms) * 1e3,
               bench_ratio(runners[SETTINGS], runner), singles * 1e3,
               bench_median(runners[COPY].ms) * 1e3);
    }
    fflush(stdout);
    return true;
}

const char usage[] =
    "usage: bench-chain [OPTION...]\n"
    "  --chain NAME  windows: gaussian, median, sharpen; measure: gaussian, normalize (the pass that\n"
    "                writes), hist; default: both\n"
    "  --repeat N    timed launches of each graph (default: 51)\n"
    "  --list        print the settings and exit\n"
    "Times chains of three nodes on images of 24 MP in device memory, each setting as one CUDA graph,\n"
    "and prints CSV. strip_mb: pixels of a strip in 10^6 bytes, 0 for the whole image, node after\n"
    "node. us: median of the launches. ratio: to the whole image, below 1 is faster. singles_us: sum\n"
    "of three graphs of one node each. copy_us: copy of the image. Exit status 1 if a result differs\n"
    "from that of the whole image, or a call fails.\n";

} // namespace

int main(int argc, char **argv) {
    const char *only = nullptr;
    bool list = false, valid = true, found = false;
    int repeat = 51;
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--list") == 0)
            list = true;
        else if (strcmp(argv[i], "--chain") == 0 && more)
            only = argv[++i];
        else if (strcmp(argv[i], "--repeat") == 0 && more)
            repeat = atoi(argv[++i]);
        else
            valid = false;
    }
    for (const Chain &chain : chains)
        found = found || !only || strcmp(only, chain.name) == 0;
    if (!valid || !found || repeat < 1) {
        const bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
        fputs(usage, help ? stdout : stderr);
        return help ? 0 : 2;
    }
    int devices = 0;
    const cudaError_t status = list ? cudaSuccess : cudaGetDeviceCount(&devices);
    if (!list && (status != cudaSuccess || devices == 0)) {
        fprintf(stderr, "bench-chain: no device: %s\n", cudaGetErrorString(status));
        return 2;
    }
    if (!list)
        fprintf(stderr, "%s\n", bench_machine().c_str());
    printf("%s%s\n", header, list ? "" : ",us,ratio,singles_us,copy_us");
    bool ok = true;
    for (const Chain &chain : chains)
        for (const Image &image : images) {
            gf_format format = {};
            format.width = image_width, format.height = image_height;
            format.channels = image.channels, format.type = image.type;
            if (only && strcmp(only, chain.name) != 0)
                continue;
            if (!list)
                ok = chain_measure(chain, format, repeat) && ok;
            else
                for (const Setting &setting : chain_settings(format)) {
                    chain_print(chain, format, setting);
                    printf("\n");
                }
        }
    return !ok;
}
