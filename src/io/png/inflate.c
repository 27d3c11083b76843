/* Decompression of PNG image data, from IDAT chunks to filtered rows. */
#include "io/png/inflate.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/checksum.h"
#include "core/error.h"
#include "io/bytes.h"

enum {
    /* Rows stay in the L2 cache until they are unfiltered. Small images pay for each page. */
    OUT_BYTES = 3 << 16,
    MIN_ROWS = 4,         /* rows that are unfiltered together */
    SUM_BYTES = 1 << 14,  /* short pieces take longer, above all after code without AVX */
    MAX_SURPLUS = 1 << 20 /* bytes after the last row */
};

bool gf_png_inflate_supports(const unsigned char head[2]) {
    const unsigned deflate_of_32k = 0x78, dictionary = 0x20;
    return head[0] == deflate_of_32k && (head[0] * 256u + head[1]) % 31 == 0 &&
           (head[1] & dictionary) == 0;
}

gf_png_inflate *gf_png_inflate_open(const gf_png_idat *idat, const gf_png_image *image,
                                    gf_error *error) {
    gf_png_inflate *rows = malloc(sizeof *rows);
    if (!rows) {
        gf_fail_memory(error, idat->input->name, sizeof *rows, "a decoder");
        return NULL;
    }
    memset(rows, 0, offsetof(gf_png_inflate, inflate));
    rows->stream.idat = *idat;
    rows->image = *image;
    rows->row = image->row_bytes + 1;
    return rows;
}

/* Before the first row: start the threads, or allocate what one thread needs. */
static gf_status inflate_start(gf_png_inflate *rows, gf_error *error) {
    const size_t few_rows = MIN_ROWS * rows->row;
    if (rows->parallel || rows->out)
        return GF_OK;
    if (rows->image.threads > 1)
        rows->parallel = gf_png_parallel_open(&rows->stream, &rows->image);
    if (rows->parallel)
        return GF_OK;
    rows->capacity =
        GF_DEFLATE_WINDOW + GF_INFLATE_RESERVE + (few_rows < OUT_BYTES ? OUT_BYTES : few_rows);
    rows->out = malloc(rows->capacity);
    if (!rows->out)
        return gf_fail_memory(error, rows->stream.idat.input->name, rows->row, "a row");
    rows->adler = 1;
    gf_inflate_start(&rows->inflate, gf_isa_best());
    gf_inflate_set_input(&rows->inflate, rows->in, 0, rows->in, false);
    return GF_OK;
}

gf_status gf_png_inflate_fail(gf_png_inflate *rows, const char *what, gf_error *error) {
    static const char *const damage[] = {
        [GF_INFLATE_VALID] = "Not enough image data",
        [GF_INFLATE_TRUNCATED] = "Not enough image data",
        [GF_INFLATE_INVALID] = "IDAT: invalid block",
        [GF_INFLATE_INVALID_CODE] = "IDAT: invalid code",
        [GF_INFLATE_INVALID_DISTANCE] = "IDAT: invalid distance too far back",
        [GF_INFLATE_INVALID_CHECKSUM] = "IDAT: incorrect data check"};
    gf_png_stream *stream = &rows->stream;
    gf_png_parallel_stop(rows->parallel); /* its threads use the stream */
    const bool truncated = !what && stream->damage == GF_INFLATE_TRUNCATED;
    const bool read_on = stream->idat.input->regular;
    size_t got = 1;
    while (!stream->unread.status && got != 0 && read_on)
        (void)gf_png_idat_read(&stream->idat, rows->in, GF_PNG_IN_BYTES, &got, &stream->unread);
    if (!stream->unread.status || !(read_on || truncated))
        return gf_png_fail_damaged(error, stream->idat.input->name,
                                   what ? what : damage[stream->damage]);
    return gf_return_error(&stream->unread, error);
}

/* Keep the unused input and fill the buffer. An error is reported after all data before it. */
static void inflate_read_more(gf_png_inflate *rows) {
    unsigned bit;
    const unsigned char *at = gf_inflate_position(&rows->inflate, &bit);
    const size_t kept = (size_t)(rows->inflate.in_end - at);
    size_t got;
    memmove(rows->in, at, kept);
    (void)gf_png_idat_read(&rows->stream.idat, rows->in + kept, GF_PNG_IN_BYTES - kept, &got,
                           &rows->stream.unread);
    gf_inflate_set_input(&rows->inflate, rows->in, bit, rows->in + kept + got,
                         rows->stream.idat.ended || rows->stream.unread.status);
}

/* Add the output since the last call to the checksum. */
static void inflate_sum(gf_png_inflate *rows) {
    if (rows->end != rows->summed)
        rows->adler = gf_adler32(rows->adler, rows->out + rows->summed, rows->end - rows->summed);
    rows->summed = rows->end;
}

/* Decode as far as input and output last, at most one block or several short ones. */
static void inflate_step(gf_png_inflate *rows) {
    gf_inflate_out out = {
        .next = rows->out + rows->end, .end = rows->out + rows->capacity, .history = rows->out};
    const unsigned char *const enough = out.next + SUM_BYTES;
    gf_inflate_result result;
    do {
        result = gf_inflate_run(&rows->inflate, &out);
    } while (!result && !rows->inflate.last && out.next < enough);
    rows->end = (size_t)(out.next - rows->out);
    if (rows->end - rows->summed >= SUM_BYTES)
        inflate_sum(rows);
    if (result == GF_INFLATE_NEEDS_INPUT) {
        inflate_read_more(rows);
    } else if (result == GF_INFLATE_NEEDS_OUTPUT) {
        /* Discard returned output that no match can reference. */
        const size_t window = rows->end < GF_DEFLATE_WINDOW ? 0 : rows->end - GF_DEFLATE_WINDOW;
        const size_t from = window < rows->begin ? window : rows->begin;
        inflate_sum(rows);
        memmove(rows->out, rows->out + from, rows->end - from);
        rows->begin -= from;
        rows->summed = rows->end -= from;
    } else if (result) {
        rows->stream.damage = result;
    } else if (rows->inflate.last) {
        /* The checksum of the stream begins at a byte. */
        unsigned bit;
        const unsigned char *at = gf_inflate_position(&rows->inflate, &bit);
        inflate_sum(rows);
        if (rows->inflate.in_end - at < 4 + (bit != 0) && !rows->inflate.final_input) {
            inflate_read_more(rows);
            at = gf_inflate_position(&rows->inflate, &bit);
        }
        at += bit != 0;
        if (rows->inflate.in_end - at < 4)
            rows->stream.damage = GF_INFLATE_TRUNCATED;
        else if (gf_big32(at) != rows->adler)
            rows->stream.damage = GF_INFLATE_INVALID_CHECKSUM;
        else
            rows->stream.ended = true;
    }
}

gf_status gf_png_inflate_announce(gf_png_inflate *rows, void *to, size_t stride, uint64_t count,
                                  gf_error *error) {
    const gf_status status = inflate_start(rows, error);
    if (!status && rows->parallel)
        gf_png_parallel_announce(rows->parallel, to, stride, count);
    return status;
}

gf_status gf_png_inflate_rows(gf_png_inflate *rows, uint64_t max, gf_png_rows *decoded,
                              gf_error *error) {
    const gf_png_stream *stream = &rows->stream;
    const uint64_t wanted = max < MIN_ROWS ? max : MIN_ROWS;
    const gf_status status = inflate_start(rows, error);
    if (status)
        return status;
    if (rows->parallel) {
        gf_png_parallel_rows(rows->parallel, max, decoded);
    } else {
        while ((rows->end - rows->begin) / rows->row < wanted && !stream->damage && !stream->ended)
            inflate_step(rows);
        const uint64_t complete = (rows->end - rows->begin) / rows->row;
        *decoded = (gf_png_rows){.first = rows->out + rows->begin,
                                 .stride = rows->row,
                                 .count = complete < max ? complete : max,
                                 .filtered = true};
        rows->begin += (size_t)decoded->count * rows->row;
    }
    return decoded->count != 0 ? GF_OK : gf_png_inflate_fail(rows, NULL, error);
}

gf_status gf_png_inflate_finish(gf_png_inflate *rows, gf_error *error) {
    gf_png_stream *stream = &rows->stream;
    size_t got = 1, surplus = rows->end - rows->begin;
    /* Skip surplus rows, as libpng does, up to a limit. */
    if (rows->parallel)
        surplus = gf_png_parallel_skip(rows->parallel, MAX_SURPLUS);
    while (surplus <= MAX_SURPLUS && !stream->ended && !stream->damage) {
        rows->begin = rows->end;
        inflate_step(rows);
        surplus += rows->end - rows->begin;
    }
    if (surplus > MAX_SURPLUS || stream->damage)
        return gf_png_inflate_fail(rows, surplus > MAX_SURPLUS ? "IDAT: too much data" : NULL,
                                   error);
    gf_png_parallel_stop(rows->parallel);
    while (!stream->unread.status && got != 0)
        (void)gf_png_idat_read(&stream->idat, rows->in, GF_PNG_IN_BYTES, &got, &stream->unread);
    if (!stream->unread.status)
        gf_input_unread(stream->idat.input, stream->idat.header, GF_PNG_CHUNK_HEADER);
    return gf_return_error(&stream->unread, error);
}

void gf_png_inflate_close(gf_png_inflate *rows) {
    if (!rows)
        return;
    gf_png_parallel_close(rows->parallel);
    free(rows->out);
    free(rows);
}
