/* Decoding the bytes of a file through stb_image, as it is done in the sandbox: with no memory but
 * an arena, no system call, no message. stb_source.c believes nothing of what comes out. */
#include <limits.h>
#include <string.h>

#include "io/bytes.h"
#include "io/stb.h"

/* ---- PSD, of which stb says too little ------------------------------------------------------- */

enum { PSD_RGB = 3, PSD_HEADER_BYTES = 26 };

static bool psd_is_deep(const gf_stb_bytes *bytes) {
    return bytes->size >= PSD_HEADER_BYTES && bytes->data[22] == 0 && bytes->data[23] == 16;
}

/* Offset of the compression field: after three sections that start with their size. 0 if there is
 * none. */
static size_t psd_compression_at(const gf_stb_bytes *bytes) {
    uint64_t at = 26;
    for (int section = 0; section < 3; section++) {
        if (at + 4 > bytes->size)
            return 0;
        at += 4 + (uint64_t)gf_big32(bytes->data + at);
    }
    return at + 2 <= bytes->size ? (size_t)at : 0;
}

/* stb makes RGBA of every PSD, the alpha being its own invention where the file has none, and where
 * it has one divides the colours by it. Its test for 16 bits looks at the wrong field, and it takes
 * packed 16-bit samples for 8-bit ones. Left is what it reads as stored: three planes. */
static gf_stb_outcome psd_check(const gf_stb_bytes *bytes) {
    const unsigned char *data = bytes->data;
    if (bytes->size < PSD_HEADER_BYTES)
        return GF_STB_DECODED; /* stb meets the end of the file */
    if ((data[12] << 8 | data[13]) != 3 || (data[24] << 8 | data[25]) != PSD_RGB)
        return GF_STB_PSD_CHANNELS;
    size_t at = psd_compression_at(bytes);
    if (psd_is_deep(bytes) && at != 0 && (data[at] != 0 || data[at + 1] != 0))
        return GF_STB_PSD_PACKED;
    return GF_STB_DECODED;
}

/* ---- decoding -------------------------------------------------------------------------------- */

static gf_stb_outcome stb_failure(const gf_stb_bytes *bytes, const gf_arena *arena,
                                  gf_stb_result *result) {
    if (bytes->past_end)
        return GF_STB_CUT_OFF;
    if (arena->exhausted)
        return GF_STB_OVER_MEMORY;
    const char *reason = gf_stb_reason();
    const size_t length = strlen(reason), capacity = sizeof result->reason - 1;
    memcpy(result->reason, reason, length < capacity ? length : capacity);
    return GF_STB_REFUSED;
}

/* What can never be complete is said first: no higher limit helps there. */
static gf_stb_outcome stb_check_claim(const gf_stb_bytes *bytes, const gf_format *format,
                                      const gf_stb_task *task) {
    const gf_limits *limits = task->limits;
    if (gf_check_pixels(format, limits, "", NULL))
        return GF_STB_OVER_LIMIT;
    if (gf_stb_min_bytes(bytes, format) > task->file_bytes)
        return GF_STB_CUT_OFF;
    const uint64_t held = task->file_bytes + gf_stb_peak_bytes(bytes->data, format);
    return gf_check_memory(held, limits->max_memory, "", "", NULL) == GF_OK ? GF_STB_DECODED
                                                                            : GF_STB_OVER_LIMIT;
}

/* Checks what the header says against the limits, before stb allocates for it. DECODED: so far. */
static gf_stb_outcome stb_read_format(gf_stb_bytes *bytes, const gf_stb_task *task,
                                      gf_format *format, int *channels) {
    bool hdr = gf_stb_is_hdr(bytes->data);
    bool psd = memcmp(bytes->data, "8BPS", 4) == 0;
    bool bmp = memcmp(bytes->data, "BM", 2) == 0;
    int width = 0, height = 0, found = 0;
    gf_stb_outcome outcome;
    if (gf_stb_is_jpeg(bytes->data) && !gf_jpeg_tables_fit(bytes->data, bytes->size))
        return GF_STB_BAD_TABLE;
    if (psd && (outcome = psd_check(bytes)) != GF_STB_DECODED)
        return outcome;
    if (!gf_stb_info(bytes, task->arena, &width, &height, &found))
        return stb_failure(bytes, task->arena, task->result);
    /* A BMP with its top row first says so by a negative height, which stb passes on here only. */
    if (bmp && height < 0 && height != INT_MIN)
        height = -height;
    if (width <= 0 || height <= 0 || found < 1 || found > 4)
        return GF_STB_BAD_HEADER;
    *format = (gf_format){.width = (uint64_t)width,
                          .height = (uint64_t)height,
                          .channels = (uint32_t)found,
                          .type = hdr                         ? GF_F32
                                  : psd && psd_is_deep(bytes) ? GF_U16
                                                              : GF_U8};
    *channels = psd ? 3 : 0;
    return stb_check_claim(bytes, format, task);
}

/* stb makes RGBA of every GIF; one with no transparent pixel is RGB. */
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

/* Rows without gaps. */
static gf_stb_outcome stb_load(gf_stb_bytes *bytes, const gf_stb_task *task, gf_format *format,
                               unsigned char **pixels) {
    const bool gif = memcmp(bytes->data, "GIF8", 4) == 0;
    int width = 0, height = 0, found = 0, channels = 0;
    gf_stb_outcome outcome = stb_read_format(bytes, task, format, &channels);
    if (outcome != GF_STB_DECODED ||
        (gif && (outcome = gf_gif_check(bytes->data, bytes->size)) != GF_STB_DECODED) || task->look)
        return outcome;
    *pixels = gf_stb_load(bytes, task->arena, format->type, channels, &width, &height, &found);
    if (!*pixels || bytes->past_end)
        return stb_failure(bytes, task->arena, task->result);
    if ((uint64_t)width != format->width || (uint64_t)height != format->height || found < 1 ||
        found > 4)
        return GF_STB_BAD_HEADER;
    /* The decoded count is the true one: headers may promise an alpha that is not there. */
    format->channels = (uint32_t)(channels != 0 ? channels : found);
    if (gif)
        stb_drop_opaque_alpha(format, *pixels);
    return GF_STB_DECODED;
}

static void stb_give_up(void *context, gf_stb_outcome why) {
    const gf_stb_task *task = context;
    if (!task->leave)
        return;
    task->result->outcome = why;
    task->leave(0);
}

void gf_stb_decode(const gf_stb_task *task) {
    gf_stb_result *result = task->result;
    gf_stb_bytes bytes = {
        .data = task->data, .size = task->size, .give_up = stb_give_up, .context = (void *)task};
    gf_format format = {0};
    unsigned char *pixels = NULL;
    gf_stb_outcome outcome =
        bytes.size < GF_STB_MIN_BYTES ? GF_STB_CUT_OFF : stb_load(&bytes, task, &format, &pixels);
    result->width = format.width;
    result->height = format.height;
    result->channels = format.channels;
    result->type = format.type;
    if (outcome == GF_STB_DECODED && !task->look)
        result->offset = (uint64_t)(pixels - task->arena->base);
    result->outcome = outcome;
}
