/* The stb libraries, which rely on wrapping int arithmetic: compile this file with -fwrapv. */
#include "io/stb.h"

#include <string.h>

/* The file that stb reads, and the arena that it allocates from. */
static _Thread_local gf_stb_bytes *current_bytes;
static _Thread_local gf_arena *current_arena;

static void impl_abort(gf_raster_outcome outcome) {
    if (current_bytes->on_abort)
        current_bytes->on_abort(current_bytes->context, outcome);
}

static void *impl_allocate(size_t size) {
    void *block = gf_arena_alloc(current_arena, size);
    if (!block)
        impl_abort(GF_RASTER_OVER_MEMORY);
    return block;
}

/* Row buffer for HDR, the only allocation of stb_image_write. The caller provides it, since stb
 * does not check for a failed allocation. */
static _Thread_local void *row_scratch;

/* Not restored below: this warning is reported at the end of the file. */
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
#define STBI_ONLY_HDR
/* A damaged file can violate stb's assertions and make it use tables that it never filled. It must
 * neither abort the process nor read previous contents of memory. */
#define STBI_ASSERT(condition) ((void)0)
#define STBI_MALLOC(size) impl_allocate(size)
/* Not called for HDR. */
#define STBI_REALLOC(pointer, size) ((void)(pointer), (void)(size), (void *)0)
#define STBI_FREE(pointer) gf_arena_free(current_arena, pointer)
/* STBI_MAX_DIMENSIONS stays at 2^24, for which stb's int arithmetic is designed. */
#include <stb/stb_image.h>
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBIW_MALLOC(size) ((void)(size), row_scratch)
#define STBIW_REALLOC(pointer, size) ((void)(pointer), (void)(size), (void *)0)
#define STBIW_FREE(pointer) ((void)(pointer))
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

/* Record a read past the end of the file, where stb reads zeros. The callbacks detect it: a refill
 * of stb's buffer may be short but not empty; any other read must be complete.
 *
 * stb's HDR decoder loops on zeros, which are runs of length 0. Therefore reads past the end return
 * bytes of 0xff, one at a time, so that the header parser still detects the end. */
static void impl_on_end(gf_stb_bytes *bytes) {
    bytes->past_end = true;
    if (bytes->loading)
        impl_abort(GF_RASTER_TRUNCATED);
}

static int impl_on_read(void *user, char *data, int size) {
    gf_stb_bytes *bytes = user;
    size_t wanted = (size_t)size;
    size_t left = bytes->size - bytes->used;
    size_t got = wanted < left ? wanted : left;
    if (!bytes->buffer)
        bytes->buffer = data;
    if (got < wanted && (got == 0 || data != bytes->buffer))
        impl_on_end(bytes);
    /* stb does not always check how many bytes it got. */
    memset(data + got, 0, wanted - got);
    if (got == 0 && size > 0 && bytes->loading) {
        *data = (char)0xff;
        return 1;
    }
    memcpy(data, bytes->data + bytes->used, got);
    bytes->used += got;
    return (int)got;
}

/* Skip n bytes; n < 0 moves back. Do not set past_end: padding after the last sample may be
 * missing. */
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
    current_bytes = bytes;
    current_arena = arena;
    bytes->loading = false;
    bytes->used = 0;
    bytes->buffer = NULL;
    bytes->past_end = false;
}

bool gf_stb_info(gf_stb_bytes *bytes, gf_arena *arena, int *width, int *height) {
    int channels;
    impl_begin(bytes, arena);
    return stbi_info_from_callbacks(&callbacks, bytes, width, height, &channels) != 0;
}

void *gf_stb_load(gf_stb_bytes *bytes, gf_arena *arena, int *width, int *height) {
    int channels;
    impl_begin(bytes, arena);
    bytes->loading = true;
    return stbi_loadf_from_callbacks(&callbacks, bytes, width, height, &channels, 3);
}

const char *gf_stb_reason(void) {
    const char *reason = stbi_failure_reason();
    return reason ? reason : "unknown reason";
}

bool gf_stb_write(gf_sink_kind kind, gf_stb_write_func *write, void *context, int width, int height,
                  int channels, const void *pixels, void *scratch) {
    row_scratch = scratch;
    if (kind == GF_SINK_BMP)
        return stbi_write_bmp_to_func(write, context, width, height, channels, pixels) != 0;
    if (kind == GF_SINK_TGA)
        return stbi_write_tga_to_func(write, context, width, height, channels, pixels) != 0;
    return stbi_write_hdr_to_func(write, context, width, height, channels, pixels) != 0;
}
