// PNG decoder on a device: windows of files, and files that the CPU decodes.
#include "cuda/host/devices.cuh"
#include "cuda/png/decode.cuh"

#include <stdlib.h>

extern "C" {
#include "core/thread.h"
#include "io/formats.h"
}

#define NAME "decode_png"
#define MIN_WINDOW (uint64_t{256} << 20) // filtered bytes, if an image is not larger
#define WINDOW_SHARE 4                   // of the free device memory
#define PIECE_BYTES (size_t{64} << 20)   // compressed bytes, if a file is not larger
#define MIN_HOST_BYTES (size_t{1} << 20)
#define MAX_BYTES (uint64_t{1} << 30) // per image, filtered or compressed: positions have 32 bits

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
    gf_device_memory memory; // of a window
    gf_device_memory host;   // pinned: descriptions and results
    // Pinned: compressed data. One is filled while the other one is uploaded.
    gf_device_memory pieces[2];
    cudaEvent_t uploaded[2];
};

// A call, and its current window.
struct gf_decoder_call {
    gf_png_decoder *decoder;
    uint64_t count;
    const gf_buffer *files;
    const gf_device_file *device_files; // the files' data is on the device; NULL: it is not
    const gf_format *formats;
    const gf_out_pixels *out;
    gf_error *errors;
    cudaStream_t stream;
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
    gf_caller_scope scope(decoder->devices->driver);
    scope.enter(decoder->devices, nullptr);
    gf_pool_close(decoder->pool);
    cudaFree(decoder->memory.data);
    cudaFreeHost(decoder->host.data);
    for (int i = 0; i < 2; i++) {
        cudaFreeHost(decoder->pieces[i].data);
        if (decoder->uploaded[i])
            cudaEventDestroy(decoder->uploaded[i]);
    }
    free(decoder);
}

gf_status gf_png_decoder_open(gf_cuda_devices *devices, uint32_t threads, gf_error *error) {
    gf_png_decoder *decoder = devices->decoder;
    if (decoder && decoder->threads == threads)
        return GF_OK;
    gf_png_decoder_free(decoder);
    devices->decoder = nullptr;
    decoder = static_cast<gf_png_decoder *>(calloc(1, sizeof *decoder));
    if (!decoder)
        return gf_fail_memory(error, NAME, sizeof *decoder, "the decoder");
    decoder->devices = devices;
    decoder->threads = threads;
    gf_status status = gf_pool_open(threads, &decoder->pool, error);
    if (!status)
        status = gf_memory_grow(&decoder->host, MIN_HOST_BYTES, true, error);
    for (cudaEvent_t &event : decoder->uploaded)
        if (!status)
            status = gf_event_create(&event, cudaEventDisableTiming, error);
    if (status)
        gf_png_decoder_free(decoder);
    else
        devices->decoder = decoder;
    return status;
}

// ---- windows ------------------------------------------------------------------------------------

static void decoder_scan(void *context, uint32_t task, uint32_t) {
    gf_decoder_call *call = static_cast<gf_decoder_call *>(context);
    gf_decoder_file *file = &call->all[task];
    const gf_buffer *buffer = &call->files[task];
    gf_png_scan *scan = &file->scan;
    file->on_device =
        gf_png_scan_file(static_cast<const unsigned char *>(buffer->data), buffer->size, scan) &&
        gf_format_equal(&scan->format, &call->formats[task]) && scan->bytes < MAX_BYTES &&
        (gf_row_bytes(&scan->format) + 1) * scan->format.height < MAX_BYTES;
}

// Leave files to the CPU if its threads finish them before the device finishes the longest stream:
// streams are decoded at the same time, each one slowly. parts: decide about files with several
// streams, or about those with one.
static void decoder_choose(gf_decoder_call *call, uint32_t threads, bool parts) {
    double total = 0, longest = 0; // filtered bytes
    uint64_t files = 0;
    const auto concerns = [&](const gf_decoder_file *file) {
        return file->on_device && (gf_png_scan_parts(&file->scan) > 1) == parts;
    };
    for (uint64_t i = 0; i < call->count; i++)
        if (concerns(&call->all[i])) {
            const gf_png_scan *scan = &call->all[i].scan;
            const double row = static_cast<double>(gf_row_bytes(&scan->format));
            const double stream = row * static_cast<double>(scan->part_rows);
            total += row * static_cast<double>(scan->format.height);
            longest = stream > longest ? stream : longest;
            files++;
        }
    const double active = static_cast<double>(files < threads ? files : threads);
    if (longest * GF_PNG_STREAM_COST <= total * GF_PNG_DECODE_COST / active)
        return;
    for (uint64_t i = 0; i < call->count; i++)
        if (concerns(&call->all[i]))
            call->all[i].on_device = false;
}

// Add files to the window. Returns false if it has none.
static bool decoder_list(gf_decoder_call *call) {
    call->first = call->end;
    call->data_bytes = call->filtered_bytes = 0;
    call->streams = call->images = call->groups = 0;
    for (; call->end < call->count; call->end++) {
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
        call->data_bytes += call->device_files ? 0 : gf_align(gf_png_scan_bytes(scan));
        call->filtered_bytes += filtered;
        call->streams += file->parts;
        call->groups += static_cast<uint32_t>(gf_divide_up(scan->format.height, PNG_GROUP));
        call->images++;
    }
    return call->first < call->end;
}

// Divide the host's memory among the arrays of the window.
static void decoder_divide(gf_decoder_call *call) {
    unsigned char *base = call->decoder->host.data;
    size_t used = 0;
    const auto take = [&](auto **array, size_t count) {
        *array =
            reinterpret_cast<typename std::remove_reference<decltype(*array)>::type>(base + used);
        used += gf_align(count * sizeof **array);
    };
    take(&call->stream_list, call->streams);
    take(&call->rows, call->images);
    take(&call->failed, call->images);
    take(&call->progress, call->groups + size_t{1});
    call->uploaded = used;
    take(&call->ends, call->streams);
    call->used = used;
    call->data = call->decoder->memory.data + used;
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
                   gf_png_scan_copy(static_cast<const unsigned char *>(call->files[i].data),
                                    &file->scan, call->piece + (file->data_at - call->piece_at),
                                    file->own_places, file->own_places + file->parts);
    file->data = call->data + file->data_at;
}

// Describe the streams of a file.
static void decoder_list_streams(const gf_decoder_call *call, gf_decoder_file *file) {
    const gf_png_scan *scan = &file->scan;
    const size_t row = gf_row_bytes(&scan->format) + 1;
    for (uint32_t k = 0; k < file->parts; k++) {
        const uint64_t y = k * scan->part_rows;
        const uint64_t rows =
            scan->format.height - y < scan->part_rows ? scan->format.height - y : scan->part_rows;
        png_stream *stream = &call->stream_list[file->first + k];
        *stream = {};
        stream->out = call->filtered + file->filtered_at + k * file->part_stride;
        stream->out_bytes = static_cast<uint32_t>(rows * row);
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

// Describe the images of the window.
static void decoder_list_images(gf_decoder_call *call) {
    uint32_t image = 0, group = 0;
    for (uint64_t i = call->first; i < call->end; i++) {
        gf_decoder_file *file = &call->all[i];
        if (!file->on_device)
            continue;
        decoder_list_streams(call, file);
        const gf_format *format = &file->scan.format;
        png_rows *rows = &call->rows[image++];
        *rows = {};
        rows->filtered = call->filtered + file->filtered_at;
        rows->part_rows = static_cast<uint32_t>(file->scan.part_rows);
        rows->row_bytes = static_cast<uint32_t>(gf_row_bytes(format));
        rows->part_stride = file->part_stride;
        rows->out = static_cast<unsigned char *>(call->out[i].data);
        rows->stride = call->out[i].stride;
        rows->height = static_cast<uint32_t>(format->height);
        rows->first_group = group;
        rows->bpp = static_cast<uint32_t>(format->channels * gf_type_bytes(format->type));
        rows->swap = format->type == GF_U16;
        group += static_cast<uint32_t>(gf_divide_up(format->height, PNG_GROUP));
    }
}

// Return whether all streams of a file are valid and its Adler-32 is correct.
static bool decoder_is_valid(const gf_decoder_call *call, const gf_decoder_file *file) {
    const uint64_t row = gf_row_bytes(&file->scan.format) + 1;
    const uint64_t total = row * file->scan.format.height;
    uint64_t sum = 0, weighted = 0; // of the bytes, and times the number of bytes from there on
    for (uint32_t k = 0; k < file->parts; k++) {
        const png_stream_end *end = &call->ends[file->first + k];
        const uint64_t left = (total - k * file->scan.part_rows * row) % ADLER_BASE;
        if (end->failed)
            return false;
        sum += end->sum % ADLER_BASE;
        weighted +=
            left * (end->sum % ADLER_BASE) + uint64_t{ADLER_BASE} - end->moment % ADLER_BASE;
    }
    const uint64_t low = (1 + sum) % ADLER_BASE, high = (total + weighted) % ADLER_BASE;
    return call->ends[file->first + file->parts - 1].adler == (high << 16 | low);
}

// Note the files of the window that the CPU must decode.
static void decoder_judge(gf_decoder_call *call) {
    uint32_t image = 0;
    for (uint64_t i = call->first; i < call->end; i++) {
        const gf_decoder_file *file = &call->all[i];
        const bool failed = !file->on_device || call->failed[image++];
        if (failed || !decoder_is_valid(call, file))
            call->retried[call->retries++] = i;
    }
}

// Copy the next files of the window, and queue the upload of their data. buffer: the piece to
// fill, 0 or 1.
static gf_status decoder_upload_piece(gf_decoder_call *call, int buffer, gf_error *error) {
    gf_png_decoder *decoder = call->decoder;
    size_t bytes = 0;
    call->piece_first = call->piece_end;
    for (; call->piece_end < call->end; call->piece_end++) {
        const gf_decoder_file *file = &call->all[call->piece_end];
        const size_t size = file->on_device ? gf_align(gf_png_scan_bytes(&file->scan)) : 0;
        if (bytes && bytes + size > PIECE_BYTES)
            break;
        if (!bytes)
            call->piece_at = file->data_at;
        bytes += size;
    }
    gf_status status =
        gf_cuda_check(cudaEventSynchronize(decoder->uploaded[buffer]), "upload", error);
    if (!status)
        status = gf_memory_grow(&decoder->pieces[buffer], bytes + bytes / 4, true, error);
    if (status)
        return status;
    call->piece = decoder->pieces[buffer].data;
    const uint32_t files = static_cast<uint32_t>(call->piece_end - call->piece_first);
    gf_work work = {decoder_copy, call, files, 0, 0, nullptr};
    gf_pool_run(decoder->pool, &work);
    gf_queue queue = {call->stream, error, NAME, GF_OK, nullptr};
    gf_queue_upload(&queue, call->data + call->piece_at, call->piece, bytes);
    gf_queue_record(&queue, decoder->uploaded[buffer]);
    return queue.status;
}

// Queue the kernels of a window and the download of their results.
static gf_status decoder_queue_window(gf_decoder_call *call, gf_error *error) {
    const gf_png_decoder *decoder = call->decoder;
    gf_queue queue = {call->stream, error, NAME, GF_OK, nullptr};
    const auto on_device = [&](auto *host) { // the copy of an array
        return reinterpret_cast<decltype(host)>(
            decoder->memory.data + (reinterpret_cast<unsigned char *>(host) - decoder->host.data));
    };
    decoder_list_images(call);
    memset(call->failed, 0, call->images * sizeof *call->failed);
    memset(call->progress, 0, (call->groups + size_t{1}) * sizeof *call->progress);
    gf_queue_upload(&queue, decoder->memory.data, decoder->host.data, call->uploaded);
    if (queue.status)
        return queue.status;
    png_queue_inflate(on_device(call->stream_list), on_device(call->ends), call->streams, &queue);
    png_queue_unfilter(on_device(call->rows), call->images, call->groups, on_device(call->progress),
                       on_device(call->failed), &queue);
    // A download that waits in the queue for kernels would delay those of other streams.
    gf_queue_wait(&queue, "kernel execution");
    gf_queue_download(&queue, call->ends, on_device(call->ends),
                      call->streams * sizeof *call->ends);
    gf_queue_download(&queue, call->failed, on_device(call->failed),
                      call->images * sizeof *call->failed);
    return queue.status;
}

static gf_status decoder_run_window(gf_decoder_call *call, gf_error *error) {
    gf_png_decoder *decoder = call->decoder;
    decoder_divide(call);
    gf_status status = gf_memory_grow(&decoder->host, call->used, true, error);
    if (!status)
        status =
            gf_device_grow(&decoder->memory, call->used + call->data_bytes + call->filtered_bytes,
                           call->stream, error);
    if (status)
        return status;
    decoder_divide(call);
    call->piece_end = call->device_files ? call->end : call->first;
    for (int buffer = 0; call->piece_end < call->end && !status; buffer = 1 - buffer)
        status = decoder_upload_piece(call, buffer, error);
    if (!status && call->images)
        status = decoder_queue_window(call, error);
    gf_queue queue = {call->stream, error, NAME, status, nullptr};
    gf_queue_finish(&queue, "kernel execution");
    if (!queue.status)
        decoder_judge(call);
    return queue.status;
}

// ---- files decoded by the CPU -------------------------------------------------------------------

// Decode a file and upload its image.
static gf_status decoder_retry_one(const gf_decoder_call *call, uint64_t i, gf_error *error) {
    const gf_format *format = &call->formats[i];
    gf_source *source;
    void *pixels;
    gf_status status =
        gf_png_memory_source(call->files[i].data, call->files[i].size, "PNG", &source, error);
    if (status)
        return status;
    if (!gf_format_equal(&source->format, format))
        status =
            gf_fail(error, GF_USAGE,
                    NAME ": the image of a file has another format; use that of gf_png_format");
    if (!status)
        status = gf_source_read_all(source, "PNG", "the image", UINT64_MAX, &pixels, error);
    source->ops->close(source);
    if (status)
        return status;
    const size_t row = gf_row_bytes(format);
    gf_caller_scope scope(call->decoder->devices->driver);
    status = scope.enter(call->decoder->devices, error);
    if (!status)
        status =
            gf_cuda_check(cudaMemcpy2D(call->out[i].data, call->out[i].stride, pixels, row, row,
                                       static_cast<size_t>(format->height), cudaMemcpyHostToDevice),
                          "upload", error);
    free(pixels);
    return status;
}

static void decoder_retry(void *context, uint32_t task, uint32_t) {
    const gf_decoder_call *call = static_cast<const gf_decoder_call *>(context);
    const uint64_t i = call->retried[task];
    call->errors[i].status = decoder_retry_one(call, i, &call->errors[i]);
}

// ---- calls --------------------------------------------------------------------------------------

static gf_status decoder_check(const gf_cuda_devices *devices, uint64_t count,
                               const gf_format *formats, const gf_out_pixels *out,
                               cudaStream_t stream, gf_error *error) {
    gf_memory_range known = {};
    gf_status status = gf_cuda_check_stream(devices, NAME, stream,
                                            "cannot decode while the stream is captured", error);
    for (uint64_t i = 0; i < count && !status; i++)
        status = gf_cuda_check_memory(
            devices, NAME, "image", out[i].data,
            (formats[i].height - 1) * out[i].stride + gf_row_bytes(&formats[i]), &known, error);
    if (!status && count > INT32_MAX)
        status = gf_fail(error, GF_USAGE, NAME ": too many files");
    return status;
}

// Start a call: allocate its lists, and choose the size of its windows.
static gf_status decoder_begin(gf_decoder_call *call, gf_cuda_devices *devices, uint64_t count,
                               const gf_out_pixels *out, uint32_t threads, cudaStream_t stream,
                               gf_error *error) {
    const gf_status status = gf_png_decoder_open(devices, threads, error);
    if (status)
        return status;
    call->decoder = devices->decoder;
    call->count = count;
    call->out = out;
    call->stream = stream;
    call->window = (gf_cuda_free_memory(devices) + call->decoder->memory.size) / WINDOW_SHARE;
    call->window = call->window > MIN_WINDOW ? call->window : MIN_WINDOW;
    call->all = static_cast<gf_decoder_file *>(calloc(count, sizeof *call->all));
    call->retried = static_cast<uint64_t *>(calloc(count, sizeof *call->retried));
    return call->all && call->retried
               ? GF_OK
               : gf_fail_memory(error, NAME, count * sizeof *call->all, "the files");
}

static void decoder_end(gf_decoder_call *call) {
    for (uint64_t i = 0; call->all && i < call->count; i++)
        free(call->all[i].own_places);
    free(call->all);
    free(call->retried);
}

gf_status gf_cuda_decode_png(void *state, uint64_t count, const gf_buffer *files,
                             const gf_format *formats, const gf_out_pixels *out, uint32_t threads,
                             bool always, cudaStream_t stream, gf_error *errors, gf_error *error) {
    gf_cuda_devices *devices = static_cast<gf_cuda_devices *>(state);
    gf_caller_scope scope(devices->driver);
    gf_decoder_call call = {};
    gf_status status = scope.enter(devices, error);
    if (!status)
        status = decoder_check(devices, count, formats, out, stream, error);
    if (!status)
        status = decoder_begin(&call, devices, count, out, threads, stream, error);
    call.files = files;
    call.formats = formats;
    call.errors = errors;
    gf_work scan = {decoder_scan, &call, static_cast<uint32_t>(count), 0, 0, nullptr};
    if (!status)
        gf_pool_run(call.decoder->pool, &scan);
    for (int parts = 0; parts < 2 && !always && !status; parts++)
        decoder_choose(&call, threads, parts == 1);
    while (!status && decoder_list(&call))
        status = decoder_run_window(&call, error);
    gf_work retry = {decoder_retry, &call, static_cast<uint32_t>(call.retries), 0, 0, nullptr};
    gf_png_count_left(call.retries);
    if (!status && call.retries)
        gf_pool_run(call.decoder->pool, &retry);
    decoder_end(&call);
    return status;
}

gf_status gf_cuda_decode_uploaded(void *state, uint64_t count, const gf_device_file *files,
                                  const gf_out_pixels *out, cudaStream_t stream, bool *decoded,
                                  gf_error *error) {
    gf_cuda_devices *devices = static_cast<gf_cuda_devices *>(state);
    gf_caller_scope scope(devices->driver);
    gf_decoder_call call = {};
    gf_status status = scope.enter(devices, error);
    if (!status)
        status = decoder_begin(&call, devices, count, out, 1, stream, error);
    call.device_files = files;
    for (uint64_t i = 0; i < count && !status; i++) {
        gf_decoder_file *file = &call.all[i];
        decoded[i] = true;
        file->scan = files[i].scan;
        file->places = files[i].places;
        file->data = static_cast<const unsigned char *>(files[i].data);
        file->on_device = file->intact = true;
    }
    while (!status && decoder_list(&call))
        status = decoder_run_window(&call, error);
    for (uint64_t i = 0; i < call.retries; i++)
        decoded[call.retried[i]] = false;
    decoder_end(&call);
    return status;
}
