/* Parallel decompression of one PNG.
 *
 * The compressed data is cut into segments, which pass through four steps. Each idle thread takes
 * the first step that is possible:
 *
 * 1. Unfilter, in order: reconstruct rows. A row depends on the one above and on its pixels to the
 *    left. Rows are divided into blocks of columns: a thread reconstructs the first block of a
 *    segment while another one reconstructs the second block of the segment before.
 * 2. Link, in order: accept the output of a segment and complete it. An output is accepted if the
 *    previous segment ended exactly where it starts: it is then the output of serial decoding.
 *    Otherwise the segment is decoded here, with its history. All errors come from this step. To
 *    complete an output, placeholders are replaced and the checksum is computed.
 * 3. Load, in order: read the compressed bytes of a segment.
 * 4. Decode, in any order, without history. A segment starts after an empty stored block at the end
 *    of an IDAT chunk, as most parallel encoders write, or at the first block header that a search
 *    finds. Matches that reach before the start copy placeholders of 16 bits. A segment ends at the
 *    first block that starts in the next one.
 *
 * With few threads, the caller takes steps, too, and reconstructs the rows: this saves a copy. With
 * more, it only returns rows: during a step, it would let others wait for memory. */
#include "io/png/inflate.h"

#include <isa-l/igzip_lib.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/clock.h"
#include "core/machine.h"
#include "core/thread.h"
#include "io/bytes.h"
#include "io/stream/announced.h"
#include "io/strip/row_filter.h"

enum {
    WINDOW = GF_INFLATE_WINDOW,
    TARGET_BYTES = 1 << 19, /* default of the expected output of a segment */
    MIN_SEGMENTS = 4,       /* per thread: with fewer, more threads cost more than they gain */
    AHEAD_BYTES = 512, /* more than GF_INFLATE_LOOKAHEAD: decoding continues in the next segment */
    IN_PADDING = 8,
    TRAILER_BYTES = 4, /* checksum after the last block; loaded with this block */
    MAX_RATIO = 10,    /* above, blocks are longer than segments; with 1, they are stored */
    MAX_THREADS = 64,
    STORED_THREADS = 3, /* for stored blocks: more only wait for memory */
    ATTEMPTS = 4,       /* positions tried per segment */
    /* Output bytes that may be decoded in vain before any has been useful, and limits as parts of
     * the image. Stored blocks are decoded several times as fast. */
    ALLOWANCE_BYTES = 8 << 20,
    PART = 4,
    STORED_PART = 32,
    /* Output bytes that take as long to decode as searching a byte, and as building the tables of a
     * block. */
    SEARCHED_BYTES = 8,
    BLOCK_BYTES = 1 << 10,
    MANY_BLOCKS = 64,     /* in a segment */
    UNFILTER_THREADS = 4, /* with fewer, the caller unfilters */
    /* Segments that are loaded, unfiltered or returned, not decoded. Each page of them costs. */
    FEW_SLOTS = 2, /* if the caller unfilters */
    MORE_SLOTS = 4,
    MAX_BLOCKS = 4,
    MIN_BLOCK_BYTES = 1 << 10,
    MAX_UNIT = 8, /* bytes per pixel */
    /* The begin of a row is copied with each segment. */
    MAX_ROW_BYTES = 1 << 20
};

/* A step takes 30 us or more, and waking a thread 10 us, more in a virtual machine: one idle thread
 * polls for this time before it waits. */
#define POLL_SECONDS 5e-5

typedef enum segment_state {
    SEGMENT_LOADED,
    SEGMENT_DECODED,
    SEGMENT_BUSY,     /* being decoded or linked */
    SEGMENT_LINKED,   /* can be unfiltered */
    SEGMENT_READY,    /* its rows can be returned */
    SEGMENT_CONTINUED /* its output has been returned, and more follows */
} segment_state;

typedef struct segment {
    const struct gf_png_parallel *parallel;
    /* Protected by the lock; the other fields belong to the current step. */
    segment_state state;
    uint32_t blocks;  /* unfiltered blocks of columns */
    bool unfiltering; /* the next block */
    /* Input, constant until the segment is returned. */
    bool exact;        /* a block starts here */
    bool final;        /* the last segment */
    uint64_t chunks;   /* chunks up to an exact end; 0: the segment ends anywhere */
    uint64_t begin;    /* offset in the stream */
    size_t size;       /* bytes up to the next segment */
    size_t ahead;      /* bytes after them; 0: the stream ends */
    unsigned char *in; /* size_in bytes, and IN_PADDING */
    /* Output, after parallel->head bytes, and rows, after size_out bytes more. The bytes before the
     * output are placeholders, the window, the table that replaces placeholders, and finally the
     * begin of the first row. */
    unsigned char *memory;
    gf_inflate *inflate;
    const struct segment *source; /* of the current input of `inflate` */
    gf_inflate_start_point start; /* in bits of the stream */
    size_t count;                 /* elements of the output */
    uint64_t spent;               /* output bytes that would have taken as long to decode */
    gf_inflate_result result;
    bool decoded; /* start, wide, count and result are valid */
    bool wide;    /* the output has 16-bit elements */
    /* Set when the segment is linked. */
    bool complete; /* false: more output follows */
    uint32_t adler;
    uint64_t offset; /* of the output in the image data */
    /* Set before the first block is unfiltered. */
    size_t carried;       /* bytes of the first row from previous output, before the output */
    uint64_t rows;        /* complete rows with a valid filter type */
    bool invalid;         /* the next row has an invalid one */
    uint64_t first_row;   /* in the image */
    uint64_t placed;      /* first rows that are reconstructed at their destination */
    uint64_t destination; /* of the first of them */
} segment;

struct gf_png_parallel {
    gf_png_stream *stream;
    const gf_png_image *image;
    const gf_png_simd *simd;
    gf_inflate_finder finder;
    uint64_t allowance;  /* output bytes that may be decoded in vain */
    uint64_t file_ratio; /* output bytes per compressed byte, times 16; 0: unknown */
    size_t head;         /* bytes before the output of a segment */
    segment *segments;
    pthread_t *workers; /* the other threads */
    gf_isa isa;
    uint32_t slots;
    uint32_t blocks;  /* blocks of columns; 0: the caller unfilters */
    uint32_t threads; /* workers */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* wakes workers for a step */
    pthread_cond_t ready;   /* wakes the caller */
    /* Shared, protected by the lock. Segments are numbered from 0. */
    uint64_t loaded;      /* the next segment to load */
    uint64_t taken;       /* the next segment to decode */
    uint64_t linked;      /* the next segment to link; atomic, as `stop` */
    uint64_t current;     /* the segment whose rows are returned */
    uint64_t output;      /* bytes */
    uint64_t used, spent; /* for segments decoded without history */
    uint64_t ratio;       /* as file_ratio, of recent segments */
    uint64_t chunk_bytes; /* output of a chunk that ends exactly, as well */
    gf_announcements announced;
    double busy, waited;
    uint32_t changes; /* written with the lock */
    uint32_t idle;    /* workers that wait */
    bool stop;        /* atomic: also read without the lock */
    bool polling;     /* a worker polls `changes` instead of waiting */
    bool caller_waits;
    bool caller_helps; /* constant: the caller takes steps */
    bool loading, loaded_all;
    bool linking, linked_all;
    bool needs_history; /* matches reach before segments that start exactly */
    /* Loading. */
    bool next_exact;
    uint64_t next_begin;
    /* Linking. */
    uint64_t position; /* next bit of the stream */
    uint64_t total;    /* bytes of output */
    gf_inflate *carried;
    gf_inflate_result damage;
    uint32_t trailer; /* Adler-32 in the stream */
    bool in_block;    /* `position` is within a block of *carried */
    /* The caller. */
    bool entered; /* the current output is being returned */
    uint32_t adler;
    uint64_t returned; /* rows */
    uint64_t next_row; /* of the current output */
    /* Unfiltering. */
    unsigned char *partial; /* a row that continues in the next output */
    size_t partial_bytes;
    unsigned char *above; /* the last row, each block after a gap for the pixel to its left */
    unsigned char window[WINDOW]; /* the last bytes of output */
};

/* ---- sizes ----------------------------------------------------------------------------------- */

static size_t size_target(const gf_png_image *image) {
    return image->segment != 0 ? image->segment : TARGET_BYTES;
}

/* Return the maximum output of a segment. */
static size_t size_out(const gf_png_image *image) {
    return 2 * size_target(image);
}

/* Return the bytes of the rows in the stream. */
static uint64_t size_image(const gf_png_image *image) {
    return image->height * (image->row_bytes + 1);
}

/* Return true if the image is probably stored. */
static bool size_is_stored(const gf_png_image *image) {
    return image->file_bytes >= size_image(image);
}

/* Return the limit of the time for decoding a segment without history, in output bytes. Few tries
 * that succeed take longer. awaited: it is the next segment to link. */
static uint64_t size_spent(const gf_png_image *image, bool awaited) {
    const uint64_t quarters = size_is_stored(image) ? 5 : awaited ? 8 : 12;
    return quarters * size_target(image) / 4 + MANY_BLOCKS * BLOCK_BYTES;
}

/* Return the minimum and maximum compressed bytes of a segment that ends anywhere. */
static size_t size_min(const gf_png_image *image) {
    return size_target(image) / 32;
}

static size_t size_max(const gf_png_image *image) {
    return size_target(image) + size_target(image) / 4;
}

/* A chunk that ends after the maximum is loaded, too. */
static size_t size_in(const gf_png_image *image) {
    return 2 * size_max(image) + AHEAD_BYTES;
}

static uint32_t size_slots(uint32_t threads) {
    return threads + (threads < UNFILTER_THREADS ? FEW_SLOTS : MORE_SLOTS);
}

/* Return the bytes before the output of a segment. */
static size_t size_head(const gf_png_image *image) {
    const size_t window = 2 * WINDOW, row = image->row_bytes + 1;
    return window > row ? window : row;
}

/* Return the bytes of the memory for the output: 16-bit elements, or bytes and rows. */
static size_t size_memory(const gf_png_image *image) {
    return size_head(image) + 2 * size_out(image) + image->row_bytes;
}

/* ---- segments -------------------------------------------------------------------------------- */

static segment *segment_at(const gf_png_parallel *parallel, uint64_t k) {
    return &parallel->segments[k % parallel->slots];
}

static uint64_t segment_end(const segment *s) {
    return s->begin + s->size;
}

static unsigned char *segment_out(const segment *s) {
    return s->memory + s->parallel->head;
}

/* Return the rows, reconstructed or filtered. */
static unsigned char *segment_rows(const segment *s, bool filtered) {
    return filtered ? segment_out(s) - s->carried : segment_out(s) + size_out(s->parallel->image);
}

/* ---- input ----------------------------------------------------------------------------------- */

/* Continue at a bit of the stream, which is in the input of `from`. */
static void segment_set_input(segment *s, const segment *from, uint64_t position) {
    s->source = from;
    gf_inflate_set_input(s->inflate, from->in + (position / 8 - from->begin), position % 8,
                         from->in + from->size + from->ahead - (from->final ? 0 : TRAILER_BYTES),
                         from->final);
}

static uint64_t segment_position(const segment *s) {
    unsigned bit;
    const unsigned char *at = gf_inflate_position(s->inflate, &bit);
    return 8 * (s->source->begin + (uint64_t)(at - s->source->in)) + bit;
}

/* Continue in the next segment. Return false if the input is the next segment already. */
static bool segment_next_input(segment *s) {
    if (s->source != s)
        return false;
    const gf_png_parallel *parallel = s->parallel;
    const size_t slot = (size_t)(s - parallel->segments);
    segment_set_input(s, &parallel->segments[(slot + 1) % parallel->slots], segment_position(s));
    return true;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Return the compressed bytes that are expected to give the target. */
static size_t load_target(const gf_png_parallel *parallel, uint64_t ratio) {
    const size_t min = size_min(parallel->image), max = size_max(parallel->image);
    const uint64_t largest = ratio > parallel->file_ratio ? ratio : parallel->file_ratio;
    const uint64_t bytes =
        (uint64_t)size_target(parallel->image) * 16 / (largest != 0 ? largest : 1);
    return bytes < min ? min : bytes > max ? max : (size_t)bytes;
}

/* Read the input of a segment and, behind it, the first bytes of the next one. A segment ends
 * after up to `group` chunks that end with an empty stored block, or after the target size if
 * there is no such chunk. */
static void load_input(gf_png_parallel *parallel, segment *s, const segment *before, size_t target,
                       uint64_t group) {
    gf_png_stream *stream = parallel->stream;
    gf_png_idat *idat = &stream->idat;
    const size_t min_sync = size_min(parallel->image) / 16 + 4; /* from such a block to the next */
    size_t size = 0, cut = 0, sync = 0;
    uint64_t chunks = 0;
    if (before) {
        size = before->ahead;
        memcpy(s->in, before->in + before->size, size);
    }
    s->begin = parallel->next_begin;
    s->exact = parallel->next_exact;
    while (!idat->ended && !stream->unread.status) {
        if (cut == 0 && size >= sync + target)
            cut = chunks != 0 ? sync : target;
        if (cut != 0 && size >= cut + AHEAD_BYTES)
            break;
        const size_t end = cut != 0 ? cut + AHEAD_BYTES : sync + target;
        const size_t part = idat->remaining < end - size ? idat->remaining : end - size;
        const bool to_end = part == idat->remaining;
        size_t got;
        (void)gf_png_idat_read(idat, s->in + size, part != 0 ? part : 1, &got, &stream->unread);
        size += got;
        if (cut != 0 || !to_end || got != part || size < sync + min_sync ||
            gf_big32(s->in + size - 4) != 0xffff)
            continue;
        sync = size;
        chunks++;
        if (chunks >= group || size + size / chunks > size_max(parallel->image))
            cut = size;
    }
    s->final = cut == 0 || size < cut + AHEAD_BYTES;
    s->size = s->final ? size : cut;
    s->ahead = size - s->size;
    parallel->next_begin += s->size;
    s->chunks = cut == sync ? chunks : 0;
    parallel->next_exact = s->chunks != 0;
}

/* ---- decoding without history ---------------------------------------------------------------- */

/* Return true if all segments before this one have been linked. */
static bool segment_is_awaited(const segment *s) {
    const uint64_t linked = __atomic_load_n(&s->parallel->linked, __ATOMIC_RELAXED);
    return segment_at(s->parallel, linked) == s;
}

/* Decode up to the first block that starts after the segment. limited: give up if it takes long. */
static gf_inflate_result segment_run(segment *s, gf_inflate_out *out, bool limited) {
    const unsigned char *const start = out->next;
    for (;;) {
        const gf_inflate_result result = gf_inflate_run(s->inflate, out);
        if (result == GF_INFLATE_NEEDS_INPUT && segment_next_input(s))
            continue;
        if (result || s->inflate->last || (!s->final && segment_position(s) >= 8 * segment_end(s)))
            return result;
        if (limited)
            s->spent += BLOCK_BYTES;
        const uint64_t spent = s->spent + ((uint64_t)(out->next - start) >> out->wide);
        if (__atomic_load_n(&s->parallel->stop, __ATOMIC_RELAXED) ||
            (limited && spent > size_spent(s->parallel->image, segment_is_awaited(s))))
            return GF_INFLATE_INVALID;
    }
}

static void segment_store_placeholders(segment *s) {
    uint64_t four = 0x0103010201010100;
    for (unsigned char *at = segment_out(s) - 2 * WINDOW; at != segment_out(s); at += sizeof four) {
        gf_put_little64(at, four);
        four += 0x0004000400040004;
    }
}

static bool segment_is_failed(gf_inflate_result result) {
    return result != GF_INFLATE_VALID && result != GF_INFLATE_NEEDS_OUTPUT &&
           result != GF_INFLATE_NEEDS_INPUT;
}

/* Decode from s->start on. Return false after an error. */
static bool segment_try(segment *s, bool wide) {
    unsigned char *const base = segment_out(s);
    gf_inflate_out out = {.next = base, .history = base, .wide = wide};
    out.end = base + (size_out(s->parallel->image) << wide);
    if (wide) {
        out.history = base - 2 * WINDOW;
        segment_store_placeholders(s);
    }
    gf_inflate_start(s->inflate, s->parallel->isa);
    segment_set_input(s, s, s->start.bit);
    s->result = segment_run(s, &out, true);
    s->wide = wide;
    s->count = (size_t)(out.next - base) >> wide;
    s->spent += s->count;
    return !segment_is_failed(s->result);
}

static bool segment_try_exact(segment *s, bool *needs_history) {
    s->start = (gf_inflate_start_point){.bit = 8 * s->begin};
    if (s->begin == 0 || !*needs_history) {
        if (segment_try(s, false))
            return true;
        if (s->result != GF_INFLATE_INVALID_DISTANCE || s->begin == 0)
            return false;
        *needs_history = true;
    }
    return segment_try(s, true);
}

static bool segment_try_found(segment *s) {
    uint64_t from = 0;
    gf_inflate_start_point found;
    for (int i = 0; i < ATTEMPTS && s->spent <= size_spent(s->parallel->image, false); i++) {
        /* A search takes twice as long as decoding: not worth it for less than half a segment. */
        const uint64_t end = 8 * (uint64_t)s->size / 2;
        const bool any =
            gf_inflate_find(&s->parallel->finder, s->in, s->size + s->ahead, from, end, &found);
        s->spent += ((any ? found.bit : end) - from) / 8 * SEARCHED_BYTES;
        if (!any)
            return false;
        from = found.bit + 1;
        s->start.bit = 8 * s->begin + found.bit;
        s->start.stored = found.stored != 0 ? s->begin + found.stored : 0;
        if (segment_try(s, true))
            return true;
    }
    return false;
}

/* ---- linking --------------------------------------------------------------------------------- */

/* Update the window. Store the table for the placeholders of wide output. */
static void link_window(gf_png_parallel *parallel, const segment *s) {
    unsigned char *const window = parallel->window, *const table = s->memory;
    const unsigned char *out = segment_out(s);
    const size_t count = s->count < WINDOW ? s->count : WINDOW, kept = WINDOW - count;
    if (s->wide) {
        for (int i = 0; i < 256; i++)
            table[i] = (unsigned char)i;
        memcpy(table + 256, window, WINDOW);
    }
    memmove(window, window + count, kept);
    if (s->wide)
        s->inflate->simd->resolve(window + kept, out + 2 * (s->count - count), count, table);
    else
        memcpy(window + kept, out + s->count - count, count);
}

/* Decode from the linker's position, which precedes the end of the segment or is within a block. */
static void link_decode(gf_png_parallel *parallel, segment *s, bool continued) {
    unsigned char *const base = segment_out(s);
    const size_t known = parallel->total < WINDOW ? (size_t)parallel->total : WINDOW;
    gf_inflate_out out = {
        .next = base, .end = base + size_out(parallel->image), .history = base - known};
    memcpy(base - WINDOW, parallel->window, WINDOW);
    if (!continued) {
        if (parallel->in_block)
            memcpy(s->inflate, parallel->carried, sizeof *s->inflate);
        else
            gf_inflate_start(s->inflate, parallel->isa);
        segment_set_input(s, s, parallel->position);
    }
    s->result = segment_run(s, &out, false);
    s->wide = false;
    s->count = (size_t)(out.next - base);
}

/* Return true if the start of the segment is the linker's position. */
static bool link_starts_here(const gf_png_parallel *parallel, const segment *s) {
    const uint64_t position = parallel->position;
    if (parallel->in_block || position == s->start.bit)
        return !parallel->in_block;
    if (s->start.stored == 0 || (position + 3 + 7) / 8 != s->start.stored ||
        position < 8 * s->begin)
        return false;
    return (gf_little16(s->in + (position / 8 - s->begin)) >> position % 8 & 7) == 0;
}

/* Read the checksum after the last block. */
static void link_trailer(gf_png_parallel *parallel, segment *s) {
    const uint64_t position = (segment_position(s) + 7) / 8;
    const segment *from = s->source;
    if (segment_end(from) + from->ahead < position + 4)
        parallel->damage = GF_INFLATE_TRUNCATED;
    else
        parallel->trailer = gf_big32(from->in + (position - from->begin));
}

/* Link a segment, or more of it. Return true if it was the last one. *found: the output existed. */
static bool link_segment(gf_png_parallel *parallel, segment *s, bool continued, bool *found) {
    s->offset = parallel->total;
    /* A placeholder could refer to bytes before the stream. */
    *found = !continued && s->decoded && link_starts_here(parallel, s) &&
             !(s->wide && parallel->total < WINDOW);
    if (!*found && !continued && !parallel->in_block && !s->final &&
        parallel->position >= 8 * segment_end(s)) {
        s->count = 0; /* a block of the previous segment contains this one */
        s->wide = false;
        s->complete = true;
        return false;
    }
    if (!*found)
        link_decode(parallel, s, continued);
    s->complete = s->result != GF_INFLATE_NEEDS_OUTPUT;
    parallel->position = segment_position(s);
    parallel->in_block = s->inflate->in_block;
    parallel->total += s->count;
    link_window(parallel, s);
    if (segment_is_failed(s->result)) {
        parallel->damage = s->result;
        return true;
    }
    if (s->complete && parallel->in_block)
        memcpy(parallel->carried, s->inflate, sizeof *parallel->carried);
    if (!s->complete || parallel->in_block || !s->inflate->last)
        return false;
    link_trailer(parallel, s);
    return true;
}

/* Update the statistics from which the size of segments and the use of searches follow. */
static void link_count(gf_png_parallel *parallel, const segment *s, bool found) {
    if (s->complete && s->count != 0) {
        parallel->ratio = (3 * parallel->ratio + 16 * s->count / s->size) / 4;
        if (s->chunks != 0)
            parallel->chunk_bytes = (3 * parallel->chunk_bytes + s->count / s->chunks) / 4;
    }
    parallel->spent += s->spent;
    parallel->output += s->count;
    if (found)
        parallel->used += s->spent;
}

/* Complete the output of a linked segment. */
static void link_finish(segment *s) {
    unsigned char *const out = segment_out(s);
    if (s->wide)
        s->inflate->simd->resolve(out, out, s->count, s->memory);
    s->adler = isal_adler32(1, out, s->count);
}

/* ---- unfiltering ----------------------------------------------------------------------------- */

/* Add the begin of the first row before the output, and keep the begin of a row that continues. */
static void unfilter_align(gf_png_parallel *parallel, segment *s) {
    const size_t row = parallel->image->row_bytes + 1, bytes = parallel->partial_bytes + s->count;
    s->carried = parallel->partial_bytes;
    const unsigned char *rows =
        memcpy(segment_rows(s, true), parallel->partial, parallel->partial_bytes);
    const uint64_t complete = bytes / row;
    for (s->rows = 0; s->rows < complete && rows[s->rows * row] < GF_PNG_FILTERS;)
        s->rows++;
    s->invalid = s->rows < complete;
    s->placed = s->placed < s->rows ? s->placed : s->rows;
    parallel->partial_bytes = bytes % row;
    memcpy(parallel->partial, rows + complete * row, parallel->partial_bytes);
}

/* Return the first byte of a block of columns. */
static size_t unfilter_column(const gf_png_parallel *parallel, uint32_t block) {
    const gf_png_image *image = parallel->image;
    return image->row_bytes / image->unit * block / parallel->blocks * image->unit;
}

/* Return the place of the row `*row` of a segment. Add the number of rows there to *row. i: the
 * destination of this row or one before it. */
static unsigned char *unfilter_find_rows(const gf_png_parallel *parallel, const segment *s,
                                         uint64_t i, uint64_t *row, size_t *stride) {
    const uint64_t y = s->first_row + *row;
    unsigned char *to = segment_rows(s, false) + *row * parallel->image->row_bytes;
    *stride = parallel->image->row_bytes;
    if (*row >= s->placed) {
        *row = s->rows;
        return to;
    }
    const gf_announced place = gf_announced_rows(&parallel->announced, i, y);
    const uint64_t left = place.end - y;
    *row += left < s->placed - *row ? left : s->placed - *row;
    *stride = place.stride;
    return place.to;
}

static void unfilter_block(gf_png_parallel *parallel, const segment *s, uint32_t block) {
    const gf_png_image *image = parallel->image;
    const size_t from = unfilter_column(parallel, block), to = unfilter_column(parallel, block + 1);
    /* The pixel to the left is part of the block: the step before has replaced its own copy. */
    const size_t left = block == 0 ? 0 : image->unit, row = image->row_bytes + 1;
    unsigned char *const last = parallel->above + (size_t)block * MAX_UNIT;
    const unsigned char *above = last;
    for (uint64_t i = 0, next = 0; i < s->rows; i = next) {
        size_t stride;
        unsigned char *out = unfilter_find_rows(parallel, s, s->destination, &next, &stride);
        parallel->simd->unfilter_rows(out, stride, segment_rows(s, true) + i * row, row, above,
                                      from, to, image->unit, next - i);
        above = out + (size_t)(next - i - 1) * stride;
    }
    if (above != last)
        memcpy(last + from - left, above + from - left, to - from + left);
}

/* ---- scheduling ------------------------------------------------------------------------------ */

/* These functions are called with the lock held. */

typedef enum step { STEP_NONE, STEP_UNFILTER, STEP_LINK, STEP_LOAD, STEP_DECODE } step;

/* Decoding without history may be in vain. Limit the time spent on it, relative to its use. */
static bool schedule_may_try(const gf_png_parallel *parallel) {
    const uint64_t wasted = parallel->spent > parallel->used ? parallel->spent - parallel->used : 0;
    return wasted <= parallel->allowance + parallel->used / 2 + parallel->output / 16;
}

static bool schedule_may_search(const gf_png_parallel *parallel) {
    return parallel->ratio > 16 && parallel->ratio <= 16 * MAX_RATIO && schedule_may_try(parallel);
}

/* The end of a segment may be decoded only if the next one is loaded: its last block continues
 * there. */
static bool schedule_can_decode(const gf_png_parallel *parallel, uint64_t k) {
    return k + (parallel->loaded_all ? 0 : 1) < parallel->loaded;
}

/* Return true unless the destination of rows will be announced: they would be copied. */
static bool schedule_has_place(const gf_png_parallel *parallel, const segment *s) {
    const gf_announced *last = gf_announced_last(&parallel->announced);
    return !last || s->blocks != 0 ||
           (s->offset + s->count) / (parallel->image->row_bytes + 1) <= last->end;
}

/* Return a segment whose next block of columns can be unfiltered, or NULL: if possible, with the
 * same block as the calling thread's last one. Each block then has its thread, and need not wait
 * for another one to wake. A row needs this block of the row above, and the block to the left,
 * whose last pixel and the one above are read. */
static segment *schedule_find_block(const gf_png_parallel *parallel, uint32_t block) {
    const segment *before = NULL;
    segment *first = NULL;
    for (uint64_t k = parallel->current; k < parallel->loaded; k++) {
        segment *s = segment_at(parallel, k);
        if (s->state == SEGMENT_LINKED && !s->unfiltering &&
            (before ? before->blocks > s->blocks && schedule_has_place(parallel, s) : true)) {
            if (s->blocks == block)
                return s;
            first = first ? first : s;
        }
        if (s->state != SEGMENT_LINKED && s->state != SEGMENT_READY)
            break;
        before = s;
    }
    return first;
}

/* Return true if the next segment can be linked. One that does not start exactly is not decoded
 * before if it can be linked at once: with its history, decoding takes less time. */
static bool schedule_can_link(const gf_png_parallel *parallel) {
    const uint64_t k = parallel->linked;
    const segment *s = segment_at(parallel, k);
    if (parallel->linking || parallel->linked_all || k >= parallel->loaded)
        return false;
    return s->state == SEGMENT_DECODED || s->state == SEGMENT_CONTINUED ||
           (s->state == SEGMENT_LOADED && schedule_can_decode(parallel, k) &&
            (!s->exact || parallel->needs_history || !schedule_may_try(parallel)));
}

/* Find the next step and its segment. block: the last one that the thread unfiltered. */
static step schedule_find(const gf_png_parallel *parallel, uint32_t block, segment **s) {
    *s = schedule_find_block(parallel, block);
    if (*s)
        return STEP_UNFILTER;
    *s = segment_at(parallel, parallel->linked);
    if (schedule_can_link(parallel))
        return STEP_LINK;
    *s = segment_at(parallel, parallel->loaded);
    if (!parallel->loading && !parallel->loaded_all &&
        parallel->loaded - parallel->current < parallel->slots)
        return STEP_LOAD;
    *s = segment_at(parallel, parallel->taken);
    if (schedule_can_decode(parallel, parallel->taken) &&
        ((*s)->exact ? schedule_may_try(parallel) : schedule_may_search(parallel)))
        return STEP_DECODE;
    return STEP_NONE;
}

/* Choose the rows to reconstruct at their destination. */
static void schedule_place_rows(const gf_png_parallel *parallel, segment *s) {
    const gf_announcements *all = &parallel->announced;
    s->first_row = s->offset / (parallel->image->row_bytes + 1);
    s->destination = gf_announced_find(all, all->released, s->first_row);
    s->placed = s->destination == all->count ? 0 : gf_announced_last(all)->end - s->first_row;
}

/* Wake a thread if there is a step for it. Threads that are woken in vain delay the others. */
static void schedule_wake(gf_png_parallel *parallel) {
    segment *s;
    if (parallel->polling)
        __atomic_store_n(&parallel->changes, parallel->changes + 1, __ATOMIC_RELAXED);
    else if ((parallel->idle != 0 || (parallel->caller_waits && parallel->caller_helps)) &&
             schedule_find(parallel, 0, &s))
        pthread_cond_signal(parallel->idle != 0 ? &parallel->changed : &parallel->ready);
}

/* Note that a block of a linked segment can be unfiltered, or its rows be returned. */
static void schedule_set_linked(gf_png_parallel *parallel, segment *s, uint32_t blocks) {
    s->blocks = blocks;
    s->state = blocks == parallel->blocks ? SEGMENT_READY : SEGMENT_LINKED;
    if (s->state == SEGMENT_READY && parallel->caller_waits &&
        s == segment_at(parallel, parallel->current))
        pthread_cond_signal(&parallel->ready);
}

/* The following steps release the lock while they work. */

static void step_unfilter(gf_png_parallel *parallel, segment *s) {
    s->unfiltering = true;
    if (s->blocks == 0)
        schedule_place_rows(parallel, s);
    schedule_wake(parallel);
    pthread_mutex_unlock(&parallel->lock);
    if (s->blocks == 0)
        unfilter_align(parallel, s);
    unfilter_block(parallel, s, s->blocks);
    pthread_mutex_lock(&parallel->lock);
    s->unfiltering = false;
    schedule_set_linked(parallel, s, s->blocks + 1);
}

static void step_link(gf_png_parallel *parallel, segment *s) {
    const bool continued = s->state == SEGMENT_CONTINUED;
    bool found;
    if (s->state == SEGMENT_LOADED) {
        parallel->taken++;
        s->decoded = false;
        s->spent = 0;
    }
    parallel->linking = true;
    s->state = SEGMENT_BUSY;
    schedule_wake(parallel);
    pthread_mutex_unlock(&parallel->lock);
    const bool last = link_segment(parallel, s, continued, &found);
    pthread_mutex_lock(&parallel->lock);
    if (!continued)
        link_count(parallel, s, found);
    parallel->linking = false;
    parallel->linked_all = last;
    __atomic_store_n(&parallel->linked, parallel->linked + s->complete, __ATOMIC_RELAXED);
    schedule_wake(parallel);
    pthread_mutex_unlock(&parallel->lock);
    link_finish(s);
    pthread_mutex_lock(&parallel->lock);
    schedule_set_linked(parallel, s, 0);
}

static void step_load(gf_png_parallel *parallel, segment *s) {
    const size_t target = load_target(parallel, parallel->ratio);
    const uint64_t group = size_target(parallel->image) / (parallel->chunk_bytes + 1);
    const segment *before =
        parallel->loaded != 0 ? segment_at(parallel, parallel->loaded - 1) : NULL;
    parallel->loading = true;
    schedule_wake(parallel);
    pthread_mutex_unlock(&parallel->lock);
    load_input(parallel, s, before, target, group);
    pthread_mutex_lock(&parallel->lock);
    s->state = SEGMENT_LOADED;
    parallel->loading = false;
    parallel->loaded_all = s->final;
    parallel->loaded++;
}

static void step_decode(gf_png_parallel *parallel, segment *s) {
    const bool search = schedule_may_search(parallel);
    bool needs_history = parallel->needs_history;
    parallel->taken++;
    s->state = SEGMENT_BUSY;
    schedule_wake(parallel);
    pthread_mutex_unlock(&parallel->lock);
    s->spent = 0;
    s->decoded =
        (s->exact && segment_try_exact(s, &needs_history)) || (search && segment_try_found(s));
    pthread_mutex_lock(&parallel->lock);
    parallel->needs_history |= needs_history;
    if (!s->decoded) { /* count it now: by the time it is linked, many more may have been tried */
        parallel->spent += s->spent;
        s->spent = 0;
    }
    s->state = SEGMENT_DECODED;
}

/* Take a step. Return false if there is none. *block: the last one that the thread unfiltered. */
static bool schedule_step(gf_png_parallel *parallel, uint32_t *block) {
    static void (*const take[])(gf_png_parallel *, segment *) = {[STEP_UNFILTER] = step_unfilter,
                                                                 [STEP_LINK] = step_link,
                                                                 [STEP_LOAD] = step_load,
                                                                 [STEP_DECODE] = step_decode};
    segment *s;
    const step next = schedule_find(parallel, *block, &s);
    if (next == STEP_NONE)
        return false;
    *block = next == STEP_UNFILTER ? s->blocks : *block;
    take[next](parallel, s);
    return true;
}

/* Poll for a step. Return false if there has been none for a while. */
static bool schedule_poll(gf_png_parallel *parallel) {
    const double start = gf_now();
    const uint32_t seen = parallel->changes;
    bool changed = false;
    parallel->polling = true;
    pthread_mutex_unlock(&parallel->lock);
    while (!changed && gf_now() - start < POLL_SECONDS)
        changed = __atomic_load_n(&parallel->changes, __ATOMIC_RELAXED) != seen;
    pthread_mutex_lock(&parallel->lock);
    parallel->polling = false;
    return changed;
}

static void *schedule_run(void *context) {
    gf_png_parallel *parallel = context;
    bool poll = parallel->blocks != 0;
    uint32_t block = 0;
    pthread_mutex_lock(&parallel->lock);
    while (!parallel->stop) {
        const double start = gf_now();
        if (schedule_step(parallel, &block)) {
            parallel->busy += gf_now() - start;
            poll = parallel->blocks != 0;
        } else if (poll && !parallel->polling) {
            poll = schedule_poll(parallel);
        } else {
            parallel->idle++;
            pthread_cond_wait(&parallel->changed, &parallel->lock);
            parallel->idle--;
        }
    }
    pthread_mutex_unlock(&parallel->lock);
    return NULL;
}

void gf_png_parallel_stop(gf_png_parallel *parallel) {
    pthread_mutex_lock(&parallel->lock);
    __atomic_store_n(&parallel->stop, true, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&parallel->changed);
    pthread_mutex_unlock(&parallel->lock);
    for (; parallel->threads != 0; parallel->threads--)
        pthread_join(parallel->workers[parallel->threads - 1], NULL);
}

double gf_png_parallel_busy(const gf_png_parallel *parallel) {
    return parallel->busy - parallel->waited;
}

uint64_t gf_png_parallel_accepted(const gf_png_parallel *parallel) {
    return parallel->used;
}

/* ---- rows ------------------------------------------------------------------------------------ */

void gf_png_parallel_announce(gf_png_parallel *parallel, unsigned char *to, size_t stride,
                              uint64_t rows) {
    pthread_mutex_lock(&parallel->lock);
    gf_announced_add(&parallel->announced, parallel->returned, to, stride, rows);
    schedule_wake(parallel);
    pthread_mutex_unlock(&parallel->lock);
}

/* Wait, or take steps, until the current segment has output. Return false at the end of the
 * stream. */
static bool rows_await(gf_png_parallel *parallel) {
    gf_png_stream *stream = parallel->stream;
    uint32_t block = 0;
    pthread_mutex_lock(&parallel->lock);
    gf_announced_release(&parallel->announced, parallel->returned);
    const uint64_t k = parallel->current;
    segment *s = segment_at(parallel, k);
    while (!(k < parallel->loaded && s->state == SEGMENT_READY) &&
           !(parallel->linked_all && k >= parallel->linked))
        if (!parallel->caller_helps || !schedule_step(parallel, &block)) {
            const double start = gf_now();
            parallel->caller_waits = true;
            pthread_cond_wait(&parallel->ready, &parallel->lock);
            parallel->caller_waits = false;
            parallel->waited += gf_now() - start;
        }
    const bool ready = k < parallel->loaded && s->state == SEGMENT_READY;
    schedule_wake(parallel);
    pthread_mutex_unlock(&parallel->lock);
    if (ready && !parallel->entered) {
        parallel->entered = true;
        parallel->next_row = 0;
        if (parallel->blocks == 0)
            unfilter_align(parallel, s);
    }
    if (ready)
        return true;
    stream->damage = parallel->damage;
    if (!stream->damage && parallel->adler != parallel->trailer)
        stream->damage = GF_INFLATE_INVALID_CHECKSUM;
    stream->ended = !stream->damage;
    return false;
}

/* Release the current segment, or let more of it be decoded. */
static void rows_advance(gf_png_parallel *parallel) {
    segment *s = segment_at(parallel, parallel->current);
    parallel->adler = (uint32_t)adler32_combine(parallel->adler, s->adler, (z_off_t)s->count);
    parallel->entered = false;
    pthread_mutex_lock(&parallel->lock);
    if (s->complete)
        parallel->current++;
    else
        s->state = SEGMENT_CONTINUED;
    schedule_wake(parallel);
    pthread_mutex_unlock(&parallel->lock);
}

void gf_png_parallel_rows(gf_png_parallel *parallel, uint64_t max, gf_png_rows *rows) {
    const size_t row = parallel->image->row_bytes + 1;
    rows->count = 0;
    while (rows_await(parallel)) {
        const segment *s = segment_at(parallel, parallel->current);
        uint64_t next = parallel->next_row;
        rows->filtered = parallel->blocks == 0 || next == s->rows;
        if (next == s->rows && !s->invalid) {
            rows_advance(parallel);
            continue;
        }
        if (rows->filtered) {
            rows->first = segment_rows(s, true) + next * row;
            rows->stride = row;
            next = next == s->rows ? next + 1 : s->rows;
        } else {
            rows->first =
                unfilter_find_rows(parallel, s, parallel->announced.released, &next, &rows->stride);
        }
        rows->count = next - parallel->next_row < max ? next - parallel->next_row : max;
        parallel->next_row += rows->count;
        parallel->returned += rows->count;
        return;
    }
}

size_t gf_png_parallel_skip(gf_png_parallel *parallel, size_t max) {
    const size_t row = parallel->image->row_bytes + 1;
    size_t skipped = 0;
    for (bool first = true; skipped <= max && rows_await(parallel); first = false) {
        const segment *s = segment_at(parallel, parallel->current);
        if (first)
            skipped = s->carried - (size_t)parallel->next_row * row;
        skipped += s->count;
        rows_advance(parallel);
    }
    return skipped;
}

/* ---- opening and closing --------------------------------------------------------------------- */

uint32_t gf_png_parallel_threads(const gf_png_image *image, uint64_t *memory) {
    const uint64_t slot = size_memory(image) + size_in(image) + IN_PADDING + sizeof(gf_inflate);
    const uint64_t slots = image->max_memory / slot;
    const uint64_t by_size = size_image(image) / size_target(image);
    const uint64_t most = image->file_bytes / size_min(image);
    const uint64_t segments = image->file_bytes != 0 && most < by_size ? most : by_size;
    const uint64_t limit = size_is_stored(image) ? STORED_THREADS : MAX_THREADS;
    uint64_t threads = image->row_bytes > MAX_ROW_BYTES ? 1
                       : image->threads < limit         ? image->threads
                                                        : limit;
    threads = threads < segments / MIN_SEGMENTS ? threads : segments / MIN_SEGMENTS;
    while (threads > 1 && size_slots((uint32_t)threads) > slots)
        threads--;
    *memory = threads > 1 ? size_slots((uint32_t)threads) * slot : 0;
    return threads > 1 ? (uint32_t)threads : 1;
}

static bool parallel_allocate(gf_png_parallel *parallel, uint32_t threads) {
    parallel->segments = calloc(parallel->slots, sizeof *parallel->segments);
    parallel->workers = calloc(threads, sizeof *parallel->workers);
    parallel->partial = malloc(parallel->image->row_bytes + 1);
    parallel->above = calloc(1, parallel->image->row_bytes + MAX_BLOCKS * MAX_UNIT);
    parallel->carried = malloc(sizeof *parallel->carried);
    if (!parallel->segments || !parallel->workers || !parallel->partial || !parallel->above ||
        !parallel->carried)
        return false;
    for (uint32_t i = 0; i < parallel->slots; i++) {
        segment *s = &parallel->segments[i];
        s->parallel = parallel;
        s->in = malloc(size_in(parallel->image) + IN_PADDING);
        s->memory = malloc(size_memory(parallel->image));
        s->inflate = malloc(sizeof *s->inflate);
        if (!s->in || !s->memory || !s->inflate)
            return false;
    }
    return true;
}

/* Return the number of blocks of columns. */
static uint32_t parallel_count_blocks(const gf_png_image *image, uint32_t threads) {
    const size_t blocks = image->row_bytes / MIN_BLOCK_BYTES;
    if (threads < UNFILTER_THREADS)
        return 0;
    return blocks < 1 ? 1 : blocks < MAX_BLOCKS ? (uint32_t)blocks : MAX_BLOCKS;
}

gf_png_parallel *gf_png_parallel_open(gf_png_stream *stream, const gf_png_image *image) {
    const uint32_t threads = image->threads;
    const uint64_t bytes = size_image(image), row = image->row_bytes + 1;
    gf_png_parallel *parallel = calloc(1, sizeof *parallel);
    if (!parallel)
        return NULL;
    parallel->stream = stream;
    parallel->image = image;
    parallel->isa = gf_isa_best();
    parallel->simd = gf_png_simd_of(parallel->isa);
    parallel->slots = size_slots(threads);
    /* A chunk of our encoder has whole rows. */
    parallel->chunk_bytes =
        image->row_bytes < GF_PNG_STRIP_BYTES ? GF_PNG_STRIP_BYTES / row * row : row;
    parallel->blocks = parallel_count_blocks(image, threads);
    parallel->head = size_head(image);
    const bool compressed = image->file_bytes != 0 && !size_is_stored(image);
    parallel->allowance = bytes / (compressed ? PART : STORED_PART);
    if (parallel->allowance > ALLOWANCE_BYTES)
        parallel->allowance = ALLOWANCE_BYTES;
    parallel->next_exact = true;
    parallel->adler = 1;
    gf_inflate_finder_init(&parallel->finder);
    if (image->file_bytes != 0)
        parallel->file_ratio = 16 * bytes / image->file_bytes;
    parallel->ratio = parallel->file_ratio != 0 ? parallel->file_ratio : 2 * 16;
    pthread_mutex_init(&parallel->lock, NULL);
    pthread_cond_init(&parallel->changed, NULL);
    pthread_cond_init(&parallel->ready, NULL);
    if (!parallel_allocate(parallel, threads)) {
        gf_png_parallel_close(parallel);
        return NULL;
    }
    parallel->caller_helps = parallel->blocks == 0;
    const uint32_t workers = threads - (parallel->caller_helps ? 1 : 0);
    while (parallel->threads < workers &&
           gf_thread_start(&parallel->workers[parallel->threads], schedule_run, parallel) == 0)
        parallel->threads++;
    if (parallel->threads == 0) /* the caller decodes alone */
        parallel->caller_helps = true;
    return parallel;
}

void gf_png_parallel_close(gf_png_parallel *parallel) {
    if (!parallel)
        return;
    gf_png_parallel_stop(parallel);
    for (uint32_t i = 0; parallel->segments && i < parallel->slots; i++) {
        free(parallel->segments[i].in);
        free(parallel->segments[i].memory);
        free(parallel->segments[i].inflate);
    }
    pthread_cond_destroy(&parallel->ready);
    pthread_cond_destroy(&parallel->changed);
    pthread_mutex_destroy(&parallel->lock);
    free(parallel->segments);
    free(parallel->workers);
    free(parallel->carried);
    free(parallel->partial);
    free(parallel->above);
    free(parallel);
}
