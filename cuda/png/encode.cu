// PNG encoder on a device: windows of strips, strips that the CPU encodes, and delivery.
#include "cuda/host/devices.cuh"
#include "cuda/png/encode.cuh"

#include <stdlib.h>

extern "C" {
#include "core/thread.h"
}

#define WINDOW_BYTES (uint64_t{PNG_MAX_STRIPS} << 18) // filtered bytes, if a row is not larger
// Deflate data of at most one IDAT chunk, and 32-bit positions.
#define MAX_ROW_BYTES (GF_PNG_IDAT_MAX / 2)
#define FRAME_BYTES 64  // more than what surrounds the deflate data of a strip
#define MAX_EXTERNAL 64 // strips at once on the CPU
// Pinned memory for them that is allocated at the start: to replace it waits for the kernels of all
// streams. Copies of other memory would wait, too.
#define EXTERNAL_BYTES (size_t{4} << 20)
#define NAME "encode_png"

// A strip on the CPU.
struct gf_encoder_slot {
    unsigned char *rows, *out;
    gf_png_strip strip;
    bool encoded;
};

// Input of a window.
struct gf_encoder_input {
    uint32_t any_matches; // 0
    unsigned char head[GF_PNG_HEAD];
    png_strip strip[PNG_MAX_STRIPS];
};

struct gf_encoder_host {
    gf_encoder_input input;
    png_strip_state state[PNG_MAX_STRIPS];
};

struct gf_png_encoder {
    const gf_cuda_devices *devices;
    gf_format format; // of the strips
    gf_png_strips strips;
    gf_device_memory device; // all arrays of a window
    gf_encoder_host *host;   // pinned
    gf_device_memory adler;  // sums of all images
    gf_device_memory files;  // pinned: files without memory of the caller
    // For strips encoded by the CPU.
    gf_device_memory external;
    gf_device_memory slot_memory; // pinned: rows and output of all slots
    uint32_t threads;
    gf_pool *pool;            // NULL until needed
    gf_png_scratch **scratch; // one per thread
    uint32_t slots;
    gf_encoder_slot slot[MAX_EXTERNAL];
};

// Images of a call, and the next strip.
struct gf_encoder_call {
    uint64_t count;
    const gf_pixels *in;
    gf_buffer *out;
    uint64_t *largest; // per image; NULL: not counted
    size_t capacity;   // of the output of the current image
    size_t used;       // bytes of the encoder's memory for files
    cudaStream_t stream;
    uint32_t threads;
    uint64_t image, y;
};

// ---- memory -------------------------------------------------------------------------------------

// Free what depends on the format of the strips.
static void encoder_free_cpu(gf_png_encoder *encoder) {
    gf_pool_close(encoder->pool);
    for (uint32_t i = 0; encoder->scratch && i < encoder->threads; i++)
        gf_png_scratch_free(encoder->scratch[i]);
    free(encoder->scratch);
    encoder->pool = nullptr;
    encoder->scratch = nullptr;
    encoder->slots = 0;
}

void gf_png_encoder_free(gf_png_encoder *encoder) {
    if (!encoder)
        return;
    gf_caller_scope scope(encoder->devices->driver);
    scope.enter(encoder->devices, nullptr);
    encoder_free_cpu(encoder);
    cudaFree(encoder->device.data);
    cudaFree(encoder->adler.data);
    cudaFree(encoder->external.data);
    cudaFreeHost(encoder->files.data);
    cudaFreeHost(encoder->slot_memory.data);
    cudaFreeHost(encoder->host);
    free(encoder);
}

gf_status gf_png_encoder_open(gf_cuda_devices *devices, gf_error *error) {
    if (devices->encoder)
        return GF_OK;
    gf_png_encoder *encoder = static_cast<gf_png_encoder *>(calloc(1, sizeof *encoder));
    if (!encoder)
        return gf_fail_memory(error, NAME, sizeof *encoder, "the encoder");
    encoder->devices = devices;
    gf_status status = gf_cuda_check(cudaMallocHost(&encoder->host, sizeof *encoder->host),
                                     "pinned memory", error);
    if (!status)
        status = gf_memory_grow(&encoder->slot_memory, EXTERNAL_BYTES, true, error);
    if (status) {
        gf_png_encoder_free(encoder);
        return status;
    }
    encoder->host->input.any_matches = 0;
    devices->encoder = encoder;
    return GF_OK;
}

static void encoder_set_format(gf_png_encoder *encoder, const gf_format *format) {
    if (gf_format_equal(&encoder->format, format))
        return;
    encoder_free_cpu(encoder);
    encoder->format = *format;
    gf_png_strips_init(format, GF_PNG_FAST, gf_isa_best(), &encoder->strips);
    gf_png_head(format, encoder->host->input.head);
}

// Divide the memory of a window among its arrays, for `strips` strips. Returns the number of bytes.
static size_t encoder_divide(const gf_png_encoder *encoder, uint32_t strips, png_window *window) {
    const gf_png_strips *shape = &encoder->strips;
    const size_t filtered = (shape->row_bytes + 1) * static_cast<size_t>(shape->rows);
    window->row_bytes = shape->row_bytes;
    window->bpp = static_cast<uint32_t>(shape->bpp);
    window->swap = encoder->format.type == GF_U16;
    window->by_row = gf_divider_of(shape->row_bytes + 1);
    window->strips = strips;
    window->chunks = static_cast<uint32_t>(gf_divide_up(filtered, PNG_CHUNK));
    window->blocks = static_cast<uint32_t>(gf_divide_up(filtered, GF_DEFLATE_BLOCK));
    window->filtered_stride = size_t{window->chunks} * PNG_CHUNK;
    window->head_bytes = GF_PNG_HEAD;
    window->adler = reinterpret_cast<uint64_t(*)[2]>(encoder->adler.data);
    window->external = encoder->external.data;
    size_t used = 0;
    const auto take = [&](auto **array, size_t count) {
        *array = reinterpret_cast<typename std::remove_reference<decltype(*array)>::type>(
            encoder->device.data + used);
        used += gf_align(count * sizeof **array);
    };
    const size_t chunks = size_t{strips} * window->chunks, blocks = size_t{strips} * window->blocks;
    gf_encoder_input *input;
    take(&window->filtered, strips * window->filtered_stride);
    take(&window->out, strips * (gf_png_strip_bound(shape) + GF_PNG_HEAD + FRAME_BYTES));
    take(&window->counts, chunks * PNG_COUNTS);
    take(&window->edges, chunks);
    take(&window->chunk_bits, chunks);
    take(&window->codes, blocks);
    take(&window->block, blocks);
    take(&window->state, strips);
    take(&input, 1);
    window->strip = input->strip;
    window->any_matches = &input->any_matches;
    window->head = input->head;
    return used;
}

// ---- strips encoded by the CPU ------------------------------------------------------------------

static void encoder_run_slot(void *context, uint32_t task, uint32_t thread) {
    gf_png_encoder *encoder = static_cast<gf_png_encoder *>(context);
    gf_encoder_slot *slot = &encoder->slot[task];
    const gf_png_strips *shape = &encoder->strips;
    gf_png_scratch **scratch = &encoder->scratch[thread];
    if (!*scratch)
        *scratch = gf_png_scratch_new(shape);
    if (encoder->format.type == GF_U16)
        for (int64_t r = -1; r < static_cast<int64_t>(slot->strip.count); r++) {
            unsigned char *row = const_cast<unsigned char *>(gf_png_row(shape, &slot->strip, r));
            gf_png_simd_of(shape->isa)->swap16(row, row, shape->row_bytes / 2);
        }
    slot->encoded = *scratch && gf_png_strip_encode(*scratch, &slot->strip);
}

static size_t encoder_rows_bytes(const gf_png_strips *shape) {
    return gf_align(GF_PNG_PAD + static_cast<size_t>(shape->rows + 1) * shape->row_stride);
}

// Prepare the encoding of `strips` strips.
static gf_status encoder_open_cpu(gf_png_encoder *encoder, uint32_t threads, uint32_t strips,
                                  gf_error *error) {
    const gf_png_strips *shape = &encoder->strips;
    const uint32_t all = strips < threads ? strips : threads;
    const uint32_t wanted = all < MAX_EXTERNAL ? all : MAX_EXTERNAL;
    if (encoder->slots >= wanted && encoder->threads == threads)
        return GF_OK;
    encoder_free_cpu(encoder);
    encoder->threads = threads;
    const size_t rows = encoder_rows_bytes(shape), out = gf_align(gf_png_strip_bound(shape));
    encoder->scratch = static_cast<gf_png_scratch **>(calloc(threads, sizeof *encoder->scratch));
    gf_status status = encoder->scratch ? gf_pool_open(threads, &encoder->pool, error)
                                        : gf_fail_memory(error, NAME, threads, "the encoder");
    if (!status)
        status = gf_memory_grow(&encoder->slot_memory, wanted * (rows + out), true, error);
    if (status) {
        encoder_free_cpu(encoder);
        return status;
    }
    const size_t slots = encoder->slot_memory.size / (rows + out);
    encoder->slots = slots < MAX_EXTERNAL ? static_cast<uint32_t>(slots) : MAX_EXTERNAL;
    memset(encoder->slot_memory.data, 0, encoder->slots * (rows + out)); // the padding of rows
    for (uint32_t i = 0; i < encoder->slots; i++) {
        encoder->slot[i].rows = encoder->slot_memory.data + i * (rows + out);
        encoder->slot[i].out = encoder->slot[i].rows + rows;
    }
    return GF_OK;
}

// Queue the download of the rows of a strip and of the row above.
static gf_status encoder_download_strip(const gf_png_encoder *encoder, const png_strip *from,
                                        gf_encoder_slot *slot, cudaStream_t stream,
                                        gf_error *error) {
    const gf_png_strips *shape = &encoder->strips;
    unsigned char *rows = slot->rows + GF_PNG_PAD;
    const uint32_t above = from->first ? 0 : 1;
    slot->strip = {};
    slot->strip.rows = rows;
    slot->strip.count = from->count;
    slot->strip.last = from->last;
    slot->strip.out = slot->out;
    if (from->first)
        memset(rows, 0, shape->row_bytes);
    return gf_cuda_check(cudaMemcpy2DAsync(rows + (above ? 0 : shape->row_stride),
                                           shape->row_stride, from->rows - above * from->stride,
                                           from->stride, shape->row_bytes, from->count + above,
                                           cudaMemcpyDeviceToHost, stream),
                         "download", error);
}

// Store an encoded strip in the state of the window.
static gf_status encoder_set_state(const gf_png_encoder *encoder, const gf_encoder_slot *slot,
                                   uint64_t at, png_strip_state *state, gf_error *error) {
    const gf_png_strip *strip = &slot->strip;
    if (!slot->encoded)
        return gf_fail_memory(error, NAME, gf_png_scratch_bytes(&encoder->strips), "the encoder");
    const uint64_t base = ADLER_BASE; // Adler-32 starts with 1
    state->size = static_cast<uint32_t>(strip->size);
    state->external = at;
    state->sum = (strip->adler % 65536 + base - 1) % base;
    state->weighted = (strip->adler / 65536 + base - strip->filtered % base) % base;
    return GF_OK;
}

// Encode the strips of a window for which matches pay: list[0..strips).
static gf_status encoder_run_external(gf_png_encoder *encoder, png_window *window,
                                      const uint32_t *list, uint32_t strips,
                                      const gf_encoder_call *call, gf_error *error) {
    gf_encoder_host *host = encoder->host;
    const cudaStream_t stream = call->stream;
    gf_status status = encoder_open_cpu(encoder, call->threads, strips, error);
    if (!status)
        status = gf_device_grow(&encoder->external, strips * gf_png_strip_bound(&encoder->strips),
                                stream, error);
    window->external = encoder->external.data;
    window->complete = true;
    uint64_t at = 0;
    gf_queue queue = {stream, error, NAME, status, nullptr};
    for (uint32_t i = 0, n; i < strips && !queue.status; i += n) {
        n = strips - i < encoder->slots ? strips - i : encoder->slots;
        for (uint32_t k = 0; k < n && !queue.status; k++)
            queue.status = encoder_download_strip(encoder, &host->input.strip[list[i + k]],
                                                  &encoder->slot[k], stream, error);
        // Also waits for the upload of the strips before, whose memory is used again.
        gf_queue_wait(&queue, "download");
        if (queue.status)
            return queue.status;
        gf_work work = {encoder_run_slot, encoder, n, 0, 0, nullptr};
        gf_pool_run(encoder->pool, &work);
        for (uint32_t k = 0; k < n && !queue.status; k++) {
            const gf_png_strip *strip = &encoder->slot[k].strip;
            queue.status =
                encoder_set_state(encoder, &encoder->slot[k], at, &host->state[list[i + k]], error);
            gf_queue_upload(&queue, encoder->external.data + at, strip->out, strip->size);
            at += strip->size;
        }
    }
    gf_queue_upload(&queue, window->state, host->state, window->strips * sizeof *host->state);
    return queue.status;
}

// ---- windows ------------------------------------------------------------------------------------

// List the next strips. Their images are numbered from call->image.
static uint32_t encoder_list(const gf_png_encoder *encoder, const gf_encoder_call *call,
                             uint32_t max) {
    const gf_png_strips *shape = &encoder->strips;
    const uint64_t height = encoder->format.height;
    uint64_t image = call->image, y = call->y;
    uint32_t strips = 0;
    while (strips < max && image < call->count) {
        const gf_pixels *in = &call->in[image];
        png_strip *strip = &encoder->host->input.strip[strips++];
        const uint64_t rows = height - y < shape->rows ? height - y : shape->rows;
        strip->rows = static_cast<const unsigned char *>(in->data) + y * in->stride;
        strip->stride = in->stride;
        strip->after = (height - y - rows) * (shape->row_bytes + 1);
        strip->filtered = static_cast<uint32_t>(rows * (shape->row_bytes + 1));
        strip->count = static_cast<uint32_t>(rows);
        strip->image = static_cast<uint32_t>(image - call->image);
        strip->first = y == 0;
        y += rows;
        strip->last = y == height;
        image += strip->last ? 1 : 0;
        y = strip->last ? 0 : y;
    }
    return strips;
}

// Queue the second half of a window, and wait for the states of its strips.
static gf_status encoder_finish_window(const gf_png_encoder *encoder, const png_window *window,
                                       cudaStream_t stream, gf_error *error) {
    gf_encoder_host *host = encoder->host;
    gf_queue queue = gf_queue_on(stream, NAME, error);
    png_queue_write(*window, &queue);
    gf_queue_wait(&queue,
                  "kernel execution"); // a download in the queue would delay those of other streams
    gf_queue_download(&queue, host->state, window->state, window->strips * sizeof *host->state);
    gf_queue_wait(&queue, "kernel execution");
    return queue.status;
}

// Grow the memory of files to `size` bytes. Keep the first `used` bytes.
static gf_status encoder_grow_files(gf_png_encoder *encoder, size_t size, size_t used,
                                    cudaStream_t stream, gf_error *error) {
    gf_device_memory larger = {nullptr, size + size / 4};
    if (size <= encoder->files.size)
        return GF_OK;
    gf_status status = gf_cuda_check(cudaMallocHost(&larger.data, larger.size),
                                     "pinned memory for the files", error);
    if (!status && used) // wait for the copies to the old memory
        status = gf_cuda_check(cudaStreamSynchronize(stream), "copy of the file", error);
    if (status) {
        cudaFreeHost(larger.data);
        return status;
    }
    if (used)
        memcpy(larger.data, encoder->files.data, used);
    cudaFreeHost(encoder->files.data);
    encoder->files = larger;
    return GF_OK;
}

// Return where the next bytes of a file are written; NULL if its memory is too small.
static unsigned char *encoder_place(const gf_png_encoder *encoder, gf_encoder_call *call,
                                    gf_buffer *out, size_t bytes) {
    unsigned char *to;
    if (out->data) {
        to = bytes > call->capacity - out->size
                 ? nullptr
                 : static_cast<unsigned char *>(out->data) + out->size;
    } else {
        to = encoder->files.data + call->used;
        call->used += bytes;
    }
    out->size += bytes;
    return to;
}

// Append the pieces of the files in a window to the outputs.
static gf_status encoder_deliver(gf_png_encoder *encoder, const png_window *window,
                                 gf_encoder_call *call, gf_error *error) {
    const gf_encoder_host *host = encoder->host;
    const auto end_of = [&](uint32_t strip) { // after Adler-32, CRC-32 and the IEND chunk
        const png_strip_state *state = &host->state[strip];
        return static_cast<size_t>(state->data + state->size +
                                   (host->input.strip[strip].last ? 4 + 4 + 12 : 4));
    };
    bool own = false;
    for (uint64_t i = call->image, last = i + host->input.strip[window->strips - 1].image;
         i <= last; i++)
        own |= !call->out[i].data;
    gf_status status = GF_OK;
    if (own)
        status = encoder_grow_files(encoder, call->used + end_of(window->strips - 1), call->used,
                                    call->stream, error);
    for (uint32_t first = 0, end; first < window->strips && !status; first = end) {
        gf_buffer *out = &call->out[call->image];
        for (end = first + 1; !host->input.strip[end - 1].last && end < window->strips;)
            end++;
        const uint64_t from = host->state[first].at;
        const size_t bytes = end_of(end - 1) - static_cast<size_t>(from);
        if (host->input.strip[first].first) {
            call->capacity = out->size;
            out->size = 0;
        }
        unsigned char *to = encoder_place(encoder, call, out, bytes);
        if (!to)
            return gf_fail(error, GF_USAGE,
                           NAME
                           ": the output of %zu bytes is too small; gf_png_bound returns a "
                           "size that is always sufficient",
                           call->capacity);
        status = gf_cuda_check(
            cudaMemcpyAsync(to, window->out + from, bytes, cudaMemcpyDefault, call->stream),
            "copy of the file", error);
        call->image += host->input.strip[end - 1].last ? 1 : 0;
    }
    return status;
}

static gf_status encoder_run_window(gf_png_encoder *encoder, gf_encoder_call *call, uint32_t max,
                                    gf_error *error) {
    gf_encoder_host *host = encoder->host;
    const uint32_t strips = encoder_list(encoder, call, max);
    const cudaStream_t stream = call->stream;
    png_window window = {};
    gf_status status =
        gf_device_grow(&encoder->device, encoder_divide(encoder, strips, &window), stream, error);
    encoder_divide(encoder, strips, &window);
    window.adler += call->image;
    gf_queue queue = {stream, error, NAME, status, nullptr};
    gf_queue_upload(&queue, window.any_matches, &host->input,
                    offsetof(gf_encoder_input, strip) + strips * sizeof(png_strip));
    if (queue.status)
        return queue.status;
    png_queue_plan(window, &queue);
    if (call->largest)
        png_queue_count_largest(window, encoder->format.channels, &queue);
    status = queue.status ? queue.status : encoder_finish_window(encoder, &window, stream, error);
    uint32_t list[PNG_MAX_STRIPS], external = 0;
    for (uint32_t i = 0; i < strips && !status; i++)
        if (host->state[i].matches == PNG_MATCHES)
            list[external++] = i;
    if (external) {
        status = encoder_run_external(encoder, &window, list, external, call, error);
        if (!status)
            status = encoder_finish_window(encoder, &window, stream, error);
    }
    for (uint32_t i = 0; i < strips && call->largest && !status; i++)
        call->largest[call->image + host->input.strip[i].image] += host->state[i].largest;
    const png_strip last = host->input.strip[strips - 1];
    const uint64_t y =
        last.last ? 0 : encoder->format.height - last.after / (encoder->strips.row_bytes + 1);
    if (!status)
        status = encoder_deliver(encoder, &window, call, error);
    call->y = y;
    return status;
}

// ---- calls --------------------------------------------------------------------------------------

static gf_status encoder_check(const gf_cuda_devices *devices, const gf_format *format,
                               uint64_t count, const gf_pixels *in, cudaStream_t stream,
                               gf_error *error) {
    const size_t row = gf_row_bytes(format);
    gf_memory_range known = {};
    gf_status status = gf_cuda_check_stream(devices, NAME, stream,
                                            "cannot encode while the stream is captured", error);
    for (uint64_t i = 0; i < count && !status; i++)
        status = gf_cuda_check_memory(devices, NAME, "image", in[i].data,
                                      (format->height - 1) * in[i].stride + row, &known, error);
    if (!status && row > MAX_ROW_BYTES)
        status =
            gf_fail(error, GF_FAILED,
                    NAME ": a row of %zu bytes is too large for the device; use gf_save_file", row);
    return status;
}

gf_status gf_cuda_encode_png(void *state, const gf_format *format, uint64_t count,
                             const gf_pixels *in, gf_buffer *out, uint64_t *largest,
                             uint32_t threads, cudaStream_t stream, gf_error *error) {
    gf_cuda_devices *devices = static_cast<gf_cuda_devices *>(state);
    gf_caller_scope scope(devices->driver);
    gf_status status = scope.enter(devices, error);
    if (!status)
        status = encoder_check(devices, format, count, in, stream, error);
    if (!status)
        status = gf_png_encoder_open(devices, error);
    if (status)
        return status;
    gf_png_encoder *encoder = devices->encoder;
    const size_t adler_bytes = count * sizeof(uint64_t[2]);
    status = gf_device_grow(&encoder->adler, adler_bytes, stream, error);
    if (status)
        return status;
    encoder_set_format(encoder, format);
    if (largest)
        memset(largest, 0, count * sizeof *largest);
    gf_encoder_call call = {};
    call.count = count;
    call.in = in;
    call.out = out;
    call.largest = largest;
    call.stream = stream;
    call.threads = threads;
    gf_queue queue = {stream, error, NAME, GF_OK, nullptr};
    gf_queue_clear(&queue, encoder->adler.data, adler_bytes);
    const uint64_t strip = encoder->strips.rows * (encoder->strips.row_bytes + 1);
    const uint64_t most = strip < WINDOW_BYTES ? WINDOW_BYTES / strip : 1;
    const uint32_t max = static_cast<uint32_t>(most < PNG_MAX_STRIPS ? most : PNG_MAX_STRIPS);
    while (call.image < count && !queue.status)
        queue.status = encoder_run_window(encoder, &call, max, error);
    gf_queue_finish(&queue, "kernel execution");
    size_t at = 0; // in the encoder's memory, which holds the files one after another
    for (uint64_t i = 0; i < count && !queue.status; i++)
        if (!out[i].data) {
            out[i].data = encoder->files.data + at;
            at += out[i].size;
        }
    return queue.status;
}
