#include "io/png_inflate.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>

#include "io/png_fail.h"

enum {
    IN_BYTES = 1 << 16,
    /* Rows wait here until they are unfiltered: in the second level cache, beside their results. */
    OUT_BYTES = 1 << 17,
    MOST_BYTES = 1 << 30,  /* that ISA-L is asked for at once */
    MOST_SURPLUS = 1 << 20 /* bytes behind the last row */
};

struct gf_png_inflate {
    gf_png_idat idat;
    struct inflate_state state;
    size_t row;         /* bytes of a filtered row, and its filter byte */
    unsigned char *out; /* of capacity bytes; those in [begin, end) were not given out yet */
    size_t capacity, begin, end;
    unsigned char in[IN_BYTES];
};

bool gf_png_inflate_can(const unsigned char head[2]) {
    const unsigned deflate_of_32k = 0x78, dictionary = 0x20;

    return head[0] == deflate_of_32k && (head[0] * 256u + head[1]) % 31 == 0 &&
           (head[1] & dictionary) == 0;
}

gf_status gf_png_inflate_open(const gf_png_idat *idat, size_t row_bytes, gf_png_inflate **opened,
                              gf_error *error) {
    gf_png_inflate *inflate = malloc(sizeof *inflate);

    *opened = NULL;
    if (inflate == NULL)
        return gf_fail_memory(error, idat->input->name, sizeof *inflate, "a decoder");
    inflate->idat = *idat;
    inflate->row = row_bytes + 1;
    inflate->begin = inflate->end = 0;
    inflate->capacity = inflate->row < OUT_BYTES ? OUT_BYTES : inflate->row;
    isal_inflate_init(&inflate->state);
    inflate->state.crc_flag = ISAL_ZLIB_NO_HDR_VER;
    inflate->out = malloc(inflate->capacity);
    if (inflate->out == NULL) {
        gf_png_inflate_close(inflate);
        return gf_fail_memory(error, idat->input->name, row_bytes, "a row");
    }
    *opened = inflate;
    return GF_OK;
}

static const char *words_of(int cause) {
    switch (cause) {
    case ISAL_INVALID_LOOKBACK:
        return "IDAT: invalid distance too far back";
    case ISAL_INVALID_SYMBOL:
        return "IDAT: invalid code";
    case ISAL_INCORRECT_CHECKSUM:
        return "IDAT: incorrect data check";
    default:
        return "IDAT: invalid block";
    }
}

/* Inflates some of the stream to out + end. */
static gf_status advance(gf_png_inflate *inflate, gf_error *error) {
    const char *name = inflate->idat.input->name;
    struct inflate_state *state = &inflate->state;
    const size_t room = inflate->capacity - inflate->end;
    const uint32_t most = room < MOST_BYTES ? (uint32_t)room : MOST_BYTES;

    if (state->block_state == ISAL_BLOCK_FINISH)
        return gf_png_fail_damaged(error, name, "Not enough image data");
    if (state->avail_in == 0) {
        size_t got;
        gf_status status = gf_png_idat_read(&inflate->idat, inflate->in, IN_BYTES, &got, error);
        if (status != GF_OK)
            return status;
        state->next_in = inflate->in;
        state->avail_in = (uint32_t)got;
    }
    const uint32_t given = state->avail_in;
    state->next_out = inflate->out + inflate->end;
    state->avail_out = most;
    const int cause = isal_inflate(state);
    if (cause != ISAL_DECOMP_OK)
        return gf_png_fail_damaged(error, name, words_of(cause));
    inflate->end += most - state->avail_out;
    /* Nothing in and nothing out: the stream goes on where the data ends. */
    if (state->avail_in == given && state->avail_out == most &&
        state->block_state != ISAL_BLOCK_FINISH)
        return gf_png_fail_damaged(error, name, "Not enough image data");
    return GF_OK;
}

gf_status gf_png_inflate_row(gf_png_inflate *inflate, const unsigned char **row, gf_error *error) {
    const size_t held = inflate->end - inflate->begin;

    if (held < inflate->row) {
        memmove(inflate->out, inflate->out + inflate->begin, held);
        inflate->begin = 0;
        inflate->end = held;
    }
    while (inflate->end - inflate->begin < inflate->row) {
        gf_status status = advance(inflate, error);
        if (status != GF_OK)
            return status;
    }
    *row = inflate->out + inflate->begin;
    inflate->begin += inflate->row;
    return GF_OK;
}

gf_status gf_png_inflate_finish(gf_png_inflate *inflate, unsigned char header[GF_PNG_CHUNK_HEADER],
                                gf_error *error) {
    gf_status status = GF_OK;
    size_t got = 1, surplus = inflate->end - inflate->begin;

    /* More rows than the image has are passed over, as by libpng, but not for ever. */
    while (status == GF_OK && inflate->state.block_state != ISAL_BLOCK_FINISH) {
        if (surplus > MOST_SURPLUS)
            return gf_png_fail_damaged(error, inflate->idat.input->name, "IDAT: too much data");
        inflate->begin = inflate->end = 0;
        status = advance(inflate, error);
        surplus += inflate->end;
    }
    while (status == GF_OK && got != 0)
        status = gf_png_idat_read(&inflate->idat, inflate->in, IN_BYTES, &got, error);
    memcpy(header, inflate->idat.header, GF_PNG_CHUNK_HEADER);
    return status;
}

void gf_png_inflate_close(gf_png_inflate *inflate) {
    if (inflate != NULL)
        free(inflate->out);
    free(inflate);
}
