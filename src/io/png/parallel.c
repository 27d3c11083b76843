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
 * more, it only returns rows: during a step, it would let others wait for memory.
 *
 * If two processors also compute and encode the image, one worker that decodes with history is fast
 * enough: nothing is searched, and the caller leaves such segments to it, to return rows soon. */
#include "io/png/inflate.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/checksum.h"
#include "core/machine.h"
#include "core/thread.h"
#include "io/bytes.h"
#include "io/stream/announced.h"
#include "io/strip/row_filter.h"

enum {
    WINDOW = GF_DEFLATE_WINDOW,
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
    /* Output bytes that take as long as searching a byte, and as the tables of a block. */
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

/* An idle thread polls first: waking it takes 10 us, more in virtual machines, and a step 30 us. */
#define POLL_SECONDS 5e-5

/* Sizes that follow from the image, in bytes. */
typedef struct sizes {
    size_t row;      /* filtered */
    uint64_t image;  /* all rows */
    bool stored;     /* probably not compressed */
    size_t target;   /* expected output of a segment */
    size_t out;      /* its maximum */
    size_t min, max; /* compressed bytes of a segment that ends anywhere */
    size_t in;       /* memory for them: a chunk that ends after the maximum is loaded, too */
    size_t head;     /* before the output of a segment */
    size_t memory;   /* for the output: 16-bit elements, or bytes and rows */
} sizes;

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
    unsigned char *in; /* size.in bytes */
    /* Output, after size.head bytes, and rows, after size.out bytes more. The bytes before the
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
    bool complete;   /* false: more output follows */
    uint64_t offset; /* of the output in the image data */
    uint32_t adler;
    /* Set before the first block is unfiltered. */
    size_t carried;       /* bytes of the first row from previous output, before the output */
    uint64_t rows;        /* complete rows with a valid filter type */
    bool invalid;         /* the next row has an invalid one */
    uint64_t first_row;   /* in the image */
    uint64_t placed;      /* first rows that are reconstructed at their destination */
    uint64_t destination; /* of the first of them */
} segment;

struct gf_png_parallel {
    gf_png_stream *stream; /* `damage` is set by the linker; busy and accepted: with the lock */
    const gf_png_image *image;
    sizes size;
    const gf_png_simd *simd;
    gf_inflate_finder finder;
    bool shared;         /* two processors that also compute and encode */
    uint64_t allowance;  /* output bytes that may be decoded in vain */
    uint64_t file_ratio; /* output bytes per compressed byte, times 16; 0: unknown */
    segment *segments;
    pthread_t *workers; /* the other threads */
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
    uint64_t spent;       /* for segments decoded without history; accepted: stream->accepted */
    uint64_t ratio;       /* as file_ratio, of recent segments */
    uint64_t chunk_bytes; /* output of a chunk that ends exactly, as well */
    gf_announcements announced;
    uint32_t changes; /* written with the lock */
    uint32_t idle;    /* workers that wait */
    bool stop;        /* atomic: also read without the lock */
    bool polling;     /* a worker polls `changes` instead of waiting */
    bool caller_waits;
    bool caller_helps; /* constant: the caller takes steps */
    bool loading, loaded_all;
    bool linking, linked_all;
    bool needs_history; /* matches reach before segments that start exactly */
    /* Linking. */
    uint64_t position; /* next bit of the stream */
    uint64_t total;    /* bytes of output */
    gf_inflate *carried;
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

static sizes sizes_of(const gf_png_image *image) {
    const size_t row = image->row_bytes + 1;
    const size_t target = image->segment != 0 ? image->segment : TARGET_BYTES;
    sizes size = {.row = row,
                  .image = image->height * row,
                  .target = target,
                  .out = 2 * target,
                  .min = target / 32,
                  .max = target + target / 4,
                  .head = row > 2 * WINDOW ? row : 2 * WINDOW};
    size.stored = image->file_bytes >= size.image;
    size.in = 2 * size.max + AHEAD_BYTES + IN_PADDING;
    size.memory = size.head + 2 * size.out + image->row_bytes;
    return size;
}

static uint32_t slots_of(uint32_t threads) {
    return threads + (threads < UNFILTER_THREADS ? FEW_SLOTS : MORE_SLOTS);
}

/* ---- segments -------------------------------------------------------------------------------- */

static segment *segment_at(const gf_png_parallel *p, uint64_t k) {
    return &p->segments[k % p->slots];
}

static unsigned char *segment_out(const segment *s) {
    return s->memory + s->parallel->size.head;
}

/* Return the rows, reconstructed or filtered. */
static unsigned char *segment_rows(const segment *s, bool filtered) {
    return filtered ? segment_out(s) - s->carried : segment_out(s) + s->parallel->size.out;
}

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

/* ---- decoding without history ---------------------------------------------------------------- */

/* Return the limit of the time for finding and decoding a segment, in output bytes. Few tries that
 * succeed take longer. It is lower if all segments before this one have been linked. */
static uint64_t segment_limit(const segment *s) {
    const gf_png_parallel *p = s->parallel;
    const bool awaited = segment_at(p, __atomic_load_n(&p->linked, __ATOMIC_RELAXED)) == s;
    const uint64_t quarters = p->size.stored ? 5 : awaited ? 8 : 12;
    return quarters * p->size.target / 4 + MANY_BLOCKS * BLOCK_BYTES;
}

/* Decode up to the first block that starts after the segment. limited: give up if it takes long. */
static gf_inflate_result segment_run(segment *s, gf_inflate_out *out, bool limited) {
    const gf_png_parallel *p = s->parallel;
    const unsigned char *const start = out->next;
    for (;;) {
        const gf_inflate_result result = gf_inflate_run(s->inflate, out);
        if (result == GF_INFLATE_NEEDS_INPUT && s->source == s) {
            const size_t next = (size_t)(s - p->segments) + 1;
            segment_set_input(s, segment_at(p, next), segment_position(s));
            continue;
        }
        if (result || s->inflate->last ||
            (!s->final && segment_position(s) >= 8 * (s->begin + s->size)))
            return result;
        if (limited)
            s->spent += BLOCK_BYTES;
        const uint64_t spent = s->spent + ((uint64_t)(out->next - start) >> out->wide);
        if (__atomic_load_n(&p->stop, __ATOMIC_RELAXED) || (limited && spent > segment_limit(s)))
            return GF_INFLATE_INVALID;
    }
}

/* Decode from s->start on. Return false after an error. */
static bool segment_try(segment *s, bool wide) {
    unsigned char *const base = segment_out(s), *const history = base - 2 * WINDOW;
    gf_inflate_out out = {.next = base,
                          .end = base + (s->parallel->size.out << wide),
                          .history = wide ? history : base,
                          .wide = wide};
    uint64_t four = 0x0103010201010100; /* placeholders */
    for (unsigned char *at = history; wide && at != base; at += sizeof four) {
        gf_put_little64(at, four);
        four += 0x0004000400040004;
    }
    gf_inflate_start(s->inflate, gf_isa_best());
    segment_set_input(s, s, s->start.bit);
    s->result = segment_run(s, &out, true);
    s->wide = wide;
    s->count = (size_t)(out.next - base) >> wide;
    s->spent += s->count;
    return !gf_inflate_is_failed(s->result);
}

static bool segment_try_found(segment *s) {
    uint64_t from = 0;
    gf_inflate_start_point found;
    for (int i = 0; i < ATTEMPTS && s->spent <= segment_limit(s); i++) {
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

/* Return true if the start of the segment is the linker's position. */
static bool link_starts_here(const gf_png_parallel *p, const segment *s) {
    const uint64_t position = p->position;
    if (p->in_block || position == s->start.bit)
        return !p->in_block;
    return s->start.stored != 0 && (position + 3 + 7) / 8 == s->start.stored &&
           position >= 8 * s->begin &&
           (gf_little16(s->in + (position / 8 - s->begin)) >> position % 8 & 7) == 0;
}

/* Update the window. Store the table for the placeholders of wide output. */
static void link_window(gf_png_parallel *p, const segment *s) {
    unsigned char *const window = p->window, *const table = s->memory;
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

/* Link a segment, or more of it. Return true if it was the last one. *found: the output existed. */
static bool link_segment(gf_png_parallel *p, segment *s, bool continued, bool *found) {
    unsigned char *const base = segment_out(s);
    const size_t known = p->total < WINDOW ? (size_t)p->total : WINDOW;
    s->offset = p->total;
    /* A placeholder could refer to bytes before the stream. */
    *found = !continued && s->decoded && link_starts_here(p, s) && !(s->wide && known < WINDOW);
    if (!*found && !continued && !p->in_block && !s->final &&
        p->position >= 8 * (s->begin + s->size)) {
        s->count = 0; /* a block of the previous segment contains this one */
        s->wide = false;
        s->complete = true;
        return false;
    }
    if (!*found) { /* decode from the linker's position */
        gf_inflate_out out = {.next = base, .end = base + p->size.out, .history = base - known};
        memcpy(base - WINDOW, p->window, WINDOW);
        if (!continued && p->in_block)
            memcpy(s->inflate, p->carried, sizeof *s->inflate);
        else if (!continued)
            gf_inflate_start(s->inflate, gf_isa_best());
        if (!continued)
            segment_set_input(s, s, p->position);
        s->result = segment_run(s, &out, false);
        s->wide = false;
        s->count = (size_t)(out.next - base);
    }
    s->complete = s->result != GF_INFLATE_NEEDS_OUTPUT;
    p->position = segment_position(s);
    p->in_block = s->inflate->in_block;
    p->total += s->count;
    link_window(p, s);
    if (gf_inflate_is_failed(s->result)) {
        p->stream->damage = s->result;
        return true;
    }
    if (s->complete && p->in_block)
        memcpy(p->carried, s->inflate, sizeof *p->carried);
    if (!s->complete || p->in_block || !s->inflate->last)
        return false;
    /* The checksum follows the last block. */
    const segment *from = s->source;
    const uint64_t at = (p->position + 7) / 8 - from->begin;
    if (from->size + from->ahead < at + 4)
        p->stream->damage = GF_INFLATE_TRUNCATED;
    else
        p->trailer = gf_big32(from->in + at);
    return true;
}

/* ---- unfiltering ----------------------------------------------------------------------------- */

/* Add the begin of the first row before the output, and keep the begin of a row that continues. */
static void unfilter_align(gf_png_parallel *p, segment *s) {
    const size_t row = p->size.row, bytes = p->partial_bytes + s->count;
    s->carried = p->partial_bytes;
    const unsigned char *rows = memcpy(segment_rows(s, true), p->partial, p->partial_bytes);
    const uint64_t complete = bytes / row;
    for (s->rows = 0; s->rows < complete && rows[s->rows * row] < GF_PNG_FILTERS;)
        s->rows++;
    s->invalid = s->rows < complete;
    s->placed = s->placed < s->rows ? s->placed : s->rows;
    p->partial_bytes = bytes % row;
    memcpy(p->partial, rows + complete * row, p->partial_bytes);
}

static size_t unfilter_column(const gf_png_parallel *p, uint32_t block) {
    return p->image->row_bytes / p->image->unit * block / p->blocks * p->image->unit;
}

/* Return the place of the row `*row` of a segment. Add the number of rows there to *row. i: the
 * destination of this row or one before it. */
static unsigned char *unfilter_find_rows(const gf_png_parallel *p, const segment *s, uint64_t i,
                                         uint64_t *row, size_t *stride) {
    const uint64_t y = s->first_row + *row;
    unsigned char *to = segment_rows(s, false) + *row * p->image->row_bytes;
    *stride = p->image->row_bytes;
    if (*row >= s->placed) {
        *row = s->rows;
        return to;
    }
    const gf_announced place = gf_announced_rows(&p->announced, i, y);
    const uint64_t left = place.end - y;
    *row += left < s->placed - *row ? left : s->placed - *row;
    *stride = place.stride;
    return place.to;
}

static void unfilter_block(gf_png_parallel *p, const segment *s, uint32_t block) {
    const size_t unit = p->image->unit, row = p->size.row;
    const size_t from = unfilter_column(p, block), to = unfilter_column(p, block + 1);
    /* The pixel to the left is part of the block: the step before has replaced its own copy. */
    const size_t left = block == 0 ? 0 : unit;
    unsigned char *const last = p->above + (size_t)block * MAX_UNIT;
    const unsigned char *above = last;
    for (uint64_t i = 0, next = 0; i < s->rows; i = next) {
        size_t stride;
        unsigned char *out = unfilter_find_rows(p, s, s->destination, &next, &stride);
        p->simd->unfilter_rows(out, stride, segment_rows(s, true) + i * row, row, above, from, to,
                               p->image->unit, next - i);
        above = out + (size_t)(next - i - 1) * stride;
    }
    if (above != last)
        memcpy(last + from - left, above + from - left, to - from + left);
}

/* ---- scheduling ------------------------------------------------------------------------------ */

/* These functions are called with the lock held. Steps release it while they work. */

typedef void step(gf_png_parallel *p, segment *s);
static step step_unfilter, step_link, step_load, step_decode;

/* Decoding without history may be in vain. Limit the time spent on it, relative to its use. */
static bool schedule_may_try(const gf_png_parallel *p) {
    const uint64_t used = p->stream->accepted, wasted = p->spent > used ? p->spent - used : 0;
    return wasted <= p->allowance + used / 2 + p->output / 16;
}

static bool schedule_may_search(const gf_png_parallel *p) {
    return !p->shared && p->ratio > 16 && p->ratio <= 16 * MAX_RATIO && schedule_may_try(p);
}

/* A segment may be decoded only if the next one is loaded: its last block continues there. */
static bool schedule_can_decode(const gf_png_parallel *p, uint64_t k) {
    return k + (p->loaded_all ? 0 : 1) < p->loaded;
}

/* Return true unless the destination of rows will be announced: they would be copied. */
static bool schedule_has_place(const gf_png_parallel *p, const segment *s) {
    const gf_announced *last = gf_announced_last(&p->announced);
    return !last || s->blocks != 0 || (s->offset + s->count) / p->size.row <= last->end;
}

/* Return a segment whose next block of columns can be unfiltered, or NULL: if possible, with the
 * same block as the calling thread's last one. Each block then has its thread, and need not wait
 * for another one to wake. A row needs this block of the row above, and the block to the left,
 * whose last pixel and the one above are read. */
static segment *schedule_find_block(const gf_png_parallel *p, uint32_t block) {
    const segment *before = NULL;
    segment *first = NULL;
    for (uint64_t k = p->current; k < p->loaded; k++) {
        segment *s = segment_at(p, k);
        if (s->state == SEGMENT_LINKED && !s->unfiltering &&
            (!before || (before->blocks > s->blocks && schedule_has_place(p, s)))) {
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
static bool schedule_can_link(const gf_png_parallel *p) {
    const segment *s = segment_at(p, p->linked);
    if (p->linking || p->linked_all || p->linked >= p->loaded)
        return false;
    return s->state == SEGMENT_DECODED || s->state == SEGMENT_CONTINUED ||
           (s->state == SEGMENT_LOADED && schedule_can_decode(p, p->linked) &&
            (!s->exact || p->needs_history || !schedule_may_try(p)));
}

/* Return the next step of a worker or the caller, or NULL, and its segment. block: that the thread
 * unfiltered last. */
static step *schedule_find(const gf_png_parallel *p, bool worker, uint32_t block, segment **s) {
    *s = schedule_find_block(p, block);
    if (*s)
        return step_unfilter;
    *s = segment_at(p, p->linked);
    if (schedule_can_link(p) && (worker || !p->shared || (*s)->state == SEGMENT_DECODED))
        return step_link;
    *s = segment_at(p, p->loaded);
    if (!p->loading && !p->loaded_all && p->loaded - p->current < p->slots)
        return step_load;
    *s = segment_at(p, p->taken);
    if (!schedule_can_decode(p, p->taken)) /* it may be being loaded */
        return NULL;
    return ((*s)->exact ? schedule_may_try(p) : schedule_may_search(p)) ? step_decode : NULL;
}

/* Wake a thread if it has a step: those woken in vain delay the others. */
static void schedule_wake(gf_png_parallel *p) {
    segment *s;
    if (p->polling)
        __atomic_store_n(&p->changes, p->changes + 1, __ATOMIC_RELAXED);
    else if ((p->idle != 0 || (p->caller_waits && p->caller_helps)) &&
             schedule_find(p, true, 0, &s))
        pthread_cond_signal(p->idle != 0 ? &p->changed : &p->ready);
}

static void schedule_unlock(gf_png_parallel *p) {
    schedule_wake(p);
    pthread_mutex_unlock(&p->lock);
}

/* Note that a block of a linked segment can be unfiltered, or its rows be returned. */
static void schedule_set_linked(gf_png_parallel *p, segment *s, uint32_t blocks) {
    s->blocks = blocks;
    s->state = blocks == p->blocks ? SEGMENT_READY : SEGMENT_LINKED;
    if (s->state == SEGMENT_READY && p->caller_waits && s == segment_at(p, p->current))
        pthread_cond_signal(&p->ready);
}

static void step_unfilter(gf_png_parallel *p, segment *s) {
    const gf_announcements *all = &p->announced;
    s->unfiltering = true;
    if (s->blocks == 0) { /* choose the rows to reconstruct at their destination */
        s->first_row = s->offset / p->size.row;
        s->destination = gf_announced_find(all, all->released, s->first_row);
        s->placed = s->destination == all->count ? 0 : gf_announced_last(all)->end - s->first_row;
    }
    schedule_unlock(p);
    if (s->blocks == 0)
        unfilter_align(p, s);
    unfilter_block(p, s, s->blocks);
    pthread_mutex_lock(&p->lock);
    s->unfiltering = false;
    schedule_set_linked(p, s, s->blocks + 1);
}

static void step_link(gf_png_parallel *p, segment *s) {
    const bool continued = s->state == SEGMENT_CONTINUED;
    unsigned char *const out = segment_out(s);
    bool found;
    if (s->state == SEGMENT_LOADED) {
        p->taken++;
        s->decoded = false;
        s->spent = 0;
    }
    p->linking = true;
    s->state = SEGMENT_BUSY;
    schedule_unlock(p);
    const bool last = link_segment(p, s, continued, &found);
    pthread_mutex_lock(&p->lock);
    /* The size of segments and the use of searches follow from these statistics. */
    if (!continued) {
        p->spent += s->spent;
        p->output += s->count;
        p->stream->accepted += found ? s->spent : 0;
    }
    if (!continued && s->complete && s->count != 0) {
        p->ratio = (3 * p->ratio + 16 * s->count / s->size) / 4;
        if (s->chunks != 0)
            p->chunk_bytes = (3 * p->chunk_bytes + s->count / s->chunks) / 4;
    }
    p->linking = false;
    p->linked_all = last;
    __atomic_store_n(&p->linked, p->linked + s->complete, __ATOMIC_RELAXED);
    schedule_unlock(p);
    if (s->wide)
        s->inflate->simd->resolve(out, out, s->count, s->memory);
    s->adler = gf_adler32(1, out, s->count);
    pthread_mutex_lock(&p->lock);
    schedule_set_linked(p, s, 0);
}

/* Read the input of a segment and, behind it, the first bytes of the next one. A segment ends
 * after up to `group` chunks that end with an empty stored block, or after the expected size. */
static void step_load(gf_png_parallel *p, segment *s) {
    const size_t min = p->size.min, max = p->size.max;
    const size_t min_sync = min / 16 + 4; /* from such a block to the next */
    const uint64_t group = p->size.target / (p->chunk_bytes + 1);
    const uint64_t ratio = p->ratio > p->file_ratio ? p->ratio : p->file_ratio;
    const uint64_t expected = (uint64_t)p->size.target * 16 / (ratio != 0 ? ratio : 1);
    const size_t target = expected < min ? min : expected > max ? max : (size_t)expected;
    const segment *before = p->loaded != 0 ? segment_at(p, p->loaded - 1) : NULL;
    gf_error *unread = &p->stream->unread;
    gf_png_idat *idat = &p->stream->idat;
    size_t size = before ? before->ahead : 0, cut = 0, sync = 0;
    uint64_t chunks = 0;
    p->loading = true;
    schedule_unlock(p);
    if (before)
        memcpy(s->in, before->in + before->size, size);
    while (!idat->ended && !unread->status) {
        if (cut == 0 && size >= sync + target)
            cut = chunks != 0 ? sync : target;
        if (cut != 0 && size >= cut + AHEAD_BYTES)
            break;
        const size_t end = cut != 0 ? cut + AHEAD_BYTES : sync + target;
        const size_t part = idat->remaining < end - size ? idat->remaining : end - size;
        const bool to_end = part == idat->remaining;
        size_t got;
        (void)gf_png_idat_read(idat, s->in + size, part != 0 ? part : 1, &got, unread);
        size += got;
        if (cut != 0 || !to_end || got != part || size < sync + min_sync ||
            gf_big32(s->in + size - 4) != 0xffff)
            continue;
        sync = size;
        chunks++;
        if (chunks >= group || size + size / chunks > max)
            cut = size;
    }
    s->begin = before ? before->begin + before->size : 0;
    s->exact = !before || before->chunks != 0;
    s->final = cut == 0 || size < cut + AHEAD_BYTES;
    s->size = s->final ? size : cut;
    s->ahead = size - s->size;
    s->chunks = cut == sync ? chunks : 0;
    pthread_mutex_lock(&p->lock);
    s->state = SEGMENT_LOADED;
    p->loading = false;
    p->loaded_all = s->final;
    p->loaded++;
}

static void step_decode(gf_png_parallel *p, segment *s) {
    const bool search = schedule_may_search(p);
    bool needs_history = p->needs_history;
    p->taken++;
    s->state = SEGMENT_BUSY;
    schedule_unlock(p);
    s->spent = 0;
    s->decoded = false;
    s->start = (gf_inflate_start_point){.bit = 8 * s->begin};
    if (s->exact && (s->begin == 0 || !needs_history)) {
        s->decoded = segment_try(s, false);
        needs_history |= s->result == GF_INFLATE_INVALID_DISTANCE && s->begin != 0;
    }
    if (s->exact && !s->decoded && needs_history && s->begin != 0)
        s->decoded = segment_try(s, true);
    if (!s->decoded && search)
        s->decoded = segment_try_found(s);
    pthread_mutex_lock(&p->lock);
    p->needs_history |= needs_history;
    if (!s->decoded) { /* count it now: by the time it is linked, many more may have been tried */
        p->spent += s->spent;
        s->spent = 0;
    }
    s->state = SEGMENT_DECODED;
}

/* Take a step. Return false if there is none. *block: the last one that the thread unfiltered. */
static bool schedule_step(gf_png_parallel *p, bool worker, uint32_t *block) {
    segment *s = NULL;
    step *const next = schedule_find(p, worker, *block, &s);
    if (!next)
        return false;
    *block = next == step_unfilter ? s->blocks : *block;
    next(p, s);
    return true;
}

static void *schedule_run(void *context) {
    gf_png_parallel *p = context;
    bool poll = p->blocks != 0;
    uint32_t block = 0;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        const double start = gf_now();
        if (schedule_step(p, true, &block)) {
            p->stream->busy += gf_now() - start;
            poll = p->blocks != 0;
        } else if (poll && !p->polling) {
            const uint32_t seen = p->changes;
            p->polling = true;
            pthread_mutex_unlock(&p->lock);
            for (poll = false; !poll && gf_now() - start < POLL_SECONDS;)
                poll = __atomic_load_n(&p->changes, __ATOMIC_RELAXED) != seen;
            pthread_mutex_lock(&p->lock);
            p->polling = false;
        } else {
            p->idle++;
            pthread_cond_wait(&p->changed, &p->lock);
            p->idle--;
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void gf_png_parallel_stop(gf_png_parallel *p) {
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    __atomic_store_n(&p->stop, true, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    for (; p->threads != 0; p->threads--)
        pthread_join(p->workers[p->threads - 1], NULL);
}

/* ---- rows ------------------------------------------------------------------------------------ */

void gf_png_parallel_announce(gf_png_parallel *p, unsigned char *to, size_t stride, uint64_t rows) {
    pthread_mutex_lock(&p->lock);
    gf_announced_add(&p->announced, p->returned, to, stride, rows);
    schedule_unlock(p);
}

/* Wait, or take steps, until the current segment has output. Return it; NULL: the stream ends. */
static segment *rows_await(gf_png_parallel *p) {
    gf_png_stream *stream = p->stream;
    uint32_t block = 0;
    bool ready;
    pthread_mutex_lock(&p->lock);
    gf_announced_release(&p->announced, p->returned);
    const uint64_t k = p->current;
    segment *s = segment_at(p, k);
    while (!(ready = k < p->loaded && s->state == SEGMENT_READY) &&
           !(p->linked_all && k >= p->linked)) {
        if (p->caller_helps && schedule_step(p, p->threads == 0, &block))
            continue;
        const double start = gf_now();
        /* The last step may have made another one possible that the caller does not take. */
        if (p->shared)
            schedule_wake(p);
        p->caller_waits = true;
        pthread_cond_wait(&p->ready, &p->lock);
        p->caller_waits = false;
        stream->busy -= gf_now() - start;
    }
    schedule_unlock(p);
    if (!ready) {
        if (!stream->damage && p->adler != p->trailer)
            stream->damage = GF_INFLATE_INVALID_CHECKSUM;
        stream->ended = !stream->damage;
        return NULL;
    }
    if (!p->entered && p->blocks == 0)
        unfilter_align(p, s);
    p->entered = true;
    return s;
}

/* Release the current segment, or let more of it be decoded. */
static void rows_advance(gf_png_parallel *p, segment *s) {
    p->adler = (uint32_t)adler32_combine(p->adler, s->adler, (z_off_t)s->count);
    p->entered = false;
    p->next_row = 0;
    pthread_mutex_lock(&p->lock);
    if (s->complete)
        p->current++;
    else
        s->state = SEGMENT_CONTINUED;
    schedule_unlock(p);
}

void gf_png_parallel_rows(gf_png_parallel *p, uint64_t max, gf_png_rows *rows) {
    segment *s;
    rows->count = 0;
    while ((s = rows_await(p)) && p->next_row == s->rows && !s->invalid)
        rows_advance(p, s);
    if (!s)
        return;
    uint64_t next = p->next_row;
    rows->filtered = p->blocks == 0 || next == s->rows;
    if (rows->filtered) {
        rows->first = segment_rows(s, true) + next * p->size.row;
        rows->stride = p->size.row;
        next = next == s->rows ? next + 1 : s->rows;
    } else {
        rows->first = unfilter_find_rows(p, s, p->announced.released, &next, &rows->stride);
    }
    rows->count = next - p->next_row < max ? next - p->next_row : max;
    p->next_row += rows->count;
    p->returned += rows->count;
}

size_t gf_png_parallel_skip(gf_png_parallel *p, size_t max) {
    size_t skipped = 0;
    segment *s;
    for (bool first = true; skipped <= max && (s = rows_await(p)); first = false) {
        if (first)
            skipped = s->carried - (size_t)p->next_row * p->size.row;
        skipped += s->count;
        rows_advance(p, s);
    }
    return skipped;
}

/* ---- opening and closing --------------------------------------------------------------------- */

uint32_t gf_png_parallel_threads(const gf_png_image *image, uint64_t *memory) {
    const sizes size = sizes_of(image);
    const uint64_t slot = size.memory + size.in + sizeof(gf_inflate);
    const uint64_t limit = size.stored ? STORED_THREADS : MAX_THREADS;
    uint64_t segments = size.image / size.target, threads = image->threads;
    if (image->file_bytes != 0 && image->file_bytes / size.min < segments)
        segments = image->file_bytes / size.min;
    threads = threads < limit ? threads : limit;
    threads = threads < segments / MIN_SEGMENTS ? threads : segments / MIN_SEGMENTS;
    while (threads > 1 && slots_of((uint32_t)threads) > image->max_memory / slot)
        threads--;
    if (threads <= 1 || image->row_bytes > MAX_ROW_BYTES)
        threads = 1;
    *memory = threads > 1 ? slots_of((uint32_t)threads) * slot : 0;
    return (uint32_t)threads;
}

gf_png_parallel *gf_png_parallel_open(gf_png_stream *stream, const gf_png_image *image) {
    const uint32_t threads = image->threads;
    const size_t row = image->row_bytes + 1, blocks = image->row_bytes / MIN_BLOCK_BYTES;
    gf_png_parallel *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->stream = stream;
    p->image = image;
    p->size = sizes_of(image);
    p->shared = image->shared && threads == 2;
    p->simd = gf_png_simd_of(gf_isa_best());
    p->slots = slots_of(threads);
    /* A chunk of our encoder has whole rows. */
    p->chunk_bytes = row <= GF_PNG_STRIP_BYTES ? GF_PNG_STRIP_BYTES / row * row : row;
    if (threads >= UNFILTER_THREADS)
        p->blocks = blocks < 1 ? 1 : blocks < MAX_BLOCKS ? (uint32_t)blocks : MAX_BLOCKS;
    const bool compressed = image->file_bytes != 0 && !p->size.stored;
    p->allowance = p->size.image / (compressed ? PART : STORED_PART);
    if (p->allowance > ALLOWANCE_BYTES)
        p->allowance = ALLOWANCE_BYTES;
    p->adler = 1;
    gf_inflate_finder_init(&p->finder);
    if (image->file_bytes != 0)
        p->file_ratio = 16 * p->size.image / image->file_bytes;
    p->ratio = p->file_ratio != 0 ? p->file_ratio : 2 * 16;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    pthread_cond_init(&p->ready, NULL);
    p->segments = calloc(p->slots, sizeof *p->segments);
    p->workers = calloc(threads, sizeof *p->workers);
    p->partial = malloc(row);
    p->above = calloc(1, image->row_bytes + MAX_BLOCKS * MAX_UNIT);
    p->carried = malloc(sizeof *p->carried);
    bool allocated = p->segments && p->workers && p->partial && p->above && p->carried;
    for (uint32_t i = 0; i < p->slots && allocated; i++) {
        segment *s = &p->segments[i];
        s->parallel = p;
        s->in = malloc(p->size.in);
        s->memory = malloc(p->size.memory);
        s->inflate = malloc(sizeof *s->inflate);
        allocated = s->in && s->memory && s->inflate;
    }
    if (!allocated) {
        gf_png_parallel_close(p);
        return NULL;
    }
    p->caller_helps = p->blocks == 0;
    const uint32_t workers = threads - (p->caller_helps ? 1 : 0);
    while (p->threads < workers && gf_thread_start(&p->workers[p->threads], schedule_run, p) == 0)
        p->threads++;
    if (p->threads == 0) /* the caller decodes alone */
        p->caller_helps = true;
    return p;
}

void gf_png_parallel_close(gf_png_parallel *p) {
    if (!p)
        return;
    gf_png_parallel_stop(p);
    for (uint32_t i = 0; p->segments && i < p->slots; i++) {
        free(p->segments[i].in);
        free(p->segments[i].memory);
        free(p->segments[i].inflate);
    }
    pthread_cond_destroy(&p->ready);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p->segments);
    free(p->workers);
    free(p->carried);
    free(p->partial);
    free(p->above);
    free(p);
}
