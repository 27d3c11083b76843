// Operations on a stream, and sequences of launches.
#include "cuda/device.cuh"

#include <stdlib.h>
#include <time.h>

static constexpr double spin_seconds = 1e-3; // of a wait, before the thread sleeps
static constexpr long sleep_ns = 50000;

void gf_queue_wait(gf_queue *queue, const char *what) {
    const double began = gf_now();
    const struct timespec pause = {0, sleep_ns};
    cudaError_t result;
    while ((result = cudaStreamQuery(queue->stream)) == cudaErrorNotReady)
        if (gf_now() - began > spin_seconds)
            nanosleep(&pause, nullptr);
    gf_queue_check(queue, result, what);
}

static constexpr uint32_t max_steps = 8;

// A kernel of a sequence.
struct gf_recorded {
    cudaGraphNode_t node;
    cudaKernelNodeParams kernel;
    unsigned char *arguments; // their bytes
};

struct gf_sequence {
    cudaGraph_t graph;
    cudaGraphExec_t exec; // NULL until the first recording is complete
    gf_recorded steps[max_steps];
    uint32_t count;    // steps of the graph
    uint32_t recorded; // steps of the current recording
    bool differs;      // the current recording cannot become the graph, or is not equal to it
    bool failed;       // there is no graph
};

// Return whether a call succeeded. Clear its error: the caller launches the kernels one by one.
static bool sequence_succeeds(cudaError_t result) {
    if (result != cudaSuccess)
        cudaGetLastError();
    return result == cudaSuccess;
}

// Free the graph. The sequence cannot be recorded again.
static void sequence_fail(gf_sequence *sequence) {
    if (sequence->exec)
        cudaGraphExecDestroy(sequence->exec);
    if (sequence->graph)
        cudaGraphDestroy(sequence->graph);
    for (gf_recorded &step : sequence->steps)
        free(step.arguments);
    *sequence = {};
    sequence->failed = true;
}

void gf_sequence_free(gf_sequence *sequence) {
    if (sequence)
        sequence_fail(sequence);
    free(sequence);
}

// Record a launch: add its kernel to the graph, or update it there. Returns false on failure.
static bool sequence_record(gf_sequence *sequence, const gf_launch &launch) {
    const uint32_t index = sequence->recorded++;
    const bool first = !sequence->exec; // the first recording
    if (sequence->failed || index >= (first ? max_steps : sequence->count))
        return false;
    gf_recorded *step = &sequence->steps[index];
    if (first) {
        size_t size = 0;
        for (size_t i = 0; i < launch.count; i++)
            size += launch.sizes[i];
        step->arguments = static_cast<unsigned char *>(calloc(1, size));
    }
    if (!step->arguments || (!first && step->kernel.func != launch.kernel))
        return false;
    bool changed = memcmp(&step->kernel.gridDim, &launch.grid, sizeof launch.grid) != 0 ||
                   step->kernel.sharedMemBytes != launch.shared;
    unsigned char *at = step->arguments;
    for (size_t i = 0; i < launch.count; at += launch.sizes[i++])
        if (memcmp(at, launch.arguments[i], launch.sizes[i]) != 0) {
            memcpy(at, launch.arguments[i], launch.sizes[i]);
            changed = true;
        }
    step->kernel = {const_cast<void *>(launch.kernel),
                    launch.grid,
                    dim3(launch.block),
                    static_cast<unsigned>(launch.shared),
                    const_cast<void **>(launch.arguments),
                    nullptr};
    if (first) {
        sequence->count++;
        return sequence_succeeds(cudaGraphAddKernelNode(&step->node, sequence->graph,
                                                        index > 0 ? &step[-1].node : nullptr,
                                                        index > 0 ? 1 : 0, &step->kernel));
    }
    if (!changed || sequence_succeeds(cudaGraphExecKernelNodeSetParams(sequence->exec, step->node,
                                                                       &step->kernel)))
        return true;
    sequence_fail(sequence); // the copy is newer than the graph
    return false;
}

bool gf_sequence_begin(gf_sequence **sequence, gf_queue *queue) {
    if (!*sequence)
        *sequence = gf_queue_new<gf_sequence>(queue, "a graph");
    if (!*sequence || (*sequence)->failed)
        return false;
    (*sequence)->recorded = 0;
    (*sequence)->differs = false;
    if (!(*sequence)->exec && !sequence_succeeds(cudaGraphCreate(&(*sequence)->graph, 0))) {
        sequence_fail(*sequence);
        return false;
    }
    queue->sequence = *sequence;
    return true;
}

bool gf_sequence_refuse(gf_queue *queue) {
    if (queue->sequence)
        queue->sequence->differs = true;
    return queue->sequence != nullptr;
}

bool gf_sequence_launch(gf_queue *queue) {
    gf_sequence *sequence = queue->sequence;
    queue->sequence = nullptr;
    sequence->differs |= queue->status != GF_OK;
    if (sequence->failed)
        return false;
    if (!sequence->exec &&
        (sequence->differs || sequence->count < 2 ||
         !sequence_succeeds(cudaGraphInstantiateWithFlags(&sequence->exec, sequence->graph, 0)))) {
        sequence_fail(sequence);
        return false;
    }
    return !sequence->differs && sequence->recorded == sequence->count &&
           sequence_succeeds(cudaGraphLaunch(sequence->exec, queue->stream));
}

uint32_t gf_code_version(const void *kernel) {
    return gf_per_device([kernel](int) {
        cudaFuncAttributes code;
        if (cudaFuncGetAttributes(&code, kernel) == cudaSuccess)
            return static_cast<uint32_t>(code.ptxVersion);
        cudaGetLastError();
        return 0u;
    });
}

void gf_launch_any(const gf_launch &launch, gf_queue *queue) {
    if (queue->status)
        return;
    if (queue->sequence) {
        queue->sequence->differs |= !sequence_record(queue->sequence, launch);
        return;
    }
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    // Code for devices before sm_90 cannot wait for the stream: it is launched as usual.
    const cudaLaunchConfig_t config = {
        launch.grid,   dim3(launch.block),
        launch.shared, queue->stream,
        &early,        gf_code_version(launch.kernel) >= 90 ? 1u : 0u};
    gf_queue_check(
        queue, cudaLaunchKernelExC(&config, launch.kernel, const_cast<void **>(launch.arguments)),
        queue->name);
}

// Clear records.
// Grid: one thread per word, at most 8 blocks per SM, which loop. Block: 256 threads. Shared
// memory: none. Registers: 16 (sm_90).
static __global__ void __launch_bounds__(256) clear_rows(gf_rows rows, uint32_t words) {
    gf_wait_for_stream();
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * 256 + threadIdx.x; i < rows.rows * words;
         i += static_cast<uint64_t>(gridDim.x) * 256)
        reinterpret_cast<uint64_t *>(rows.data + i / words * rows.stride)[i % words] = 0;
}

void gf_clear_rows(const gf_rows &rows, uint32_t words, gf_queue *queue) {
    gf_launch_kernel(clear_rows, gf_grid(rows.rows * words, 256), 256, 0, queue, rows, words);
}
