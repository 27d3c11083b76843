// PNG encoder on a device: windows of strips, strips that the CPU encodes, and delivery.
#include "cuda/host/devices.cuh"
#include "cuda/png/encode.cuh"

#include <stdlib.h>

#include <algorithm>

extern "C" {
#include "core/thread.h"
}

#define NAME "encode_png"

struct gf_encoder_policy {
    static constexpr uint64_t window = uint64_t{PNG_MAX_STRIPS} << 18; // filtered bytes, or one row
    // Deflate data of at most one IDAT chunk, and 32-bit positions.
    static constexpr size_t max_row = GF_PNG_IDAT_MAX / 2;
    static constexpr size_t frame = 64;      // more than what surrounds the deflate data of a strip
    static constexpr uint32_t external = 64; // strips at once on the CPU
    // Host memory for them that is allocated at the start: to replace it waits for the kernels of
    // all streams. Copies of other memory would wait, too.
    static constexpr size_t external_bytes = size_t{4} << 20;
};

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
    gf_format format; // of the strips
    gf_png_strips strips;
    gf_storage device; // all arrays of a window
    gf_storage host_memory;
    gf_encoder_host *host; // in host_memory
    gf_storage adler;      // sums of all images
    gf_storage files;      // files without memory of the caller
    // For strips encoded by the CPU.
    gf_storage external;
    gf_storage slot_memory; // rows and output of all slots
    uint32_t threads;
    gf_pool *pool;            // NULL until needed
    gf_png_scratch **scratch; // one per thread
    uint32_t slots;
    gf_encoder_slot slot[gf_encoder_policy::external];
};

// A call, and its next strip.
struct gf_encoder_call {
    const gf_device_encoding *from;
    gf_png_encoder *encoder;
    gf_queue queue;
    size_t capacity; // of the output of the current image
    size_t used;     // bytes of the encoder's memory for files
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
    encoder_free_cpu(encoder);
    for (gf_storage *memory : {&encoder->device, &encoder->host_memory, &encoder->adler,
                               &encoder->files, &encoder->external, &encoder->slot_memory})
        gf_memory_free(memory);
    free(encoder);
}

void gf_png_encoder_open(gf_cuda_devices *devices, gf_queue *queue) {
    gf_png_encoder *encoder =
        devices->encoder ? nullptr : gf_queue_new<gf_png_encoder>(queue, "the encoder");
    if (!encoder)
        return;
    gf_memory_grow(&encoder->host_memory, sizeof *encoder->host, GF_MEMORY_HOST, queue);
    gf_memory_grow(&encoder->slot_memory, gf_encoder_policy::external_bytes, GF_MEMORY_HOST, queue);
    if (queue->status) {
        gf_png_encoder_free(encoder);
        return;
    }
    encoder->host = reinterpret_cast<gf_encoder_host *>(encoder->host_memory.data);
    encoder->host->input.any_matches = 0;
    devices->encoder = encoder;
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
    const size_t chunks = size_t{strips} * window->chunks, blocks = size_t{strips} * window->blocks;
    gf_division memory = {encoder->device.data, 0};
    gf_encoder_input *input;
    memory.take(&window->filtered, strips * window->filtered_stride);
    memory.take(&window->out,
                strips * (gf_png_strip_bound(shape) + GF_PNG_HEAD + gf_encoder_policy::frame));
    memory.take(&window->counts, chunks * PNG_COUNTS);
    memory.take(&window->edges, chunks);
    memory.take(&window->chunk_bits, chunks);
    memory.take(&window->codes, blocks);
    memory.take(&window->block, blocks);
    memory.take(&window->state, strips);
    memory.take(&input, 1);
    window->strip = input->strip;
    window->any_matches = &input->any_matches;
    window->head = input->head;
    return memory.used;
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

// Prepare the encoding of `strips` strips.
static void encoder_open_cpu(gf_png_encoder *encoder, uint32_t threads, uint32_t strips,
                             gf_queue *queue) {
    const gf_png_strips *shape = &encoder->strips;
    const uint32_t max = gf_encoder_policy::external, wanted = std::min({strips, threads, max});
    if (encoder->slots >= wanted && encoder->threads == threads)
        return;
    encoder_free_cpu(encoder);
    encoder->threads = threads;
    const size_t rows = gf_align(GF_PNG_PAD + (shape->rows + 1) * shape->row_stride);
    const size_t out = gf_align(gf_png_strip_bound(shape));
    encoder->scratch = static_cast<gf_png_scratch **>(calloc(threads, sizeof *encoder->scratch));
    queue->status = encoder->scratch ? gf_pool_open(threads, &encoder->pool, queue->error)
                                     : gf_fail_memory(queue->error, NAME, threads, "the encoder");
    gf_memory_grow(&encoder->slot_memory, wanted * (rows + out), GF_MEMORY_HOST, queue);
    if (queue->status) {
        encoder_free_cpu(encoder);
        return;
    }
    encoder->slots =
        static_cast<uint32_t>(std::min<size_t>(encoder->slot_memory.size / (rows + out), max));
    memset(encoder->slot_memory.data, 0, encoder->slots * (rows + out)); // the padding of rows
    for (uint32_t i = 0; i < encoder->slots; i++) {
        encoder->slot[i].rows = encoder->slot_memory.data + i * (rows + out);
        encoder->slot[i].out = encoder->slot[i].rows + rows;
    }
}

// Encode the strips of a window for which matches pay: list[0..strips).
static void encoder_run_external(gf_encoder_call *call, png_window *window, const uint32_t *list,
                                 uint32_t strips) {
    gf_png_encoder *encoder = call->encoder;
    gf_encoder_host *host = encoder->host;
    const gf_png_strips *shape = &encoder->strips;
    gf_queue *queue = &call->queue;
    encoder_open_cpu(encoder, call->from->threads, strips, queue);
    gf_memory_grow(&encoder->external, strips * gf_png_strip_bound(shape), GF_MEMORY_STREAM, queue);
    window->external = encoder->external.data;
    window->complete = true;
    uint64_t at = 0;
    for (uint32_t i = 0, n; i < strips && !queue->status; i += n) {
        n = std::min(strips - i, encoder->slots);
        for (uint32_t k = 0; k < n; k++) { // download the rows of each strip, and the row above
            const png_strip *from = &host->input.strip[list[i + k]];
            gf_encoder_slot *slot = &encoder->slot[k];
            unsigned char *rows = slot->rows + GF_PNG_PAD;
            const uint32_t above = from->first ? 0 : 1;
            slot->strip = {};
            slot->strip.rows = rows;
            slot->strip.count = from->count;
            slot->strip.last = from->last;
            slot->strip.out = slot->out;
            if (from->first)
                memset(rows, 0, shape->row_bytes);
            gf_queue_call(queue, "download",
                          cudaMemcpy2DAsync(rows + (1 - above) * shape->row_stride,
                                            shape->row_stride, from->rows - above * from->stride,
                                            from->stride, shape->row_bytes, from->count + above,
                                            cudaMemcpyDeviceToHost, queue->stream));
        }
        // Also waits for the upload of the strips before, whose memory is used again.
        gf_queue_wait(queue, "download");
        if (queue->status)
            return;
        gf_work work = {encoder_run_slot, encoder, n, nullptr, false, 0, 0, nullptr};
        gf_pool_run(encoder->pool, &work);
        for (uint32_t k = 0; k < n && !queue->status; k++) { // upload
            const gf_png_strip *strip = &encoder->slot[k].strip;
            png_strip_state *state = &host->state[list[i + k]];
            const uint64_t base = ADLER_BASE; // Adler-32 starts with 1
            state->size = static_cast<uint32_t>(strip->size);
            state->external = at;
            state->sum = (strip->adler % 65536 + base - 1) % base;
            state->weighted = (strip->adler / 65536 + base - strip->filtered % base) % base;
            if (!encoder->slot[k].encoded)
                gf_queue_fail_memory(queue, gf_png_scratch_bytes(shape), "the encoder");
            gf_queue_upload(queue, encoder->external.data + at, strip->out, strip->size);
            at += strip->size;
        }
    }
    gf_queue_upload(queue, window->state, host->state, window->strips * sizeof *host->state);
}

// ---- windows ------------------------------------------------------------------------------------

// List the next strips. Their images are numbered from call->image.
static uint32_t encoder_list(const gf_encoder_call *call, uint32_t max) {
    const gf_png_encoder *encoder = call->encoder;
    const gf_png_strips *shape = &encoder->strips;
    const uint64_t height = encoder->format.height;
    uint64_t image = call->image, y = call->y;
    uint32_t strips = 0;
    while (strips < max && image < call->from->count) {
        const gf_pixels *in = &call->from->in[image];
        png_strip *strip = &encoder->host->input.strip[strips++];
        const uint64_t rows = std::min(height - y, shape->rows);
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
static void encoder_finish_window(gf_encoder_call *call, const png_window *window) {
    gf_queue *queue = &call->queue;
    png_strip_state *states = call->encoder->host->state;
    png_queue_write(*window, queue);
    gf_queue_wait(queue, "kernel execution"); // a download would delay those of other streams
    gf_queue_download(queue, states, window->state, window->strips * sizeof *states);
    gf_queue_wait(queue, "kernel execution");
}

// Append the pieces of the files in a window to the outputs.
static void encoder_deliver(gf_encoder_call *call, const png_window *window) {
    gf_png_encoder *encoder = call->encoder;
    const gf_encoder_host *host = encoder->host;
    gf_queue *queue = &call->queue;
    const auto end_of = [&](uint32_t strip) { // after Adler-32, CRC-32 and the IEND chunk
        const png_strip_state *state = &host->state[strip];
        return state->data + state->size + (host->input.strip[strip].last ? 4 + 4 + 12 : 4);
    };
    bool own = false;
    for (uint64_t i = call->image, last = i + host->input.strip[window->strips - 1].image;
         i <= last; i++)
        own |= !call->from->out[i].data;
    if (own)
        gf_memory_extend(&encoder->files, call->used + end_of(window->strips - 1), call->used,
                         queue);
    for (uint32_t first = 0, end; first < window->strips && !queue->status; first = end) {
        gf_buffer *out = &call->from->out[call->image];
        for (end = first + 1; !host->input.strip[end - 1].last && end < window->strips;)
            end++;
        const uint64_t from = host->state[first].at;
        const size_t bytes = end_of(end - 1) - static_cast<size_t>(from);
        if (host->input.strip[first].first) {
            call->capacity = out->size;
            out->size = 0;
        }
        unsigned char *to = encoder->files.data + call->used;
        if (out->data)
            to = static_cast<unsigned char *>(out->data) + out->size;
        else
            call->used += bytes;
        if (out->data && bytes > call->capacity - out->size)
            gf_queue_fail(queue, GF_USAGE,
                          NAME
                          ": the output of %zu bytes is too small; gf_png_bound returns a "
                          "size that is always sufficient",
                          call->capacity);
        out->size += bytes;
        gf_queue_copy(queue, to, window->out + from, bytes, "copy of the file");
        call->image += host->input.strip[end - 1].last ? 1 : 0;
    }
}

// Encode the next strips, at most `max`.
static void encoder_run_window(gf_encoder_call *call, uint32_t max) {
    gf_png_encoder *encoder = call->encoder;
    gf_encoder_host *host = encoder->host;
    gf_queue *queue = &call->queue;
    uint64_t *largest = call->from->largest;
    const uint32_t strips = encoder_list(call, max);
    png_window window = {};
    gf_memory_grow(&encoder->device, encoder_divide(encoder, strips, &window), GF_MEMORY_STREAM,
                   queue);
    encoder_divide(encoder, strips, &window);
    window.adler += call->image;
    gf_queue_upload(queue, window.any_matches, &host->input,
                    offsetof(gf_encoder_input, strip) + strips * sizeof(png_strip));
    png_queue_plan(window, largest ? encoder->format.channels : 0, queue);
    encoder_finish_window(call, &window);
    uint32_t list[PNG_MAX_STRIPS], external = 0;
    for (uint32_t i = 0; i < strips && !queue->status; i++)
        if (host->state[i].matches == PNG_MATCHES)
            list[external++] = i;
    if (external) {
        encoder_run_external(call, &window, list, external);
        encoder_finish_window(call, &window);
    }
    if (queue->status)
        return;
    for (uint32_t i = 0; i < strips && largest; i++)
        largest[call->image + host->input.strip[i].image] += host->state[i].largest;
    const png_strip last = host->input.strip[strips - 1];
    encoder_deliver(call, &window);
    call->y = last.last ? 0 : encoder->format.height - last.after / (encoder->strips.row_bytes + 1);
}

gf_status gf_cuda_encode_png(void *state, const gf_device_encoding *from, gf_error *error) {
    gf_cuda_devices *devices = static_cast<gf_cuda_devices *>(state);
    gf_encoder_call call = {from, nullptr, gf_queue_on(from->stream, NAME, error), 0, 0, 0, 0};
    gf_queue *queue = &call.queue;
    const gf_caller_scope scope(devices, queue);
    const gf_format *format = from->format;
    const size_t row = gf_row_bytes(format), adler_bytes = from->count * sizeof(uint64_t[2]);
    gf_memory_range known = {};
    gf_cuda_check_stream(devices, queue);
    gf_cuda_check_capture("cannot encode while the stream is captured", queue);
    for (uint64_t i = 0; i < from->count; i++)
        gf_cuda_check_memory(devices, "image", from->in[i].data,
                             (format->height - 1) * from->in[i].stride + row, &known, queue);
    if (!queue->status && row > gf_encoder_policy::max_row)
        gf_queue_fail(queue, GF_FAILED,
                      NAME ": a row of %zu bytes is too large for the device; use gf_save_file",
                      row);
    gf_png_encoder_open(devices, queue);
    if (queue->status)
        return queue->status;
    gf_png_encoder *encoder = call.encoder = devices->encoder;
    gf_memory_grow(&encoder->adler, adler_bytes, GF_MEMORY_STREAM, queue);
    if (queue->status)
        return queue->status;
    if (!gf_format_equal(&encoder->format, format)) {
        encoder_free_cpu(encoder);
        encoder->format = *format;
        gf_png_strips_init(format, GF_PNG_FAST, gf_isa_best(), &encoder->strips);
        gf_png_head(format, encoder->host->input.head);
    }
    if (from->largest)
        memset(from->largest, 0, from->count * sizeof *from->largest);
    gf_queue_clear(queue, encoder->adler.data, adler_bytes);
    const uint64_t strip = encoder->strips.rows * (encoder->strips.row_bytes + 1);
    const uint64_t max =
        std::clamp(gf_encoder_policy::window / strip, uint64_t{1}, uint64_t{PNG_MAX_STRIPS});
    while (call.image < from->count && !queue->status)
        encoder_run_window(&call, static_cast<uint32_t>(max));
    gf_queue_wait(queue, "kernel execution");
    size_t at = 0; // in the encoder's memory, which holds the files one after another
    for (uint64_t i = 0; i < from->count && !queue->status; i++)
        if (!from->out[i].data) {
            from->out[i].data = encoder->files.data + at;
            at += from->out[i].size;
        }
    return queue->status;
}
