/* The stb libraries. They count on int arithmetic that wraps: this file is compiled with -fwrapv.
 */
#include "io/stb.h"

#include <string.h>

/* What stb is at work on. */
static _Thread_local gf_stb_bytes *at_work;
static _Thread_local gf_arena *arena_at_work;

static void impl_give_up(gf_stb_outcome why) {
    if (at_work->give_up)
        at_work->give_up(at_work->context, why);
}

static void *impl_allocate(size_t size) {
    void *block = gf_arena_alloc(arena_at_work, size);
    if (!block)
        impl_give_up(GF_STB_OVER_MEMORY);
    return block;
}

/* stb allocates only one row, for HDR, and does not check that it got it: the caller gives it. */
static _Thread_local void *row_scratch;

/* Reported at the end of the file: a pop would come before that. */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wpedantic"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_NO_PNG
#define STBI_NO_PNM
#define STBI_NO_PIC
/* A damaged file can meet its assertions and make it use tables that it never filled: it may
 * neither abort us nor read what was in memory before. */
#define STBI_ASSERT(condition) ((void)0)
#define STBI_MALLOC(size) impl_allocate(size)
/* Only for what is not read: PNG, and the later frames of a GIF. */
#define STBI_REALLOC(pointer, size) ((void)(pointer), (void)(size), (void *)0)
#define STBI_FREE(pointer) gf_arena_free(arena_at_work, pointer)
/* STBI_MAX_DIMENSIONS stays at 2^24: stb's int arithmetic is made for that. */
#include <stb/stb_image.h>
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBIW_MALLOC(size) ((void)(size), row_scratch)
#define STBIW_REALLOC(pointer, size) ((void)(pointer), (void)(size), (void *)0)
#define STBIW_FREE(pointer) ((void)(pointer))
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

/* stb takes what is past the end of a file for zeros. Reading through callbacks shows when it does:
 * a refill of its buffer may be short, but not empty; any other read may not be short.
 *
 * Its HDR decoder never ends on zeros, which are runs of no length: there the end reads as bytes of
 * 0xff, one at a time, so that it still counts as the end of a header. */
static void impl_end_reached(gf_stb_bytes *bytes) {
    bytes->past_end = true;
    if (bytes->loading)
        impl_give_up(GF_STB_CUT_OFF);
}

static int impl_on_read(void *user, char *data, int size) {
    gf_stb_bytes *bytes = user;
    size_t wanted = (size_t)size;
    size_t left = bytes->size - bytes->used;
    size_t got = wanted < left ? wanted : left;
    if (!bytes->buffer)
        bytes->buffer = data;
    if (got < wanted && (got == 0 || data != bytes->buffer))
        impl_end_reached(bytes);
    /* stb does not always look at how much it got. */
    memset(data + got, 0, wanted - got);
    if (got == 0 && size > 0 && bytes->hdr) {
        *data = (char)0xff;
        return 1;
    }
    memcpy(data, bytes->data + bytes->used, got);
    bytes->used += got;
    return (int)got;
}

/* No flag here: padding after the last sample may be missing. n < 0 goes back. */
static void impl_on_skip(void *user, int n) {
    gf_stb_bytes *bytes = user;
    if (n < 0) {
        size_t back = (size_t) - (long)n;
        bytes->used -= back < bytes->used ? back : bytes->used;
    } else {
        size_t left = bytes->size - bytes->used;
        bytes->used += (size_t)n < left ? (size_t)n : left;
    }
}

static int impl_on_eof(void *user) {
    const gf_stb_bytes *bytes = user;
    return bytes->used == bytes->size;
}

static const stbi_io_callbacks callbacks = {impl_on_read, impl_on_skip, impl_on_eof};

static void impl_begin(gf_stb_bytes *bytes, gf_arena *arena) {
    at_work = bytes;
    arena_at_work = arena;
    bytes->loading = false;
    bytes->used = 0;
    bytes->buffer = NULL;
    bytes->past_end = false;
    bytes->hdr = false;
}

bool gf_stb_info(gf_stb_bytes *bytes, gf_arena *arena, int *width, int *height, int *channels) {
    impl_begin(bytes, arena);
    return stbi_info_from_callbacks(&callbacks, bytes, width, height, channels) != 0;
}

void *gf_stb_load(gf_stb_bytes *bytes, gf_arena *arena, gf_type type, int channels, int *width,
                  int *height, int *found) {
    impl_begin(bytes, arena);
    bytes->loading = true;
    bytes->hdr = type == GF_F32;
    if (type == GF_F32)
        return stbi_loadf_from_callbacks(&callbacks, bytes, width, height, found, channels);
    if (type == GF_U16)
        return stbi_load_16_from_callbacks(&callbacks, bytes, width, height, found, channels);
    return stbi_load_from_callbacks(&callbacks, bytes, width, height, found, channels);
}

const char *gf_stb_reason(void) {
    const char *reason = stbi_failure_reason();
    return reason ? reason : "unknown reason";
}

/* Of 100; above 90 stb keeps the colour at full resolution. */
enum { JPEG_QUALITY = 95 };

bool gf_stb_write(gf_sink_kind kind, gf_stb_write_func *write, void *context, int width, int height,
                  int channels, const void *pixels, void *scratch) {
    row_scratch = scratch;
    if (kind == GF_SINK_JPG)
        return stbi_write_jpg_to_func(write, context, width, height, channels, pixels,
                                      JPEG_QUALITY) != 0;
    if (kind == GF_SINK_BMP)
        return stbi_write_bmp_to_func(write, context, width, height, channels, pixels) != 0;
    if (kind == GF_SINK_TGA)
        return stbi_write_tga_to_func(write, context, width, height, channels, pixels) != 0;
    return stbi_write_hdr_to_func(write, context, width, height, channels, pixels) != 0;
}
