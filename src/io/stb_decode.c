/* Decodes a file inside the sandbox: memory comes from an arena, no system calls, no messages.
 * stb_source.c does not trust the result. */
#include <string.h>

#include "io/stb.h"

/* ---- HDR, with stb_image --------------------------------------------------------------------- */

/* The reason of stb is a literal. */
static bool hdr_fail(gf_raster *hdr, const gf_stb_bytes *bytes, const gf_arena *arena) {
    return gf_raster_fail(hdr,
                          bytes->past_end    ? GF_RASTER_TRUNCATED
                          : arena->exhausted ? GF_RASTER_OVER_MEMORY
                                             : GF_RASTER_DAMAGED,
                          gf_stb_reason());
}

static bool hdr_head(gf_raster *hdr, gf_stb_bytes *bytes, gf_arena *arena) {
    int width = 0, height = 0;
    if (!gf_stb_info(bytes, arena, &width, &height))
        return hdr_fail(hdr, bytes, arena);
    if (width <= 0 || height <= 0)
        return gf_raster_fail(hdr, GF_RASTER_DAMAGED, "the size is invalid");
    hdr->format = (gf_format){
        .width = (uint64_t)width, .height = (uint64_t)height, .channels = 3, .type = GF_F32};
    /* Two bytes per run of 127 samples, for each of four channels. */
    hdr->min_bytes = hdr->format.width * hdr->format.height / 127 * 8;
    return true;
}

/* ---- all formats ----------------------------------------------------------------------------- */

/* Report a truncated file first: a higher limit does not help there. */
static bool decode_check_limits(gf_raster *raster, const gf_stb_task *task) {
    const gf_limits *limits = task->limits;
    if (gf_check_pixels(&raster->format, limits, "", NULL))
        return gf_raster_fail(raster, GF_RASTER_OVER_LIMIT, NULL);
    if (raster->min_bytes > (task->header_only ? task->file_bytes : task->size))
        return gf_raster_fail(raster, GF_RASTER_TRUNCATED, NULL);
    const uint64_t needed =
        task->file_bytes + raster->format.height * (uint64_t)gf_row_bytes(&raster->format);
    return gf_check_memory(needed, limits->max_memory, "", "", NULL) == GF_OK ||
           gf_raster_fail(raster, GF_RASTER_OVER_LIMIT, NULL);
}

static bool decode_image(gf_raster *raster, gf_stb_bytes *bytes, const gf_stb_task *task,
                         unsigned char **pixels) {
    const bool hdr = gf_stb_is_hdr(task->data);
    const gf_format *format = &raster->format;
    int width = 0, height = 0;
    if (!(hdr ? hdr_head(raster, bytes, task->arena) : gf_raster_head(raster)) ||
        !decode_check_limits(raster, task))
        return false;
    if (task->header_only)
        return true;
    *pixels = hdr ? gf_stb_load(bytes, task->arena, &width, &height)
                  : gf_arena_alloc(task->arena, (size_t)format->height * gf_row_bytes(format));
    if (hdr)
        return (*pixels && !bytes->past_end && (uint64_t)width == format->width &&
                (uint64_t)height == format->height) ||
               hdr_fail(raster, bytes, task->arena);
    return *pixels ? gf_raster_read(raster, *pixels)
                   : gf_raster_fail(raster, GF_RASTER_OVER_MEMORY, NULL);
}

static void decode_on_abort(void *context, gf_raster_outcome outcome) {
    const gf_stb_task *task = context;
    if (!task->exit)
        return;
    task->result->outcome = outcome;
    task->exit(0);
}

void gf_stb_decode(const gf_stb_task *task) {
    gf_stb_result *result = task->result;
    gf_stb_bytes bytes = {.data = task->data,
                          .size = task->size,
                          .on_abort = decode_on_abort,
                          .context = (void *)task};
    gf_raster raster = {.data = task->data,
                        .size = task->size,
                        .page = task->limits->page ? task->limits->page : 1};
    unsigned char *pixels = NULL;
    if (task->size < GF_STB_MIN_BYTES)
        raster.outcome = GF_RASTER_TRUNCATED;
    else if (decode_image(&raster, &bytes, task, &pixels))
        raster.outcome = GF_RASTER_READ;
    result->width = raster.format.width;
    result->height = raster.format.height;
    result->channels = raster.format.channels;
    result->type = raster.format.type;
    result->damaged = raster.damaged;
    result->unread = raster.unread;
    result->pages = raster.pages;
    if (raster.reason)
        memcpy(result->reason, raster.reason, strnlen(raster.reason, sizeof result->reason - 1));
    if (pixels)
        result->offset = (uint64_t)(pixels - task->arena->base);
    result->outcome = raster.outcome;
}
