// Images in device memory: checks of pointers and streams, memory of a job, and the queue of its
// kernels and copies (gf_device_functions).
#include "cuda/host/devices.cuh"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

// The kernels access 16 bytes at a time. Rows with another alignment are copied.
#define UNIT 16

// ---- unaligned rows -----------------------------------------------------------------------------

#define COPY_THREADS 128

struct gf_copy_args {
    unsigned char *to;
    const unsigned char *from;
    size_t to_stride, from_stride, bytes; // bytes: per row
    uint64_t rows;
};

// Return the 16 bytes from byte `skip` of two vectors, 0 < skip < 16.
GF_DEVICE uint4 copy_shift(const uint4 &a, const uint4 &b, uint32_t skip) {
    const uint32_t bits = skip % 4 * 8;
    uint32_t w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    if (skip & 8)
#pragma unroll
        for (int i = 0; i < 6; i++)
            w[i] = w[i + 2];
    if (skip & 4)
#pragma unroll
        for (int i = 0; i < 5; i++)
            w[i] = w[i + 1];
    return make_uint4(__funnelshift_r(w[0], w[1], bits), __funnelshift_r(w[1], w[2], bits),
                      __funnelshift_r(w[2], w[3], bits), __funnelshift_r(w[3], w[4], bits));
}

// Copy rows of any alignment. cudaMemcpy2DAsync takes twice as long.
// Grid: x = pieces of a row, y = rows, strided. Block: 128 threads. A thread writes one aligned
// unit of 16 bytes from two aligned loads; the second one hits the L1 cache. Bytes before the
// first unit and after the last one are copied singly; loads stay inside the row except for the
// unit that holds its first byte. Shared memory: none. Registers: 28 (sm_90).
__global__ void __launch_bounds__(COPY_THREADS) copy_rows(const gf_copy_args a) {
    gf_wait_for_stream();
    const size_t unit = static_cast<size_t>(blockIdx.x) * COPY_THREADS + threadIdx.x;
    for (uint64_t y = blockIdx.y; y < a.rows; y += gridDim.y) {
        unsigned char *to = a.to + y * a.to_stride;
        const unsigned char *from = a.from + y * a.from_stride;
        const size_t head = -reinterpret_cast<uintptr_t>(to) % UNIT;
        const size_t begin = head + unit * UNIT;
        const uint32_t skip = reinterpret_cast<uintptr_t>(from + begin) % UNIT;
        const uint4 *units = reinterpret_cast<const uint4 *>(from + begin - skip);
        if (begin + 2 * UNIT - skip <= a.bytes) {
            const uint4 first = units[0];
            *reinterpret_cast<uint4 *>(to + begin) =
                skip ? copy_shift(first, units[1], skip) : first;
        } else {
            for (size_t i = begin; i < begin + UNIT && i < a.bytes; i++)
                to[i] = from[i];
        }
        if (unit == 0)
            for (size_t i = 0; i < head && i < a.bytes; i++)
                to[i] = from[i];
    }
}

static void job_copy_rows(void *to, size_t to_stride, const void *from, size_t from_stride,
                          size_t bytes, uint64_t rows, gf_queue *queue) {
    const uint64_t units = gf_divide_up(bytes, UNIT), max_rows = 65535;
    const gf_copy_args args = {static_cast<unsigned char *>(to),
                               static_cast<const unsigned char *>(from),
                               to_stride,
                               from_stride,
                               bytes,
                               rows};
    const dim3 grid(static_cast<unsigned>(gf_divide_up(units, COPY_THREADS)),
                    static_cast<unsigned>(rows < max_rows ? rows : max_rows));
    gf_launch_kernel(copy_rows, grid, COPY_THREADS, 0, queue, args);
}

// ---- jobs ---------------------------------------------------------------------------------------

// Memory that a run needs in addition to the images. Runs on one stream share it, because they are
// executed in order.
struct gf_job_block {
    gf_job_block *next;
    uintptr_t stream; // see job_stream_key; UNUSED_STREAM: none yet
    gf_device_memory memory;
    gf_device_memory staged; // aligned copies of inputs and output; empty until needed
    // Kernels of a run on one image. By whether the inputs and the output are staged.
    gf_sequence *sequences[2][2];
};

// Measurements of one run, on the device and on the host.
struct gf_job_part {
    gf_device_part base;           // first member
    gf_job_part *next;             // in the job's list of unused parts
    uint64_t rows;                 // capacity
    gf_device_memory device, host; // host: pinned
    void *payload;                 // host memory for a whole payload
    size_t payload_bytes;          // size of that memory
    cudaEvent_t ready; // computed; once fetched: everything but the payload is in host memory
    uint64_t used;     // rows of the run
    bool fetched;
};

struct gf_cuda_job {
    const gf_cuda_devices *devices; // the job uses the first one
    const gf_filter *filter;
    const gf_plan *plan, *before;
    size_t in_row, out_row;       // bytes; out_row 0: no image
    size_t in_stride, out_stride; // of staged rows
    // Offsets in the memory of a block.
    size_t records_at, refined_at, block_bytes;
    cudaStream_t own; // for copies of measurements
    gf_job_block *blocks;
    gf_job_part *unused;
};

#define UNUSED_STREAM UINTPTR_MAX

// Return a number that identifies a stream. The default stream of a thread has one handle in all
// threads.
static uintptr_t job_stream_key(cudaStream_t stream) {
    return stream == cudaStreamPerThread ? reinterpret_cast<uintptr_t>(pthread_self())
                                         : reinterpret_cast<uintptr_t>(stream);
}

static size_t job_filter_scratch(const gf_filter *filter, const gf_plan *plan) {
    return gf_filter_kernels(filter)->scratch_bytes
               ? gf_filter_kernels(filter)->scratch_bytes(plan, plan->in.height)
               : 0;
}

static void job_free_blocks(gf_cuda_job *job) {
    while (job->blocks) {
        gf_job_block *block = job->blocks;
        job->blocks = block->next;
        cudaFree(block->memory.data);
        cudaFree(block->staged.data);
        for (auto &sequences : block->sequences)
            for (gf_sequence *sequence : sequences)
                gf_sequence_free(sequence);
        free(block);
    }
}

static gf_status job_add_block(gf_cuda_job *job, uintptr_t key, cudaStream_t stream,
                               gf_job_block **out, gf_error *error) {
    gf_job_block *block = static_cast<gf_job_block *>(calloc(1, sizeof *block));
    if (!block)
        return gf_fail_memory(error, job->filter->info.name, sizeof *block, "a job");
    block->stream = key;
    const gf_status status =
        gf_memory_grow_cleared(&block->memory, job->block_bytes, stream, error);
    if (status) {
        cudaFree(block->memory.data);
        free(block);
        return status;
    }
    block->next = job->blocks;
    *out = job->blocks = block;
    return GF_OK;
}

static void job_close(void *state) {
    gf_cuda_job *job = static_cast<gf_cuda_job *>(state);
    gf_caller_scope scope(job->devices->driver);
    scope.enter(job->devices, nullptr);
    job_free_blocks(job);
    while (job->unused) {
        gf_job_part *part = job->unused;
        job->unused = part->next;
        cudaFree(part->device.data);
        cudaFreeHost(part->host.data);
        if (part->ready)
            cudaEventDestroy(part->ready);
        free(part->payload);
        free(part);
    }
    if (job->own)
        cudaStreamDestroy(job->own);
    cudaGetLastError(); // clear the error of a failed device
    free(job);
}

static gf_status job_open(void *state, const gf_filter *filter, const gf_plan *plan,
                          const gf_plan *before, void **out, gf_error *error) {
    gf_cuda_job *job = static_cast<gf_cuda_job *>(calloc(1, sizeof *job));
    if (!job)
        return gf_fail_memory(error, filter->info.name, sizeof *job, "a job");
    job->devices = static_cast<const gf_cuda_devices *>(state);
    job->filter = filter;
    job->plan = plan;
    job->before = before;
    job->in_row = gf_row_bytes(&plan->in);
    job->out_row = plan->out.width ? gf_row_bytes(&plan->out) : 0;
    job->in_stride = gf_align(job->in_row);
    job->out_stride = gf_align(job->out_row);
    gf_caller_scope scope(job->devices->driver);
    gf_status status = scope.enter(job->devices, error);
    if (!status)
        status = gf_cuda_check(cudaStreamCreateWithFlags(&job->own, cudaStreamNonBlocking),
                               "cudaStreamCreate", error);
    if (!status) {
        const size_t own = job_filter_scratch(filter, plan);
        const size_t first = before ? job_filter_scratch(plan->before, before) : 0;
        job->records_at = gf_align(own > first ? own : first);
        const size_t records = before ? static_cast<size_t>(before->in.height) * before->record : 0;
        job->refined_at = job->records_at + gf_align(records);
        job->block_bytes = job->refined_at + gf_align(gf_filter_kernels(filter)->refined_bytes);
        gf_job_block *block;
        status = job_add_block(job, UNUSED_STREAM, job->own, &block, error);
    }
    gf_queue queue = {job->own, error, job->filter->info.name, status, nullptr};
    gf_queue_synchronize(&queue, "device memory"); // streams of the caller do not wait for this one
    if (queue.status)
        job_close(job);
    else
        *out = job;
    return queue.status;
}

// ---- checks -------------------------------------------------------------------------------------

// Check that an image is in memory of the device: see gf_check_memory. in_place: receives whether
// the kernels can access its rows there; they read whole units.
static gf_status job_check_pointer(const gf_cuda_job *job, const char *what, const void *data,
                                   size_t stride, size_t row, uint64_t rows, gf_memory_range *known,
                                   bool *in_place, gf_error *error) {
    const CUdeviceptr at = reinterpret_cast<CUdeviceptr>(data);
    const gf_status status = gf_cuda_check_memory(job->devices, job->filter->info.name, what, data,
                                                  (rows - 1) * stride + row, known, error);
    *in_place = at % UNIT == 0 && stride % UNIT == 0 &&
                (at + rows * stride <= known->end || stride - row < UNIT);
    return status;
}

#define CAPTURED_ALLOCATION                                                                        \
    "cannot allocate memory while the stream is captured; run the job on it once before"
#define CAPTURED_MEASUREMENT "cannot measure while the stream is captured"

// ---- measurements -------------------------------------------------------------------------------

// Sizes of the measurements of a run, in bytes.
struct gf_job_sizes {
    size_t records, state, head, payload;
};

static gf_job_sizes job_sizes(const gf_cuda_job *job, uint64_t rows) {
    gf_job_sizes sizes = {};
    sizes.records = gf_align(static_cast<size_t>(rows) * job->plan->record);
    sizes.state = gf_align(static_cast<size_t>(job->plan->state_bytes));
    if (job->plan->has_payload) {
        sizes.head = job->filter->payload->bytes(job->plan, 0);
        sizes.payload = gf_align(job->filter->payload->bytes(job->plan, rows));
    }
    return sizes;
}

// Start to copy the measurements, except the payload, to the host, and then to clear the state: the
// memory is ready for the next run.
static gf_status job_fetch(void *state, gf_device_part *base, gf_error *error) {
    const gf_cuda_job *job = static_cast<const gf_cuda_job *>(state);
    gf_job_part *part = reinterpret_cast<gf_job_part *>(base);
    if (part->fetched)
        return GF_OK;
    const gf_job_sizes sizes = job_sizes(job, part->rows);
    const size_t records = static_cast<size_t>(part->used) * job->plan->record;
    gf_caller_scope scope(job->devices->driver);
    gf_queue queue = {job->own, error, job->filter->info.name, scope.enter(job->devices, error),
                      nullptr};
    gf_queue_follow(&queue, part->ready);
    gf_queue_download(&queue, part->host.data, part->device.data, records);
    gf_queue_download(&queue, part->host.data + sizes.records, part->device.data + sizes.records,
                      sizes.state + sizes.head);
    gf_queue_clear(&queue, part->device.data + sizes.records, sizes.state);
    gf_queue_record(&queue, part->ready);
    part->fetched = !queue.status;
    return queue.status;
}

static void job_release(void *state, gf_device_part *base) {
    gf_cuda_job *job = static_cast<gf_cuda_job *>(state);
    gf_job_part *part = reinterpret_cast<gf_job_part *>(base);
    gf_caller_scope scope(job->devices->driver);
    scope.enter(job->devices, nullptr);
    // Errors are reported by job_wait.
    if (job_fetch(job, base, nullptr) ||
        gf_cuda_check(cudaEventSynchronize(part->ready), "kernel execution", nullptr))
        part->rows = 0; // not cleared: too small for any run
    part->next = job->unused;
    job->unused = part;
}

// Take an unused part that is large enough, or create one.
static gf_status job_take_part(gf_cuda_job *job, uint64_t rows, cudaStream_t stream,
                               gf_job_part **out, gf_error *error) {
    for (gf_job_part **at = &job->unused; *at; at = &(*at)->next)
        if ((*at)->rows >= rows) {
            *out = *at;
            *at = (*at)->next;
            return GF_OK;
        }
    gf_job_part *part = static_cast<gf_job_part *>(calloc(1, sizeof *part));
    if (!part)
        return gf_fail_memory(error, job->filter->info.name, sizeof *part, "a measurement");
    const gf_job_sizes sizes = job_sizes(job, rows);
    const size_t measured = sizes.records + sizes.state;
    gf_status status =
        gf_memory_grow_cleared(&part->device, measured + sizes.payload, stream, error);
    if (!status)
        status = gf_memory_grow(&part->host, measured + sizes.head, true, error);
    if (!status)
        status = gf_event_create(&part->ready, cudaEventDisableTiming, error);
    if (status) { // keep what was allocated until the job ends; no run can use it
        part->next = job->unused;
        job->unused = part;
        return status;
    }
    part->rows = rows;
    *out = part;
    return GF_OK;
}

// Record that the measurements of a run are queued.
static gf_status job_finish_part(const gf_cuda_job *job, gf_job_part *part, uint64_t rows,
                                 cudaStream_t stream, gf_error *error) {
    const gf_job_sizes sizes = job_sizes(job, part->rows);
    part->base = {};
    if (job->plan->record)
        part->base.records = {part->host.data, job->plan->record, 0, rows};
    if (job->plan->state_bytes)
        part->base.state = part->host.data + sizes.records;
    part->used = rows;
    part->fetched = false;
    return gf_cuda_check(cudaEventRecord(part->ready, stream), "cudaEventRecord", error);
}

static gf_status job_wait(void *state, gf_device_part *base, gf_error *error) {
    const gf_cuda_job *job = static_cast<const gf_cuda_job *>(state);
    gf_job_part *part = reinterpret_cast<gf_job_part *>(base);
    gf_caller_scope scope(job->devices->driver);
    gf_status status = scope.enter(job->devices, error);
    if (!status)
        status = gf_cuda_check(cudaEventSynchronize(part->ready), "kernel execution", error);
    if (status || !job->plan->has_payload)
        return status;
    const gf_job_sizes sizes = job_sizes(job, part->rows);
    const size_t at = sizes.records + sizes.state;
    const size_t used = job->filter->payload->used(job->plan, part->host.data + at);
    // Check the size: a wrong one would overwrite other memory.
    if (used < sizes.head || used > sizes.payload)
        return gf_fail(error, GF_NO_BACKEND, "cuda: the device returned an invalid sample count");
    if (used > part->payload_bytes) {
        free(part->payload);
        part->payload = malloc(used);
        part->payload_bytes = part->payload ? used : 0;
        if (!part->payload)
            return gf_fail_memory(error, job->filter->info.name, used, "extracted samples");
    }
    base->payload = part->payload;
    gf_queue queue = {job->own, error, job->filter->info.name, GF_OK, nullptr};
    gf_queue_download(&queue, part->payload, part->device.data + at, used);
    gf_queue_synchronize(&queue, "download");
    return queue.status;
}

// ---- runs ---------------------------------------------------------------------------------------

// Memory of one run.
struct gf_job_memory {
    gf_job_block *block;
    gf_job_part *part; // NULL: no measurements
    bool in_staged, out_staged;
    gf_memory_range in_range, out_range; // of the last image that was checked
};

// Find the block of a stream. The first stream takes the one that job_open has created.
static gf_status job_find_block(gf_cuda_job *job, cudaStream_t stream, gf_job_memory *memory,
                                gf_error *error) {
    const uintptr_t key = job_stream_key(stream);
    gf_job_block *block = job->blocks;
    while (block && block->stream != key && block->stream != UNUSED_STREAM)
        block = block->next;
    gf_status status = GF_OK;
    const size_t height = static_cast<size_t>(job->plan->in.height);
    const size_t staged = memory->in_staged || memory->out_staged
                              ? (job->plan->inputs * job->in_stride + job->out_stride) * height
                              : 0;
    if (!block || block->staged.size < staged)
        status = gf_cuda_check_capture(job->filter->info.name, stream, CAPTURED_ALLOCATION, error);
    if (!status && !block)
        status = job_add_block(job, key, stream, &block, error);
    if (!status)
        status = gf_memory_grow_cleared(&block->staged, staged, stream, error);
    if (status)
        return status;
    block->stream = key;
    memory->block = block;
    return GF_OK;
}

// Queue the filter that measures first, and the completion of the plan from its records.
static void job_refine(const gf_cuda_job *job, const gf_job_memory *memory, gf_strip *strip,
                       gf_queue *queue) {
    if (!job->before)
        return;
    unsigned char *block = memory->block->memory.data;
    gf_strip before = {};
    before.in = strip->in;
    before.out = {block + job->records_at, job->before->record, 0, job->before->in.height};
    strip->refined = block + job->refined_at;
    queue->name = job->plan->before->info.name;
    gf_filter_kernels(job->plan->before)->launch(job->before, &before, block, queue);
    queue->name = job->filter->info.name;
    gf_filter_kernels(job->filter)->refine(job->plan, &before.out, block + job->refined_at, queue);
}

// Queue `images` images of `rows` rows. records: of the first row.
static void job_launch(const gf_cuda_job *job, const gf_job_memory *memory, uint64_t images,
                       uint64_t rows, const gf_pixels *in, const gf_out_pixels *out,
                       unsigned char *records, gf_queue *queue) {
    const gf_plan *plan = job->plan;
    gf_strip strip = {};
    gf_pixels copies[2];
    unsigned char *staged = memory->block->staged.data;
    strip.images = static_cast<uint32_t>(images);
    strip.in_list = in;
    strip.out_list = out;
    if (memory->in_staged) {
        for (uint32_t i = 0; i < plan->inputs; i++) {
            copies[i] = {staged, job->in_stride};
            job_copy_rows(staged, job->in_stride, in[i].data, in[i].stride, job->in_row, rows,
                          queue);
            staged += plan->in.height * job->in_stride;
        }
        strip.in_list = copies;
    }
    strip.in = {static_cast<unsigned char *>(const_cast<void *>(strip.in_list->data)),
                strip.in_list->stride, 0, rows};
    if (memory->out_staged)
        strip.out = {staged, job->out_stride, 0, rows};
    else if (job->out_row)
        strip.out = {static_cast<unsigned char *>(out->data), out->stride, 0, rows};
    else
        strip.out = {records, plan->record, 0, rows};
    strip.records = records;
    if (memory->part) {
        const gf_job_sizes sizes = job_sizes(job, memory->part->rows);
        strip.state = memory->part->device.data + sizes.records;
        strip.payload = memory->part->device.data + sizes.records + sizes.state;
    }
    job_refine(job, memory, &strip, queue);
    gf_filter_kernels(job->filter)->launch(plan, &strip, memory->block->memory.data, queue);
    if (memory->out_staged)
        job_copy_rows(out->data, out->stride, staged, job->out_stride, job->out_row, rows, queue);
}

// Return how many of the first images one launch computes: those with the strides of the first.
static uint64_t job_list_length(const gf_cuda_job *job, const gf_job_memory *memory,
                                uint64_t images, uint64_t rows, const gf_pixels *in,
                                const gf_out_pixels *out) {
    uint64_t n = 1;
    if (!gf_filter_kernels(job->filter)->lists || !gf_rows_independent(job->plan) ||
        memory->in_staged || memory->out_staged)
        return 1;
    while (n < images && n < GF_STRIP_IMAGES && (n + 1) * rows < INT32_MAX &&
           in[n * job->plan->inputs].stride == in->stride &&
           (!job->out_row || out[n].stride == out->stride))
        n++;
    return n;
}

// Set the memory of an image from row `first` on. out: NULL without an output.
static void job_rows_from(const gf_cuda_job *job, uint64_t first, const gf_pixels *in,
                          const gf_out_pixels *out, gf_pixels *in_from, gf_out_pixels *out_from) {
    for (uint32_t i = 0; i < job->plan->inputs; i++)
        in_from[i] = {static_cast<const unsigned char *>(in[i].data) + first * in[i].stride,
                      in[i].stride};
    if (out)
        *out_from = {static_cast<unsigned char *>(out->data) + first * out->stride, out->stride};
}

// Queue all images. Staged ones are queued one at a time.
static void job_queue(const gf_cuda_job *job, const gf_job_memory *memory, uint64_t images,
                      uint64_t rows, const gf_pixels *in, const gf_out_pixels *out,
                      gf_queue *queue) {
    const uint32_t inputs = job->plan->inputs;
    const bool staged = memory->in_staged || memory->out_staged;
    const uint64_t step = staged ? job->plan->in.height : rows;
    unsigned char *records = memory->part ? memory->part->device.data : nullptr;
    for (uint64_t i = 0, n; i < images && !queue->status; i += n) {
        const gf_pixels *from = in + i * inputs;
        const gf_out_pixels *to = job->out_row ? out + i : nullptr;
        n = job_list_length(job, memory, images - i, rows, from, to);
        for (uint64_t first = 0; first < rows && !queue->status; first += step) {
            gf_pixels at[2];
            gf_out_pixels out_at = {};
            job_rows_from(job, first, from, to, at, &out_at);
            job_launch(job, memory, n, step, n > 1 ? from : at, n > 1 ? to : &out_at, records,
                       queue);
            if (records)
                records += n * step * job->plan->record;
        }
    }
}

// Queue a run on one image as a graph. Returns false if its kernels must be launched one by one.
static bool job_queue_graph(const gf_cuda_job *job, const gf_job_memory *memory, uint64_t rows,
                            const gf_pixels *in, const gf_out_pixels *out, cudaStream_t stream) {
    gf_sequence **sequence =
        &memory->block->sequences[memory->in_staged ? 1 : 0][memory->out_staged ? 1 : 0];
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &capture) != cudaSuccess) {
        cudaGetLastError(); // reported by the launches
        return false;
    }
    if (capture != cudaStreamCaptureStatusNone)
        return false;
    if (!*sequence)
        *sequence = gf_sequence_new();
    gf_queue queue = gf_queue_on(job->own, job->filter->info.name, nullptr);
    if (!*sequence || !gf_sequence_begin(*sequence, &queue))
        return false;
    job_queue(job, memory, 1, rows, in, out, &queue);
    if (!gf_sequence_end(&queue))
        return false;
    if (gf_sequence_launch(*sequence, stream) == cudaSuccess)
        return true;
    cudaGetLastError();
    return false;
}

// Check the memory of one image.
static gf_status job_check_image(const gf_cuda_job *job, uint64_t rows, const gf_pixels *in,
                                 const gf_out_pixels *out, gf_job_memory *memory, gf_error *error) {
    bool in_place = false;
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < job->plan->inputs && !status; i++) {
        status = job_check_pointer(job, i ? "second input" : "input", in[i].data, in[i].stride,
                                   job->in_row, rows, &memory->in_range, &in_place, error);
        memory->in_staged |= !in_place || in[i].stride != in[0].stride;
    }
    if (!status && job->out_row) {
        status = job_check_pointer(job, "output", out->data, out->stride, job->out_row, rows,
                                   &memory->out_range, &in_place, error);
        memory->out_staged |= !in_place;
    }
    return status;
}

// Check the memory of images without a gap. They may be in several allocations.
static gf_status job_check_images(const gf_cuda_job *job, uint64_t rows, const gf_pixels *in,
                                  const gf_out_pixels *out, gf_job_memory *memory,
                                  gf_error *error) {
    const uint64_t height = job->plan->in.height;
    gf_job_memory all = *memory;
    gf_status status = GF_OK;
    if (rows > height && !job_check_image(job, rows, in, out, &all, nullptr)) {
        *memory = all;
        return GF_OK;
    }
    for (uint64_t first = 0; first < rows && !status; first += height) {
        gf_pixels at[2];
        gf_out_pixels out_at = {};
        job_rows_from(job, first, in, out, at, &out_at);
        status = job_check_image(job, height, at, &out_at, memory, error);
    }
    return status;
}

static gf_status job_run(void *state, uint64_t images, uint64_t rows, const gf_pixels *in,
                         const gf_out_pixels *out, cudaStream_t stream, gf_device_part **part,
                         gf_error *error) {
    gf_cuda_job *job = static_cast<gf_cuda_job *>(state);
    gf_job_memory memory = {};
    gf_caller_scope scope(job->devices->driver);
    gf_status status = scope.enter(job->devices, error);
    if (!status)
        status = gf_cuda_check_stream(job->devices, job->filter->info.name, stream, nullptr, error);
    for (uint64_t i = 0; i < images && !status; i++)
        status = job_check_images(job, rows, in + i * job->plan->inputs, out ? out + i : nullptr,
                                  &memory, error);
    if (!status && job->filter->measure)
        status = gf_cuda_check_capture(job->filter->info.name, stream, CAPTURED_MEASUREMENT, error);
    if (!status)
        status = job_find_block(job, stream, &memory, error);
    if (!status && job->filter->measure)
        status = job_take_part(job, images * rows, stream, &memory.part, error);
    const bool one = images == 1 && rows == job->plan->in.height;
    gf_queue queue = {stream, error, job->filter->info.name, status, nullptr};
    if (!status && !(one && job_queue_graph(job, &memory, rows, in, out, stream)))
        job_queue(job, &memory, images, rows, in, out, &queue);
    status = queue.status;
    if (!memory.part)
        return status;
    const gf_status finished =
        job_finish_part(job, memory.part, images * rows, stream, status ? nullptr : error);
    status = status ? status : finished;
    if (status)
        job_release(job, &memory.part->base);
    else
        *part = &memory.part->base;
    return status;
}

static gf_status job_wait_stream(void *state, cudaStream_t stream, gf_error *error) {
    const gf_cuda_devices *devices = static_cast<const gf_cuda_devices *>(state);
    gf_caller_scope scope(devices->driver);
    gf_queue queue = {stream, error, "cuda", scope.enter(devices, error), nullptr};
    gf_queue_synchronize(&queue, "kernel execution");
    return queue.status;
}

const gf_device_functions gf_cuda_jobs = {
    job_open,
    job_run,
    job_fetch,
    job_wait,
    job_release,
    job_close,
    job_wait_stream,
    gf_cuda_encode_png,
    gf_cuda_decode_png,
    gf_cuda_decode_uploaded,
    gf_cuda_get_workspace,
    gf_cuda_free_memory,
    gf_cuda_take_host,
    gf_cuda_return_host,
    gf_cuda_upload,
    gf_cuda_download,
};
