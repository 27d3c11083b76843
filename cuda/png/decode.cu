// PNG decoder on a device: windows of files, and files that the CPU decodes.
#include "cuda/host/devices.cuh"
#include "cuda/png/decode.cuh"

#include <stdlib.h>

#include <algorithm>

extern "C" {
#include "core/thread.h"
#include "io/png/png.h"
#include "io/stream/stream.h"
}

#define NAME "decode_png"

struct gf_decoder_policy {
    static constexpr uint64_t min_window = uint64_t{256} << 20; // filtered bytes, or one image
    static constexpr uint64_t window_share = 4;                 // of the free device memory
    static constexpr size_t piece_bytes = size_t{64} << 20;     // compressed bytes, or one file
    static constexpr size_t min_host_bytes = size_t{1} << 20;
    // Per image, filtered or compressed: positions have 32 bits.
    static constexpr uint64_t max_bytes = uint64_t{1} << 30;
};

// A file of a call.
struct gf_decoder_file {
    gf_png_scan scan;
    bool on_device;            // the kernels decode it; false: the CPU does
    const size_t *places;      // offsets of the parts in its data, then their sizes
    size_t *own_places;        // memory for them; NULL: the caller's
    bool intact;               // its CRCs are correct
    const unsigned char *data; // on the device
    size_t data_at;        // in the compressed data of the window, unless the caller uploaded it
    size_t filtered_at;    // in its filtered rows
    size_t part_stride;    // from one part to the next
    uint32_t first, parts; // streams
};

struct gf_png_decoder {
    const gf_cuda_devices *devices;
    uint32_t threads;
    gf_pool *pool;
    gf_storage memory; // of a window
    gf_storage host;   // descriptions and results
    // Compressed data. One is filled while the other one is uploaded.
    gf_storage pieces[2];
    cudaEvent_t uploaded[2];
};

// A call, and its current window.
struct gf_decoder_call {
    const gf_device_decoding *from;
    gf_png_decoder *decoder;
    gf_queue queue;
    gf_decoder_file *all;
    uint64_t window;                 // maximum filtered bytes of a window
    uint64_t first, end;             // files of the window
    uint64_t piece_first, piece_end; // those of the current piece
    unsigned char *piece;            // its memory, which begins with byte piece_at of the data
    size_t piece_at;
    uint64_t *retried; // files that the CPU decodes, and their number
    uint64_t retries;
    // Sizes of the window.
    size_t data_bytes, filtered_bytes;
    uint32_t streams, images, groups;
    // Its arrays, on the host. The device has copies at the same distances from each other,
    // followed by the data and the filtered rows.
    png_stream *stream_list;
    png_rows *rows;
    png_stream_end *ends;
    uint32_t *failed, *progress;
    size_t uploaded, used;          // bytes of the arrays: before ends, and all
    unsigned char *data, *filtered; // on the device
};

// ---- memory -------------------------------------------------------------------------------------

void gf_png_decoder_free(gf_png_decoder *decoder) {
    if (!decoder)
        return;
    gf_pool_close(decoder->pool);
    gf_memory_free(&decoder->memory);
    gf_memory_free(&decoder->host);
    for (int i = 0; i < 2; i++) {
        gf_memory_free(&decoder->pieces[i]);
        if (decoder->uploaded[i])
            cudaEventDestroy(decoder->uploaded[i]);
    }
    free(decoder);
}

void gf_png_decoder_open(gf_cuda_devices *devices, uint32_t threads, gf_queue *queue) {
    gf_png_decoder *decoder = devices->decoder;
    if (queue->status || (decoder && decoder->threads == threads))
        return;
    gf_png_decoder_free(decoder);
    devices->decoder = nullptr;
    decoder = gf_queue_new<gf_png_decoder>(queue, "the decoder");
    if (!decoder)
        return;
    decoder->devices = devices;
    decoder->threads = threads;
    queue->status = gf_pool_open(threads, &decoder->pool, queue->error);
    gf_memory_grow(&decoder->host, gf_decoder_policy::min_host_bytes, GF_MEMORY_HOST, queue);
    for (cudaEvent_t &event : decoder->uploaded)
        gf_event_create(&event, cudaEventDisableTiming, queue);
    if (queue->status)
        gf_png_decoder_free(decoder);
    else
        devices->decoder = decoder;
}

// ---- windows ------------------------------------------------------------------------------------

static void decoder_scan(void *context, uint32_t task, uint32_t) {
    gf_decoder_call *call = static_cast<gf_decoder_call *>(context);
    gf_decoder_file *file = &call->all[task];
    const gf_buffer *buffer = &call->from->files[task];
    gf_png_scan *scan = &file->scan;
    file->on_device =
        gf_png_scan_file(static_cast<const unsigned char *>(buffer->data), buffer->size, scan) &&
        gf_format_equal(&scan->format, &call->from->formats[task]) &&
        scan->bytes < gf_decoder_policy::max_bytes &&
        (gf_row_bytes(&scan->format) + 1) * scan->format.height < gf_decoder_policy::max_bytes;
}

// Leave files to the CPU if its threads finish them before the device finishes the longest stream:
// streams are decoded at the same time, each one slowly. parts: decide about files with several
// streams, or about those with one.
static void decoder_choose(gf_decoder_call *call, bool parts) {
    const uint32_t threads = call->from->threads;
    double total = 0, longest = 0; // filtered bytes
    uint64_t files = 0;
    const auto concerns = [&](const gf_decoder_file *file) {
        return file->on_device && (gf_png_scan_parts(&file->scan) > 1) == parts;
    };
    for (uint64_t i = 0; i < call->from->count; i++)
        if (concerns(&call->all[i])) {
            const gf_png_scan *scan = &call->all[i].scan;
            const double row = static_cast<double>(gf_row_bytes(&scan->format));
            const double stream = row * static_cast<double>(scan->part_rows);
            total += row * static_cast<double>(scan->format.height);
            longest = std::max(stream, longest);
            files++;
        }
    const double active = static_cast<double>(std::min<uint64_t>(files, threads));
    if (longest * GF_PNG_STREAM_COST <= total * gf_png_codec.decode_cost / active)
        return;
    for (uint64_t i = 0; i < call->from->count; i++)
        if (concerns(&call->all[i]))
            call->all[i].on_device = false;
}

// Add files to the window. Returns false if it has none.
static bool decoder_list(gf_decoder_call *call) {
    call->first = call->end;
    call->data_bytes = call->filtered_bytes = 0;
    call->streams = call->images = call->groups = 0;
    for (; call->end < call->from->count; call->end++) {
        gf_decoder_file *file = &call->all[call->end];
        if (!file->on_device)
            continue;
        const gf_png_scan *scan = &file->scan;
        const size_t row = gf_row_bytes(&scan->format) + 1;
        file->parts = gf_png_scan_parts(scan);
        file->part_stride = gf_align(row * static_cast<size_t>(scan->part_rows));
        const size_t filtered = file->parts * file->part_stride;
        if (call->images && call->filtered_bytes + filtered > call->window)
            break;
        file->data_at = call->data_bytes;
        file->filtered_at = call->filtered_bytes;
        file->first = call->streams;
        call->data_bytes += call->from->uploaded ? 0 : gf_align(gf_png_scan_bytes(scan));
        call->filtered_bytes += filtered;
        call->streams += file->parts;
        call->groups += static_cast<uint32_t>(gf_divide_up(scan->format.height, PNG_GROUP));
        call->images++;
    }
    return call->first < call->end;
}

// Divide the host's memory among the arrays of the window.
static void decoder_divide(gf_decoder_call *call) {
    gf_division memory = {call->decoder->host.data, 0};
    memory.take(&call->stream_list, call->streams);
    memory.take(&call->rows, call->images);
    memory.take(&call->failed, call->images);
    memory.take(&call->progress, call->groups + size_t{1});
    call->uploaded = memory.used;
    memory.take(&call->ends, call->streams);
    call->used = memory.used;
    call->data = call->decoder->memory.data + call->used;
    call->filtered = call->data + call->data_bytes;
}

// Copy the data of a file to the piece.
static void decoder_copy(void *context, uint32_t task, uint32_t) {
    gf_decoder_call *call = static_cast<gf_decoder_call *>(context);
    const uint64_t i = call->piece_first + task;
    gf_decoder_file *file = &call->all[i];
    if (!file->on_device)
        return;
    file->own_places = static_cast<size_t *>(calloc(2 * size_t{file->parts}, sizeof(size_t)));
    file->places = file->own_places;
    file->intact = file->own_places &&
                   gf_png_scan_copy(static_cast<const unsigned char *>(call->from->files[i].data),
                                    &file->scan, call->piece + (file->data_at - call->piece_at),
                                    file->own_places, file->own_places + file->parts);
    file->data = call->data + file->data_at;
}

// Describe the images of the window, and their streams.
static void decoder_list_images(gf_decoder_call *call) {
    uint32_t image = 0, group = 0;
    for (uint64_t i = call->first; i < call->end; i++) {
        gf_decoder_file *file = &call->all[i];
        if (!file->on_device)
            continue;
        const gf_format *format = &file->scan.format;
        const uint64_t part_rows = file->scan.part_rows;
        png_rows *rows = &call->rows[image++];
        *rows = {};
        rows->filtered = call->filtered + file->filtered_at;
        rows->part_rows = static_cast<uint32_t>(part_rows);
        rows->row_bytes = static_cast<uint32_t>(gf_row_bytes(format));
        rows->part_stride = file->part_stride;
        rows->out = static_cast<unsigned char *>(call->from->out[i].data);
        rows->stride = call->from->out[i].stride;
        rows->height = static_cast<uint32_t>(format->height);
        rows->first_group = group;
        rows->bpp = static_cast<uint32_t>(format->channels * gf_type_bytes(format->type));
        rows->swap = format->type == GF_U16;
        group += static_cast<uint32_t>(gf_divide_up(format->height, PNG_GROUP));
        for (uint32_t k = 0; k < file->parts; k++) {
            const uint64_t left = format->height - k * part_rows;
            png_stream *stream = &call->stream_list[file->first + k];
            *stream = {};
            stream->out = call->filtered + file->filtered_at + k * file->part_stride;
            stream->out_bytes =
                static_cast<uint32_t>(std::min(left, part_rows) * (gf_row_bytes(format) + 1));
            stream->last = k + 1 == file->parts;
            stream->data = reinterpret_cast<const uint32_t *>(file->data);
            if (!file->intact) // no bytes: the stream fails
                continue;
            stream->data = reinterpret_cast<const uint32_t *>(file->data + file->places[k]);
            stream->bytes = static_cast<uint32_t>(file->places[file->parts + k]);
            stream->skip = k == 0 ? 2 : 0;
        }
        free(file->own_places);
        file->own_places = nullptr;
    }
}

// Note the files that the CPU must decode: a stream or the Adler-32 of the file is wrong.
static void decoder_judge(gf_decoder_call *call) {
    uint32_t image = 0;
    for (uint64_t i = call->first; i < call->end; i++) {
        const gf_decoder_file *file = &call->all[i];
        const uint64_t row = gf_row_bytes(&file->scan.format) + 1;
        const uint64_t total = row * file->scan.format.height;
        bool valid = file->on_device && !call->failed[image++];
        uint64_t sum = 0, weighted = 0; // of the bytes, and times the number of bytes from there on
        uint32_t adler = 0;
        for (uint32_t k = 0; k < file->parts && valid; k++) {
            const png_stream_end *end = &call->ends[file->first + k];
            const uint64_t left = (total - k * file->scan.part_rows * row) % ADLER_BASE;
            sum += end->sum % ADLER_BASE;
            weighted +=
                left * (end->sum % ADLER_BASE) + uint64_t{ADLER_BASE} - end->moment % ADLER_BASE;
            adler = end->adler;
            valid = !end->failed;
        }
        const uint64_t low = (1 + sum) % ADLER_BASE, high = (total + weighted) % ADLER_BASE;
        if (!valid || adler != (high << 16 | low))
            call->retried[call->retries++] = i;
    }
}

// Copy the next files of the window, and queue the upload of their data. buffer: the piece to
// fill, 0 or 1.
static void decoder_upload_piece(gf_decoder_call *call, int buffer) {
    gf_png_decoder *decoder = call->decoder;
    gf_queue *queue = &call->queue;
    size_t bytes = 0;
    call->piece_first = call->piece_end;
    for (; call->piece_end < call->end; call->piece_end++) {
        const gf_decoder_file *file = &call->all[call->piece_end];
        const size_t size = file->on_device ? gf_align(gf_png_scan_bytes(&file->scan)) : 0;
        if (bytes && bytes + size > gf_decoder_policy::piece_bytes)
            break;
        if (!bytes)
            call->piece_at = file->data_at;
        bytes += size;
    }
    gf_queue_check(queue, cudaEventSynchronize(decoder->uploaded[buffer]), "upload");
    gf_memory_grow(&decoder->pieces[buffer], bytes + bytes / 4, GF_MEMORY_HOST, queue);
    if (queue->status)
        return;
    call->piece = decoder->pieces[buffer].data;
    const uint32_t files = static_cast<uint32_t>(call->piece_end - call->piece_first);
    gf_work work = {decoder_copy, call, files, nullptr, false, 0, 0, nullptr};
    gf_pool_run(decoder->pool, &work);
    gf_queue_upload(queue, call->data + call->piece_at, call->piece, bytes);
    gf_queue_record(queue, decoder->uploaded[buffer]);
}

static void decoder_run_window(gf_decoder_call *call) {
    gf_png_decoder *decoder = call->decoder;
    gf_queue *queue = &call->queue;
    decoder_divide(call);
    gf_memory_grow(&decoder->host, call->used, GF_MEMORY_HOST, queue);
    gf_memory_grow(&decoder->memory, call->used + call->data_bytes + call->filtered_bytes,
                   GF_MEMORY_STREAM, queue);
    if (queue->status)
        return;
    decoder_divide(call);
    call->piece_end = call->from->uploaded ? call->end : call->first;
    for (int buffer = 0; call->piece_end < call->end && !queue->status; buffer = 1 - buffer)
        decoder_upload_piece(call, buffer);
    if (!queue->status && call->images) {
        const auto on_device = [&](auto *host) { // the copy of an array
            return reinterpret_cast<decltype(host)>(
                decoder->memory.data +
                (reinterpret_cast<unsigned char *>(host) - decoder->host.data));
        };
        decoder_list_images(call);
        memset(call->failed, 0, call->images * sizeof *call->failed);
        memset(call->progress, 0, (call->groups + size_t{1}) * sizeof *call->progress);
        gf_queue_upload(queue, decoder->memory.data, decoder->host.data, call->uploaded);
        png_queue_inflate(on_device(call->stream_list), on_device(call->ends), call->streams,
                          queue);
        png_queue_unfilter(on_device(call->rows), call->images, call->groups,
                           on_device(call->progress), on_device(call->failed), queue);
        // A download that waits in the queue for kernels would delay those of other streams.
        gf_queue_wait(queue, "kernel execution");
        gf_queue_download(queue, call->ends, on_device(call->ends),
                          call->streams * sizeof *call->ends);
        gf_queue_download(queue, call->failed, on_device(call->failed),
                          call->images * sizeof *call->failed);
    }
    gf_queue_wait(queue, "kernel execution");
    if (!queue->status)
        decoder_judge(call);
}

// Decode a file and upload its image.
static void decoder_retry(void *context, uint32_t task, uint32_t) {
    const gf_decoder_call *call = static_cast<const gf_decoder_call *>(context);
    const uint64_t i = call->retried[task];
    const gf_format *format = &call->from->formats[i];
    const gf_buffer *file = &call->from->files[i];
    const gf_out_pixels *out = &call->from->out[i];
    gf_error *error = &call->from->errors[i];
    gf_source *source;
    void *pixels;
    error->status = gf_png_memory_source(file->data, file->size, "PNG", &source, error);
    if (error->status)
        return;
    if (!gf_format_equal(&source->format, format))
        error->status =
            gf_fail(error, GF_USAGE,
                    NAME ": the image of a file has another format; use that of gf_png_format");
    else
        error->status =
            gf_source_read_all(source, "PNG", "the image", UINT64_MAX, 0, &pixels, error);
    source->ops->close(source);
    if (error->status)
        return;
    const size_t row = gf_row_bytes(format);
    gf_queue queue = gf_queue_on(nullptr, NAME, error);
    const gf_caller_scope scope(call->decoder->devices, &queue);
    gf_queue_call(&queue, "upload",
                  cudaMemcpy2D(out->data, out->stride, pixels, row, row,
                               static_cast<size_t>(format->height), cudaMemcpyHostToDevice));
    free(pixels);
    error->status = queue.status;
}

// ---- calls --------------------------------------------------------------------------------------

// Start a call: check the pointers of a program, allocate the lists, choose the size of windows,
// and choose the files that the device decodes.
static void decoder_begin(gf_decoder_call *call, gf_cuda_devices *devices) {
    const gf_device_decoding *from = call->from;
    const uint64_t count = from->count;
    gf_queue *queue = &call->queue;
    if (!from->uploaded) {
        gf_memory_range known = {};
        gf_cuda_check_stream(devices, queue);
        gf_cuda_check_capture("cannot decode while the stream is captured", queue);
        for (uint64_t i = 0; i < count; i++)
            gf_cuda_check_memory(devices, "image", from->out[i].data,
                                 (from->formats[i].height - 1) * from->out[i].stride +
                                     gf_row_bytes(&from->formats[i]),
                                 &known, queue);
        if (!queue->status && count > INT32_MAX)
            gf_queue_fail(queue, GF_USAGE, NAME ": too many files");
    }
    gf_png_decoder_open(devices, from->uploaded ? 1 : from->threads, queue);
    if (queue->status)
        return;
    call->decoder = devices->decoder;
    call->window = std::max(gf_decoder_policy::min_window,
                            (gf_cuda_free_bytes(devices) + call->decoder->memory.size) /
                                gf_decoder_policy::window_share);
    call->all = static_cast<gf_decoder_file *>(calloc(count, sizeof *call->all));
    call->retried = static_cast<uint64_t *>(calloc(count, sizeof *call->retried));
    if (!call->all || !call->retried) {
        gf_queue_fail_memory(queue, count * sizeof *call->all, "the files");
        return;
    }
    for (uint64_t i = 0; i < count && from->uploaded; i++) {
        gf_decoder_file *file = &call->all[i];
        file->scan = from->uploaded[i].scan;
        file->places = from->uploaded[i].places;
        file->data = static_cast<const unsigned char *>(from->uploaded[i].data);
        file->on_device = file->intact = true;
    }
    if (from->uploaded)
        return;
    gf_work scan = {decoder_scan, call, static_cast<uint32_t>(count), nullptr, false, 0, 0,
                    nullptr};
    gf_pool_run(call->decoder->pool, &scan);
    for (int parts = 0; parts < 2 && !from->always; parts++)
        decoder_choose(call, parts == 1);
}

static gf_status decoder_decode(void *state, const gf_device_decoding *from, gf_error *error) {
    gf_cuda_devices *devices = static_cast<gf_cuda_devices *>(state);
    gf_decoder_call call = {};
    call.from = from;
    call.queue = gf_queue_on(from->stream, NAME, error);
    const gf_caller_scope scope(devices, &call.queue);
    decoder_begin(&call, devices);
    while (!call.queue.status && decoder_list(&call))
        decoder_run_window(&call);
    // Leave the files that the device has not decoded to the CPU: of this call, or of the caller.
    for (uint64_t i = 0; i < from->count && from->uploaded; i++)
        from->decoded[i] = true;
    for (uint64_t i = 0; i < call.retries && from->uploaded; i++)
        from->decoded[call.retried[i]] = false;
    if (!from->uploaded)
        gf_png_count_left(call.retries);
    gf_work retry = {
        decoder_retry, &call, static_cast<uint32_t>(call.retries), nullptr, false, 0, 0, nullptr};
    if (!from->uploaded && !call.queue.status && call.retries)
        gf_pool_run(call.decoder->pool, &retry);
    for (uint64_t i = 0; call.all && i < from->count; i++)
        free(call.all[i].own_places);
    free(call.all);
    free(call.retried);
    return call.queue.status;
}

const gf_png_functions gf_cuda_png = {gf_cuda_encode_png, decoder_decode};
