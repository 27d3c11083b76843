// Images in device memory: checks of pointers and streams, memory of a job, and the queue of its
// kernels and copies (gf_job_functions).
#include "cuda/host/devices.cuh"

#include <pthread.h>
#include <stdlib.h>

#include <algorithm>

// The kernels access 16 bytes at a time. Rows with another alignment are copied.
static constexpr size_t unit_bytes = 16;

// ---- unaligned rows -----------------------------------------------------------------------------

static constexpr unsigned copy_threads = 128;

struct gf_copy_args {
    gf_out_pixels to;
    gf_pixels from;
    size_t bytes; // per row
    uint64_t rows;
};

// Copy rows of any alignment. cudaMemcpy2DAsync takes twice as long.
// Grid: x = pieces of a row, y = rows, strided. Block: 128 threads. A thread writes one aligned
// unit of 16 bytes from two aligned loads; the second one hits the L1 cache. Bytes before the
// first unit and after the last one are copied singly; loads stay inside the row except for the
// unit that holds its first byte. Shared memory: none. Registers: 30 (sm_90).
__global__ void __launch_bounds__(copy_threads) copy_rows(const gf_copy_args a) {
    gf_wait_for_stream();
    const size_t unit = static_cast<size_t>(blockIdx.x) * copy_threads + threadIdx.x;
    for (uint64_t y = blockIdx.y; y < a.rows; y += gridDim.y) {
        unsigned char *to = static_cast<unsigned char *>(a.to.data) + y * a.to.stride;
        const unsigned char *from =
            static_cast<const unsigned char *>(a.from.data) + y * a.from.stride;
        const size_t head = -reinterpret_cast<uintptr_t>(to) % unit_bytes;
        const size_t begin = head + unit * unit_bytes;
        const uint32_t skip = reinterpret_cast<uintptr_t>(from + begin) % unit_bytes;
        const uint4 *units = reinterpret_cast<const uint4 *>(from + begin - skip);
        if (begin + 2 * unit_bytes - skip <= a.bytes) {
            uint4 v = units[0];
            if (skip) { // the 16 bytes from byte `skip` of two vectors
                uint32_t w[8];
                gf_unpack(v, w);
                gf_unpack(units[1], w + 4);
                if (skip & 8)
#pragma unroll
                    for (int i = 0; i < 6; i++)
                        w[i] = w[i + 2];
                if (skip & 4)
#pragma unroll
                    for (int i = 0; i < 5; i++)
                        w[i] = w[i + 1];
#pragma unroll
                for (int i = 0; i < 4; i++)
                    w[i] = __funnelshift_r(w[i], w[i + 1], skip % 4 * 8);
                v = gf_vector_of(w);
            }
            *reinterpret_cast<uint4 *>(to + begin) = v;
        } else {
            for (size_t i = begin; i < begin + unit_bytes && i < a.bytes; i++)
                to[i] = from[i];
        }
        if (unit == 0)
            for (size_t i = 0; i < head && i < a.bytes; i++)
                to[i] = from[i];
    }
}

// row: bytes.
static void job_copy_rows(gf_out_pixels to, gf_pixels from, size_t row, uint64_t rows,
                          gf_queue *queue) {
    const dim3 grid(gf_blocks(row, unit_bytes * copy_threads), gf_blocks(rows, 1, 65535));
    gf_launch_kernel(copy_rows, grid, copy_threads, 0, queue, gf_copy_args{to, from, row, rows});
}

// ---- jobs ---------------------------------------------------------------------------------------

// Memory of a run in addition to the images. Runs on one stream are in order and share it.
struct gf_job_block {
    gf_job_block *next;
    uintptr_t stream; // see job_stream_key; unused_stream: none yet
    gf_storage memory;
    gf_storage staged; // aligned copies of inputs and output; empty until needed
    gf_storage edges;  // for the caller (job_workspace); empty until needed
    // Kernels of a run on one image. By whether the inputs and the output are staged.
    gf_sequence *sequences[2][2];
};

// Measurements of one run, on the device and on the host.
struct gf_job_part {
    gf_device_part base; // first member
    gf_job_part *next;   // in the job's list of unused parts
    uint64_t rows;       // capacity
    // Bytes of that capacity, one after another in memory. The host has the head of the payload.
    size_t record_bytes, state_bytes, head_bytes, payload_bytes;
    gf_storage device, host;
    void *payload;       // host memory for a whole payload
    size_t payload_size; // of that memory
    cudaEvent_t ready;   // computed; once fetched: everything but the payload is in host memory
    uint64_t used;       // rows of the run
    bool fetched;
};

struct gf_cuda_job {
    const gf_cuda_devices *devices; // the job uses the first one
    const gf_plan *plan;
    const gf_filter *filter;      // of the plan
    size_t in_row, out_row;       // bytes; out_row 0: no image
    size_t in_stride, out_stride; // of staged rows
    // Offsets in the memory of a block.
    size_t records_at, constants_at, block_bytes;
    cudaStream_t own; // for copies of measurements
    gf_job_block *blocks;
    gf_job_part *unused;
};

struct gf_job_run {
    gf_cuda_job *job;
    const gf_job_images *images;
    gf_queue queue; // on the caller's stream
    gf_job_block *block;
    gf_job_part *part; // NULL: no measurements
    bool in_staged, out_staged;
    gf_memory_range in_range, out_range; // of the last image that was checked
};

static constexpr uintptr_t unused_stream = UINTPTR_MAX;

// Identify a stream. The default stream of a thread has one handle in all threads.
static uintptr_t job_stream_key(cudaStream_t stream) {
    return stream == cudaStreamPerThread ? reinterpret_cast<uintptr_t>(pthread_self())
                                         : reinterpret_cast<uintptr_t>(stream);
}

// Return the output rows of one or more images with `rows` input rows.
static uint64_t job_out_rows(const gf_cuda_job *job, uint64_t rows) {
    return rows / job->plan->in.height * gf_plan_rows(job->plan);
}

// Return a new block; NULL after a failure.
static gf_job_block *job_add_block(gf_cuda_job *job, uintptr_t key, gf_queue *queue) {
    gf_job_block *block = gf_queue_new<gf_job_block>(queue, "a job");
    if (!block)
        return nullptr;
    block->stream = key;
    gf_memory_grow(&block->memory, job->block_bytes, GF_MEMORY_CLEARED, queue);
    gf_queue_upload(queue, block->memory.data + job->constants_at, job->plan->constants,
                    job->plan->constant_bytes);
    if (queue->status) {
        gf_memory_free(&block->memory);
        free(block);
        return nullptr;
    }
    block->next = job->blocks;
    return job->blocks = block;
}

static void job_close(void *state) {
    gf_cuda_job *job = static_cast<gf_cuda_job *>(state);
    gf_queue queue = gf_queue_on(nullptr, job->filter->info.name, nullptr);
    const gf_caller_scope scope(job->devices, &queue);
    while (gf_job_block *block = job->blocks) {
        job->blocks = block->next;
        gf_memory_free(&block->memory);
        gf_memory_free(&block->staged);
        gf_memory_free(&block->edges);
        for (auto &sequences : block->sequences)
            for (gf_sequence *sequence : sequences)
                gf_sequence_free(sequence);
        free(block);
    }
    while (gf_job_part *part = job->unused) {
        job->unused = part->next;
        gf_memory_free(&part->device);
        gf_memory_free(&part->host);
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

static bool job_join(void *state, const gf_plan *before, gf_plan *plan) {
    gf_queue queue = gf_queue_on(nullptr, plan->filter->info.name, nullptr);
    const gf_caller_scope scope(static_cast<const gf_cuda_devices *>(state), &queue);
    const gf_filter_cuda *kernels = gf_filter_kernels(plan->filter);
    return !queue.status && kernels->join && kernels->join(before, plan);
}

static gf_status job_open(void *state, const gf_plan *plan, void **out, gf_error *error) {
    const gf_filter *filter = plan->filter;
    gf_cuda_job *job = static_cast<gf_cuda_job *>(calloc(1, sizeof *job));
    if (!job)
        return gf_fail_memory(error, filter->info.name, sizeof *job, "a job");
    job->devices = static_cast<const gf_cuda_devices *>(state);
    job->filter = filter;
    job->plan = plan;
    job->in_row = gf_row_bytes(&plan->in);
    job->out_row = plan->out.width ? gf_row_bytes(&plan->out) : 0;
    job->in_stride = gf_align(job->in_row);
    job->out_stride = gf_align(job->out_row);
    gf_queue queue = gf_queue_on(nullptr, filter->info.name, error);
    const gf_caller_scope scope(job->devices, &queue);
    gf_stream_create(&job->own, &queue);
    queue.stream = job->own;
    size_t scratch = queue.status ? 0 : gf_scratch_bytes(plan, plan->in.height), records = 0;
    if (const gf_plan *before = queue.status ? nullptr : plan->measure_first) {
        scratch = std::max(scratch, gf_scratch_bytes(before, before->in.height));
        records = static_cast<size_t>(before->in.height) * before->record;
    }
    job->records_at = gf_align(scratch);
    job->constants_at = job->records_at + gf_align(records);
    job->block_bytes = job->constants_at + gf_align(plan->constant_bytes);
    job_add_block(job, unused_stream, &queue);
    gf_queue_synchronize(&queue, "device memory"); // the caller's streams do not wait for this one
    if (queue.status)
        job_close(job);
    else
        *out = job;
    return queue.status;
}

// ---- checks -------------------------------------------------------------------------------------

// One of the images of a run, from a row on.
struct gf_job_image {
    gf_pixels in[2];
    gf_out_pixels out; // zero without an output
};

static gf_job_image job_image_at(const gf_job_run *run, uint64_t index, uint64_t row) {
    const uint32_t inputs = run->job->plan->inputs;
    const gf_pixels *in = run->images->in + index * inputs;
    gf_job_image image = {};
    for (uint32_t i = 0; i < inputs; i++)
        image.in[i] = {static_cast<const unsigned char *>(in[i].data) + row * in[i].stride,
                       in[i].stride};
    if (run->job->out_row) {
        const gf_out_pixels *out = run->images->out + index;
        image.out = {static_cast<unsigned char *>(out->data) +
                         job_out_rows(run->job, row) * out->stride,
                     out->stride};
    }
    return image;
}

// Check that rows are in memory of the device. row: bytes. known: see gf_cuda_check_memory. Returns
// whether the kernels can access the rows there; they access whole units.
static bool job_check_rows(gf_job_run *run, const char *what, gf_pixels at, size_t row,
                           uint64_t rows, size_t unit, gf_memory_range *known) {
    const CUdeviceptr data = reinterpret_cast<CUdeviceptr>(at.data);
    gf_cuda_check_memory(run->job->devices, what, at.data, (rows - 1) * at.stride + row, known,
                         &run->queue);
    return data % unit == 0 && at.stride % unit == 0 &&
           (data + rows * at.stride <= known->end || at.stride - row < unit || row % unit == 0);
}

// Check the memory of one image, or of several without a gap.
static void job_check_image(gf_job_run *run, const gf_job_image &image, uint64_t rows) {
    const gf_cuda_job *job = run->job;
    for (uint32_t i = 0; i < job->plan->inputs; i++) {
        const bool in_place = job_check_rows(run, i ? "second input" : "input", image.in[i],
                                             job->in_row, rows, unit_bytes, &run->in_range);
        run->in_staged |= !in_place || image.in[i].stride != image.in[0].stride;
    }
    const size_t unit = gf_filter_kernels(job->filter)->any_output
                            ? gf_type_bytes(job->plan->out.type)
                            : unit_bytes;
    if (job->out_row)
        run->out_staged |=
            !job_check_rows(run, "output", {image.out.data, image.out.stride}, job->out_row,
                            job_out_rows(job, rows), unit, &run->out_range);
}

// Check the memory of images without a gap. They may be in several allocations.
static void job_check_images(gf_job_run *run, uint64_t index) {
    const uint64_t height = run->job->plan->in.height, rows = run->images->rows;
    if (rows > height) {
        gf_job_run one = *run;
        one.queue.error = nullptr;
        job_check_image(&one, job_image_at(run, index, 0), rows);
        if (!one.queue.status) {
            one.queue.error = run->queue.error;
            *run = one;
            return;
        }
    }
    for (uint64_t first = 0; first < rows && !run->queue.status; first += height)
        job_check_image(run, job_image_at(run, index, first), height);
}

// ---- measurements -------------------------------------------------------------------------------

// Start to copy the measurements, except the payload, to the host, and to clear the state again.
static gf_status job_fetch(void *state, gf_device_part *base, gf_error *error) {
    const gf_cuda_job *job = static_cast<const gf_cuda_job *>(state);
    gf_job_part *part = reinterpret_cast<gf_job_part *>(base);
    if (part->fetched)
        return GF_OK;
    gf_queue queue = gf_queue_on(job->own, job->filter->info.name, error);
    const gf_caller_scope scope(job->devices, &queue);
    gf_queue_follow(&queue, part->ready);
    gf_queue_download(&queue, part->host.data, part->device.data, part->used * job->plan->record);
    gf_queue_download(&queue, part->host.data + part->record_bytes,
                      part->device.data + part->record_bytes, part->state_bytes + part->head_bytes);
    gf_queue_clear(&queue, part->device.data + part->record_bytes, part->state_bytes);
    gf_queue_record(&queue, part->ready);
    part->fetched = !queue.status;
    return queue.status;
}

static void job_release(void *state, gf_device_part *base) {
    gf_cuda_job *job = static_cast<gf_cuda_job *>(state);
    gf_job_part *part = reinterpret_cast<gf_job_part *>(base);
    gf_queue queue = gf_queue_on(job->own, job->filter->info.name, nullptr);
    const gf_caller_scope scope(job->devices, &queue);
    // Errors are reported by job_wait.
    queue.status = job_fetch(job, base, nullptr);
    gf_queue_call(&queue, "kernel execution", cudaEventSynchronize(part->ready));
    if (queue.status)
        part->rows = 0; // not cleared: too small for any run
    part->next = job->unused;
    job->unused = part;
}

// Take an unused part that is large enough, or create one.
static void job_take_part(gf_job_run *run) {
    gf_cuda_job *job = run->job;
    gf_queue *queue = &run->queue;
    const uint64_t rows = run->images->count * run->images->rows;
    if (queue->status)
        return;
    for (gf_job_part **at = &job->unused; *at; at = &(*at)->next)
        if ((*at)->rows >= rows) {
            run->part = *at;
            *at = (*at)->next;
            return;
        }
    gf_job_part *part = gf_queue_new<gf_job_part>(queue, "a measurement");
    if (!part)
        return;
    const gf_plan *plan = job->plan;
    part->record_bytes = gf_align(static_cast<size_t>(rows) * plan->record);
    part->state_bytes = gf_align(static_cast<size_t>(plan->state_bytes));
    if (plan->has_payload) {
        part->head_bytes = job->filter->payload->bytes(plan, 0);
        part->payload_bytes = gf_align(job->filter->payload->bytes(plan, rows));
    }
    const size_t measured = part->record_bytes + part->state_bytes;
    gf_memory_grow(&part->device, measured + part->payload_bytes, GF_MEMORY_CLEARED, queue);
    gf_memory_grow(&part->host, measured + part->head_bytes, GF_MEMORY_HOST, queue);
    gf_event_create(&part->ready, cudaEventDisableTiming, queue);
    if (queue->status) { // keep what was allocated until the job ends; no run can use it
        part->next = job->unused;
        job->unused = part;
        return;
    }
    part->rows = rows;
    run->part = part;
}

static gf_status job_wait(void *state, gf_device_part *base, gf_error *error) {
    const gf_cuda_job *job = static_cast<const gf_cuda_job *>(state);
    gf_job_part *part = reinterpret_cast<gf_job_part *>(base);
    gf_queue queue = gf_queue_on(job->own, job->filter->info.name, error);
    const gf_caller_scope scope(job->devices, &queue);
    gf_queue_call(&queue, "kernel execution", cudaEventSynchronize(part->ready));
    if (queue.status || !job->plan->has_payload)
        return queue.status;
    const size_t at = part->record_bytes + part->state_bytes;
    const size_t used = job->filter->payload->used(job->plan, part->host.data + at);
    // Check the size: a wrong one would overwrite other memory.
    if (used < part->head_bytes || used > part->payload_bytes)
        return gf_fail(error, GF_NO_BACKEND, "cuda: the device returned an invalid sample count");
    if (used > part->payload_size) {
        free(part->payload);
        part->payload = malloc(used);
        part->payload_size = part->payload ? used : 0;
        if (!part->payload)
            return gf_fail_memory(error, job->filter->info.name, used, "extracted samples");
    }
    base->payload = part->payload;
    gf_queue_download(&queue, part->payload, part->device.data + at, used);
    gf_queue_synchronize(&queue, "download");
    return queue.status;
}

// ---- runs ---------------------------------------------------------------------------------------

// Return the block of the queue's stream, with at least these sizes; NULL after a failure. The
// first stream takes the block that job_open has created.
static gf_job_block *job_find_block(gf_cuda_job *job, size_t staged, size_t edges,
                                    gf_queue *queue) {
    const uintptr_t key = job_stream_key(queue->stream);
    gf_job_block *block = job->blocks;
    while (block && block->stream != key && block->stream != unused_stream)
        block = block->next;
    if (!block || block->staged.size < staged || block->edges.size < edges)
        gf_cuda_check_capture(
            "cannot allocate memory while the stream is captured; run the job on it once before",
            queue);
    if (!block)
        block = job_add_block(job, key, queue);
    if (queue->status)
        return nullptr;
    gf_memory_grow(&block->staged, staged, GF_MEMORY_CLEARED, queue);
    gf_memory_grow(&block->edges, edges, GF_MEMORY_DEVICE, queue);
    if (queue->status)
        return nullptr;
    block->stream = key;
    return block;
}

// Return the bytes of aligned copies that a run needs.
static size_t job_staged_bytes(const gf_job_run *run) {
    const gf_cuda_job *job = run->job;
    const size_t height = static_cast<size_t>(job->plan->in.height);
    return run->in_staged || run->out_staged ? job->plan->inputs * job->in_stride * height +
                                                   job->out_stride * job_out_rows(job, height)
                                             : 0;
}

static gf_status job_workspace(void *state, cudaStream_t stream, size_t size,
                               unsigned char **memory, gf_error *error) {
    gf_cuda_job *job = static_cast<gf_cuda_job *>(state);
    gf_queue queue = gf_queue_on(stream, job->filter->info.name, error);
    const gf_caller_scope scope(job->devices, &queue);
    gf_cuda_check_stream(job->devices, &queue);
    const gf_job_block *block = queue.status ? nullptr : job_find_block(job, 0, size, &queue);
    *memory = block ? block->edges.data : nullptr;
    return queue.status;
}

// Queue images that one launch computes. records: of the first row.
static void job_launch(const gf_job_run *run, const gf_job_images *images, unsigned char *records,
                       gf_queue *queue) {
    const gf_cuda_job *job = run->job;
    const gf_plan *plan = job->plan;
    const gf_pixels *in = images->in;
    const gf_out_pixels *out = images->out;
    const uint64_t rows = images->rows, out_rows = job_out_rows(job, rows);
    gf_strip strip = {};
    unsigned char *staged = run->block->staged.data;
    strip.images = static_cast<uint32_t>(images->count);
    strip.constants = run->block->memory.data + job->constants_at;
    strip.in_list = in;
    strip.out_list = out;
    for (uint32_t i = 0; i < plan->inputs; i++) {
        strip.in[i] = {static_cast<unsigned char *>(const_cast<void *>(in[i].data)), in[i].stride,
                       0, rows};
        if (!run->in_staged)
            continue;
        job_copy_rows({staged, job->in_stride}, in[i], job->in_row, rows, queue);
        strip.in[i] = {staged, job->in_stride, 0, rows};
        staged += plan->in.height * job->in_stride;
    }
    strip.out.rows = out_rows;
    if (run->out_staged)
        strip.out = {staged, job->out_stride, 0, out_rows};
    else if (job->out_row)
        strip.out = {static_cast<unsigned char *>(out->data), out->stride, 0, out_rows};
    strip.records = records;
    if (run->part) {
        unsigned char *state = run->part->device.data + run->part->record_bytes;
        strip.state = state;
        strip.payload = state + run->part->state_bytes;
    }
    unsigned char *block = run->block->memory.data;
    if (const gf_plan *first = plan->measure_first) { // refine computes constants from its records
        gf_strip before = {};
        before.in[0] = strip.in[0];
        before.out.rows = first->in.height;
        before.records = block + job->records_at;
        const gf_rows measured = gf_strip_records(first, &before);
        queue->name = first->filter->info.name;
        gf_filter_kernels(first->filter)->launch(first, &before, block, queue);
        queue->name = job->filter->info.name;
        gf_filter_kernels(job->filter)->refine(plan, &measured, block + job->constants_at, queue);
    }
    gf_filter_kernels(job->filter)->launch(plan, &strip, block, queue);
    if (run->out_staged)
        job_copy_rows(*out, {staged, job->out_stride}, job->out_row, out_rows, queue);
}

// Queue all images. Staged ones are queued one at a time.
static void job_queue(const gf_job_run *run, gf_queue *queue) {
    const gf_cuda_job *job = run->job;
    const gf_job_images *all = run->images;
    const bool staged = run->in_staged || run->out_staged;
    const uint64_t step = staged ? job->plan->in.height : all->rows;
    const uint32_t inputs = job->plan->inputs;
    const bool lists = !staged && gf_filter_kernels(job->filter)->lists &&
                       (job->plan->rows || gf_rows_independent(job->plan));
    const uint64_t rows = std::max(all->rows, job_out_rows(job, all->rows));
    unsigned char *records = run->part ? run->part->device.data : nullptr;
    for (uint64_t i = 0, n; i < all->count && !queue->status; i += n) {
        // One launch computes images with the same strides.
        for (n = 1; lists && i + n < all->count && n < GF_STRIP_IMAGES; n++)
            if ((n + 1) * rows >= INT32_MAX ||
                all->in[(i + n) * inputs].stride != all->in[i * inputs].stride ||
                (job->out_row && all->out[i + n].stride != all->out[i].stride))
                break;
        for (uint64_t first = 0; first < all->rows && !queue->status; first += step) {
            const gf_job_image image = job_image_at(run, i, first);
            gf_job_images list = {n, step, image.in, &image.out};
            if (n > 1) {
                list.in = all->in + i * inputs;
                list.out = job->out_row ? all->out + i : nullptr;
            }
            job_launch(run, &list, records, queue);
            if (records)
                records += n * step * job->plan->record;
        }
    }
}

// Queue a run on one image as a graph. Returns false if its kernels must be launched one by one.
static bool job_queue_graph(const gf_job_run *run) {
    const gf_cuda_job *job = run->job;
    gf_sequence **sequence =
        &run->block->sequences[run->in_staged ? 1 : 0][run->out_staged ? 1 : 0];
    gf_queue queue = gf_queue_on(run->queue.stream, job->filter->info.name, nullptr);
    if (run->images->count != 1 || run->images->rows != job->plan->in.height)
        return false;
    gf_cuda_check_capture("captured", &queue); // another failure is reported by the launches
    if (queue.status || !gf_sequence_begin(sequence, &queue))
        return false;
    job_queue(run, &queue);
    return gf_sequence_launch(&queue);
}

static gf_status job_run(void *state, const gf_job_images *images, cudaStream_t stream,
                         gf_device_part **part, gf_error *error) {
    gf_cuda_job *job = static_cast<gf_cuda_job *>(state);
    gf_job_run run = {};
    run.job = job;
    run.images = images;
    run.queue = gf_queue_on(stream, job->filter->info.name, error);
    const gf_caller_scope scope(job->devices, &run.queue);
    gf_cuda_check_stream(job->devices, &run.queue);
    for (uint64_t i = 0; i < images->count && !run.queue.status; i++)
        job_check_images(&run, i);
    const bool measures = gf_plan_measures(job->plan);
    if (measures)
        gf_cuda_check_capture("cannot measure while the stream is captured", &run.queue);
    run.block =
        run.queue.status ? nullptr : job_find_block(job, job_staged_bytes(&run), 0, &run.queue);
    if (measures)
        job_take_part(&run);
    if (!run.queue.status && !job_queue_graph(&run))
        job_queue(&run, &run.queue);
    gf_job_part *measured = run.part;
    if (!measured)
        return run.queue.status;
    measured->base = {};
    measured->used = images->count * images->rows;
    measured->fetched = false;
    if (job->plan->record)
        measured->base.records = {measured->host.data, job->plan->record, 0, measured->used};
    if (job->plan->state_bytes)
        measured->base.state = measured->host.data + measured->record_bytes;
    // Also after a failure: the part may be in use by kernels that were queued before it.
    gf_queue_check(&run.queue, cudaEventRecord(measured->ready, stream), "cudaEventRecord");
    if (run.queue.status)
        job_release(job, &measured->base);
    *part = run.queue.status ? nullptr : &measured->base;
    return run.queue.status;
}

static gf_status job_wait_stream(void *state, cudaStream_t stream, gf_error *error) {
    gf_queue queue = gf_queue_on(stream, "cuda", error);
    const gf_caller_scope scope(static_cast<const gf_cuda_devices *>(state), &queue);
    gf_queue_synchronize(&queue, "kernel execution");
    return queue.status;
}

const gf_job_functions gf_cuda_jobs = {
    job_join, job_open,    job_run,   job_workspace,   job_fetch,
    job_wait, job_release, job_close, job_wait_stream,
};
