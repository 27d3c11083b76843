/* Decodes a file with stb_image inside the sandbox: memory comes from an arena, no system calls, no
 * messages. stb_source.c does not trust the result. */
#include <limits.h>
#include <string.h>

#include "io/bytes.h"
#include "io/stb.h"

/* ---- PSD: checks that stb does not make ------------------------------------------------------ */

enum { PSD_RGB = 3, PSD_HEADER_BYTES = 26 };

static bool psd_is_16_bit(const gf_stb_bytes *bytes) {
    return bytes->size >= PSD_HEADER_BYTES && bytes->data[22] == 0 && bytes->data[23] == 16;
}

/* Return the offset of the compression field, after three sections that begin with their size.
 * Return 0 if there is none. */
static size_t psd_compression_offset(const gf_stb_bytes *bytes) {
    uint64_t at = 26;
    for (int section = 0; section < 3; section++) {
        if (at + 4 > bytes->size)
            return 0;
        at += 4 + (uint64_t)gf_big32(bytes->data + at);
    }
    return at + 2 <= bytes->size ? (size_t)at : 0;
}

/* Accept only RGB PSDs, uncompressed if they have 16 bits: stb reads no others exactly. It adds
 * alpha to every PSD without it, and divides the colours by an existing alpha. Its test for 16 bits
 * reads the wrong field, and it decodes compressed 16-bit samples as 8-bit ones. */
static gf_stb_outcome psd_check(const gf_stb_bytes *bytes) {
    const unsigned char *data = bytes->data;
    if (bytes->size < PSD_HEADER_BYTES)
        return GF_STB_DECODED; /* stb reports the end of the file */
    if ((data[12] << 8 | data[13]) != 3 || (data[24] << 8 | data[25]) != PSD_RGB)
        return GF_STB_PSD_CHANNELS;
    size_t at = psd_compression_offset(bytes);
    if (psd_is_16_bit(bytes) && at != 0 && (data[at] != 0 || data[at + 1] != 0))
        return GF_STB_PSD_COMPRESSED;
    return GF_STB_DECODED;
}

/* ---- decoding -------------------------------------------------------------------------------- */

static gf_stb_outcome stb_failure(const gf_stb_bytes *bytes, const gf_arena *arena,
                                  gf_stb_result *result) {
    if (bytes->past_end)
        return GF_STB_TRUNCATED;
    if (arena->exhausted)
        return GF_STB_OVER_MEMORY;
    const char *reason = gf_stb_reason();
    const size_t length = strlen(reason), capacity = sizeof result->reason - 1;
    memcpy(result->reason, reason, length < capacity ? length : capacity);
    return GF_STB_REJECTED;
}

/* Report a truncated file first: a higher limit does not help there. */
static gf_stb_outcome stb_check_limits(const gf_stb_bytes *bytes, const gf_format *format,
                                       const gf_stb_task *task) {
    const gf_limits *limits = task->limits;
    if (gf_check_pixels(format, limits, "", NULL))
        return GF_STB_OVER_LIMIT;
    if (gf_stb_min_bytes(bytes, format) > task->file_bytes)
        return GF_STB_TRUNCATED;
    const uint64_t needed = task->file_bytes + gf_stb_peak_bytes(bytes->data, format);
    return gf_check_memory(needed, limits->max_memory, "", "", NULL) == GF_OK ? GF_STB_DECODED
                                                                              : GF_STB_OVER_LIMIT;
}

/* Read the header and check the limits before stb allocates memory. DECODED: no error so far. */
static gf_stb_outcome stb_read_format(gf_stb_bytes *bytes, const gf_stb_task *task,
                                      gf_format *format, int *channels) {
    bool hdr = gf_stb_is_hdr(bytes->data);
    bool psd = memcmp(bytes->data, "8BPS", 4) == 0;
    bool bmp = memcmp(bytes->data, "BM", 2) == 0;
    int width = 0, height = 0, found = 0;
    gf_stb_outcome outcome;
    if (psd && (outcome = psd_check(bytes)) != GF_STB_DECODED)
        return outcome;
    if (!gf_stb_info(bytes, task->arena, &width, &height, &found))
        return stb_failure(bytes, task->arena, task->result);
    /* A negative height (top row first) is returned by stb's info function only. */
    if (bmp && height < 0 && height != INT_MIN)
        height = -height;
    if (width <= 0 || height <= 0 || found < 1 || found > 4)
        return GF_STB_INVALID_HEADER;
    *format = (gf_format){.width = (uint64_t)width,
                          .height = (uint64_t)height,
                          .channels = (uint32_t)found,
                          .type = hdr                           ? GF_F32
                                  : psd && psd_is_16_bit(bytes) ? GF_U16
                                                                : GF_U8,
                          .alpha = found % 2 == 0};
    *channels = psd ? 3 : 0;
    return stb_check_limits(bytes, format, task);
}

/* stb returns RGBA for every GIF. Convert an image without transparent pixels to RGB. */
static void stb_drop_opaque_alpha(gf_format *format, unsigned char *pixels) {
    const size_t count = (size_t)(format->width * format->height);
    for (size_t i = 0; i < count; i++) {
        if (pixels[4 * i + 3] != 255)
            return;
    }
    for (size_t i = 0; i < count; i++)
        memmove(pixels + 3 * i, pixels + 4 * i, 3);
    format->channels = 3;
}

/* Decode the image; rows have no gaps. */
static gf_stb_outcome stb_load(gf_stb_bytes *bytes, const gf_stb_task *task, gf_format *format,
                               unsigned char **pixels) {
    const bool gif = memcmp(bytes->data, "GIF8", 4) == 0;
    int width = 0, height = 0, found = 0, channels = 0;
    gf_stb_outcome outcome = stb_read_format(bytes, task, format, &channels);
    if (outcome != GF_STB_DECODED ||
        (gif && (outcome = gf_gif_check(bytes->data, bytes->size)) != GF_STB_DECODED) ||
        task->header_only)
        return outcome;
    *pixels = gf_stb_load(bytes, task->arena, format->type, channels, &width, &height, &found);
    if (!*pixels || bytes->past_end)
        return stb_failure(bytes, task->arena, task->result);
    if ((uint64_t)width != format->width || (uint64_t)height != format->height || found < 1 ||
        found > 4)
        return GF_STB_INVALID_HEADER;
    /* Use the decoded number: a header may declare an alpha channel that does not exist. */
    format->channels = (uint32_t)(channels != 0 ? channels : found);
    if (gif)
        stb_drop_opaque_alpha(format, *pixels);
    return GF_STB_DECODED;
}

static void stb_on_abort(void *context, gf_stb_outcome outcome) {
    const gf_stb_task *task = context;
    if (!task->exit)
        return;
    task->result->outcome = outcome;
    task->exit(0);
}

void gf_stb_decode(const gf_stb_task *task) {
    gf_stb_result *result = task->result;
    gf_stb_bytes bytes = {
        .data = task->data, .size = task->size, .on_abort = stb_on_abort, .context = (void *)task};
    gf_format format = {0};
    unsigned char *pixels = NULL;
    gf_stb_outcome outcome =
        bytes.size < GF_STB_MIN_BYTES ? GF_STB_TRUNCATED : stb_load(&bytes, task, &format, &pixels);
    result->width = format.width;
    result->height = format.height;
    result->channels = format.channels;
    result->type = format.type;
    if (outcome == GF_STB_DECODED && !task->header_only)
        result->offset = (uint64_t)(pixels - task->arena->base);
    result->outcome = outcome;
}
