// Images in device memory: checks of pointers and streams, memory of a job, and the queue of its
// kernels and copies (gf_job_functions).
#include "cuda/host/devices.cuh"

#include <pthread.h>
#include <stdlib.h>

// The kernels access 16 bytes at a time. Rows with another alignment are copied.
static constexpr size_t unit_bytes = 16;

// ---- unaligned rows -----------------------------------------------------------------------------

static constexpr unsigned copy_threads = 128;

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
__global__ void __launch_bounds__(copy_threads) copy_rows(const gf_copy_args a) {
    gf_wait_for_stream();
    const size_t unit = static_cast<size_t>(blockIdx.x) * copy_threads + threadIdx.x;
    for (uint64_t y = blockIdx.y; y < a.rows; y += gridDim.y) {
        unsigned char *to = a.to + y * a.to_stride;
        const unsigned char *from = a.from + y * a.from_stride;
        const size_t head = -reinterpret_cast<uintptr_t>(to) % unit_bytes;
        const size_t begin = head + unit * unit_bytes;
        const uint32_t skip = reinterpret_cast<uintptr_t>(from + begin) % unit_bytes;
        const uint4 *units = reinterpret_cast<const uint4 *>(from + begin - skip);
        if (begin + 2 * unit_bytes - skip <= a.bytes) {
            const uint4 first = units[0];
            *reinterpret_cast<uint4 *>(to + begin) =
                skip ? copy_shift(first, units[1], skip) : first;
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
    const uint64_t units = gf_divide_up(row, unit_bytes), max_rows = 65535;
    const gf_copy_args args = {static_cast<unsigned char *>(to.data),
                               static_cast<const unsigned char *>(from.data),
                               to.stride,
                               from.stride,
                               row,
                               rows};
    const dim3 grid(static_cast<unsigned>(gf_divide_up(units, copy_threads)),
                    static_cast<unsigned>(rows < max_rows ? rows : max_rows));
    gf_launch_kernel(copy_rows, grid, copy_threads, 0, queue, args);
}

// ---- jobs ---------------------------------------------------------------------------------------

// Memory that a run needs in addition to the images. Runs on one stream share it, because they are
// executed in order.
struct gf_job_block {
    gf_job_block *next;
    uintptr_t stream; // see job_stream_key; unused_stream: none yet
    gf_storage memory;
    gf_storage staged; // aligned copies of inputs and output; empty until needed
    // Kernels of a run on one image. By whether the inputs and the output are staged.
    gf_sequence *sequences[2][2];
};

// Sizes of the measurements of a run, in bytes. In memory they follow each other; the host has only
// the head of the payload.
struct gf_job_sizes {
    size_t records, state, head, payload;
};

// Measurements of one run, on the device and on the host.
struct gf_job_part {
    gf_device_part base; // first member
    gf_job_part *next;   // in the job's list of unused parts
    uint64_t rows;       // capacity
    gf_job_sizes sizes;  // of that capacity
    gf_storage device, host;
    void *payload;        // host memory for a whole payload
    size_t payload_bytes; // size of that memory
    cudaEvent_t ready;    // computed; once fetched: everything but the payload is in host memory
    uint64_t used;        // rows of the run
    bool fetched;
};

struct gf_cuda_job {
    const gf_cuda_devices *devices; // the job uses the first one
    const gf_filter *filter;
    const gf_plan *plan;
    size_t in_row, out_row;       // bytes; out_row 0: no image
    size_t in_stride, out_stride; // of staged rows
    // Offsets in the memory of a block.
    size_t records_at, constants_at, block_bytes;
    cudaStream_t own; // for copies of measurements
    gf_job_block *blocks;
    gf_job_part *unused;
};

// A run, and its memory.
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

// Return a number that identifies a stream. The default stream of a thread has one handle in all
// threads.
static uintptr_t job_stream_key(cudaStream_t stream) {
    return stream == cudaStreamPerThread ? reinterpret_cast<uintptr_t>(pthread_self())
                                         : reinterpret_cast<uintptr_t>(stream);
}

// Return the output rows of one or more images with `rows` input rows.
static uint64_t job_out_rows(const gf_cuda_job *job, uint64_t rows) {
    return rows / job->plan->in.height * gf_plan_rows(job->plan);
}

// Return the scratch memory for an image. NULL: none.
static size_t job_filter_scratch(const gf_plan *plan) {
    return plan && gf_filter_kernels(plan->filter)->scratch_bytes
               ? gf_filter_kernels(plan->filter)->scratch_bytes(plan, plan->in.height)
               : 0;
}

static void job_free_blocks(gf_cuda_job *job) {
    while (job->blocks) {
        gf_job_block *block = job->blocks;
        job->blocks = block->next;
        gf_memory_free(&block->memory);
        gf_memory_free(&block->staged);
        for (auto &sequences : block->sequences)
            for (gf_sequence *sequence : sequences)
                gf_sequence_free(sequence);
        free(block);
    }
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
    job_free_blocks(job);
    while (job->unused) {
        gf_job_part *part = job->unused;
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

// Compute the offsets in the memory of a block.
static void job_set_offsets(gf_cuda_job *job) {
    const gf_plan *before = job->plan->measure_first;
    const size_t own = job_filter_scratch(job->plan), first = job_filter_scratch(before);
    job->records_at = gf_align(own > first ? own : first);
    const size_t records = before ? static_cast<size_t>(before->in.height) * before->record : 0;
    job->constants_at = job->records_at + gf_align(records);
    job->block_bytes = job->constants_at + gf_align(job->plan->constant_bytes);
}

static gf_status job_open(void *state, const gf_filter *filter, const gf_plan *plan, void **out,
                          gf_error *error) {
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
    if (!queue.status)
        job_set_offsets(job);
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
// whether the kernels can access the rows there; they read whole units.
static bool job_check_rows(gf_job_run *run, const char *what, gf_pixels at, size_t row,
                           uint64_t rows, gf_memory_range *known) {
    const CUdeviceptr data = reinterpret_cast<CUdeviceptr>(at.data);
    gf_cuda_check_memory(run->job->devices, what, at.data, (rows - 1) * at.stride + row, known,
                         &run->queue);
    return data % unit_bytes == 0 && at.stride % unit_bytes == 0 &&
           (data + rows * at.stride <= known->end || at.stride - row < unit_bytes);
}

// Check the memory of one image, or of several without a gap.
static void job_check_image(gf_job_run *run, const gf_job_image &image, uint64_t rows) {
    const gf_cuda_job *job = run->job;
    for (uint32_t i = 0; i < job->plan->inputs; i++) {
        const bool in_place = job_check_rows(run, i ? "second input" : "input", image.in[i],
                                             job->in_row, rows, &run->in_range);
        run->in_staged |= !in_place || image.in[i].stride != image.in[0].stride;
    }
    if (job->out_row)
        run->out_staged |= !job_check_rows(run, "output", {image.out.data, image.out.stride},
                                           job->out_row, job_out_rows(job, rows), &run->out_range);
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

// Return the sizes of the measurements of `rows` rows.
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
    const gf_job_sizes &sizes = part->sizes;
    const size_t records = static_cast<size_t>(part->used) * job->plan->record;
    gf_queue queue = gf_queue_on(job->own, job->filter->info.name, error);
    const gf_caller_scope scope(job->devices, &queue);
    gf_queue_follow(&queue, part->ready);
    gf_queue_download(&queue, part->host.data, part->device.data, records);
    gf_queue_download(&queue, part->host.data + sizes.records, part->device.data + sizes.records,
                      sizes.state + sizes.head);
    gf_queue_clear(&queue, part->device.data + sizes.records, sizes.state);
    gf_queue_record(&queue, part->ready);
    part->fetched = !queue.status;
    return queue.status;
}

// Wait until a part is computed; once fetched: until everything but the payload is in host memory.
static void job_wait_part(const gf_job_part *part, gf_queue *queue) {
    if (!queue->status)
        gf_queue_check(queue, cudaEventSynchronize(part->ready), "kernel execution");
}

static void job_release(void *state, gf_device_part *base) {
    gf_cuda_job *job = static_cast<gf_cuda_job *>(state);
    gf_job_part *part = reinterpret_cast<gf_job_part *>(base);
    gf_queue queue = gf_queue_on(job->own, job->filter->info.name, nullptr);
    const gf_caller_scope scope(job->devices, &queue);
    // Errors are reported by job_wait.
    queue.status = job_fetch(job, base, nullptr);
    job_wait_part(part, &queue);
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
    const gf_job_sizes sizes = job_sizes(job, rows);
    const size_t measured = sizes.records + sizes.state;
    gf_memory_grow(&part->device, measured + sizes.payload, GF_MEMORY_CLEARED, queue);
    gf_memory_grow(&part->host, measured + sizes.head, GF_MEMORY_HOST, queue);
    gf_event_create(&part->ready, cudaEventDisableTiming, queue);
    if (queue->status) { // keep what was allocated until the job ends; no run can use it
        part->next = job->unused;
        job->unused = part;
        return;
    }
    part->rows = rows;
    part->sizes = sizes;
    run->part = part;
}

// Record that the measurements of a run are queued, and return them; NULL after a failure.
static gf_device_part *job_finish_part(gf_job_run *run) {
    const gf_cuda_job *job = run->job;
    gf_job_part *part = run->part;
    const uint64_t rows = run->images->count * run->images->rows;
    part->base = {};
    if (job->plan->record)
        part->base.records = {part->host.data, job->plan->record, 0, rows};
    if (job->plan->state_bytes)
        part->base.state = part->host.data + part->sizes.records;
    part->used = rows;
    part->fetched = false;
    // Also after a failure: the part may be in use by kernels that were queued before it.
    gf_queue_check(&run->queue, cudaEventRecord(part->ready, run->queue.stream), "cudaEventRecord");
    if (!run->queue.status)
        return &part->base;
    job_release(run->job, &part->base);
    return nullptr;
}

static gf_status job_wait(void *state, gf_device_part *base, gf_error *error) {
    const gf_cuda_job *job = static_cast<const gf_cuda_job *>(state);
    gf_job_part *part = reinterpret_cast<gf_job_part *>(base);
    gf_queue queue = gf_queue_on(job->own, job->filter->info.name, error);
    const gf_caller_scope scope(job->devices, &queue);
    job_wait_part(part, &queue);
    if (queue.status || !job->plan->has_payload)
        return queue.status;
    const gf_job_sizes &sizes = part->sizes;
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
    gf_queue_download(&queue, part->payload, part->device.data + at, used);
    gf_queue_synchronize(&queue, "download");
    return queue.status;
}

// ---- runs ---------------------------------------------------------------------------------------

// Find the block of a stream. The first stream takes the one that job_open has created.
static void job_find_block(gf_job_run *run) {
    const gf_cuda_job *job = run->job;
    gf_queue *queue = &run->queue;
    const uintptr_t key = job_stream_key(queue->stream);
    gf_job_block *block = job->blocks;
    while (block && block->stream != key && block->stream != unused_stream)
        block = block->next;
    const size_t height = static_cast<size_t>(job->plan->in.height);
    const size_t staged = run->in_staged || run->out_staged
                              ? job->plan->inputs * job->in_stride * height +
                                    job->out_stride * job_out_rows(job, height)
                              : 0;
    if (!block || block->staged.size < staged)
        gf_cuda_check_capture(
            "cannot allocate memory while the stream is captured; run the job on it once before",
            queue);
    if (!block)
        block = job_add_block(run->job, key, queue);
    if (queue->status)
        return;
    gf_memory_grow(&block->staged, staged, GF_MEMORY_CLEARED, queue);
    if (queue->status)
        return;
    block->stream = key;
    run->block = block;
}

// Queue the filter that measures first, and the kernel that computes the constants from its
// records.
static void job_refine(const gf_job_run *run, const gf_strip *strip, gf_queue *queue) {
    const gf_cuda_job *job = run->job;
    const gf_plan *first = job->plan->measure_first;
    if (!first)
        return;
    unsigned char *block = run->block->memory.data;
    gf_strip before = {};
    before.in[0] = strip->in[0];
    before.out.rows = first->in.height;
    before.records = block + job->records_at;
    const gf_rows records = gf_strip_records(first, &before);
    queue->name = first->filter->info.name;
    gf_filter_kernels(first->filter)->launch(first, &before, block, queue);
    queue->name = job->filter->info.name;
    gf_filter_kernels(job->filter)->refine(job->plan, &records, block + job->constants_at, queue);
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
        strip.state = run->part->device.data + run->part->sizes.records;
        strip.payload = run->part->device.data + run->part->sizes.records + run->part->sizes.state;
    }
    job_refine(run, &strip, queue);
    gf_filter_kernels(job->filter)->launch(plan, &strip, run->block->memory.data, queue);
    if (run->out_staged)
        job_copy_rows(*out, {staged, job->out_stride}, job->out_row, out_rows, queue);
}

// Return how many images, from number `first`, one launch computes: those with the same strides.
static uint64_t job_list_length(const gf_job_run *run, uint64_t first) {
    const gf_cuda_job *job = run->job;
    const gf_job_images *images = run->images;
    const uint32_t inputs = job->plan->inputs;
    uint64_t n = 1;
    if (!gf_filter_kernels(job->filter)->lists || !gf_rows_independent(job->plan) ||
        run->in_staged || run->out_staged)
        return 1;
    while (first + n < images->count && n < GF_STRIP_IMAGES && (n + 1) * images->rows < INT32_MAX &&
           images->in[(first + n) * inputs].stride == images->in[first * inputs].stride &&
           (!job->out_row || images->out[first + n].stride == images->out[first].stride))
        n++;
    return n;
}

// Queue all images. Staged ones are queued one at a time.
static void job_queue(const gf_job_run *run, gf_queue *queue) {
    const gf_cuda_job *job = run->job;
    const gf_job_images *all = run->images;
    const bool staged = run->in_staged || run->out_staged;
    const uint64_t step = staged ? job->plan->in.height : all->rows;
    unsigned char *records = run->part ? run->part->device.data : nullptr;
    for (uint64_t i = 0, n; i < all->count && !queue->status; i += n) {
        n = job_list_length(run, i);
        for (uint64_t first = 0; first < all->rows && !queue->status; first += step) {
            const gf_job_image image = job_image_at(run, i, first);
            gf_job_images list = {n, step, image.in, &image.out};
            if (n > 1) {
                list.in = all->in + i * job->plan->inputs;
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
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    if (run->images->count != 1 || run->images->rows != job->plan->in.height)
        return false;
    if (cudaStreamIsCapturing(run->queue.stream, &capture) != cudaSuccess) {
        cudaGetLastError(); // reported by the launches
        return false;
    }
    if (capture != cudaStreamCaptureStatusNone)
        return false;
    gf_queue queue = gf_queue_on(run->queue.stream, job->filter->info.name, nullptr);
    if (!gf_sequence_begin(sequence, &queue))
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
    if (job->filter->measure)
        gf_cuda_check_capture("cannot measure while the stream is captured", &run.queue);
    job_find_block(&run);
    if (job->filter->measure)
        job_take_part(&run);
    if (!run.queue.status && !job_queue_graph(&run))
        job_queue(&run, &run.queue);
    if (run.part)
        *part = job_finish_part(&run);
    return run.queue.status;
}

static gf_status job_wait_stream(void *state, cudaStream_t stream, gf_error *error) {
    gf_queue queue = gf_queue_on(stream, "cuda", error);
    const gf_caller_scope scope(static_cast<const gf_cuda_devices *>(state), &queue);
    gf_queue_synchronize(&queue, "kernel execution");
    return queue.status;
}

const gf_job_functions gf_cuda_jobs = {
    job_open, job_run, job_fetch, job_wait, job_release, job_close, job_wait_stream,
};
