/* Encoders that compress strips of rows in several threads: the common part of the sinks of PNG and
 * TIFF. The caller fills strips in a ring and submits them to a thread pool. It also writes the
 * encoded strips in order, when it needs their slots again. */
#ifndef GF_ENCODER_H
#define GF_ENCODER_H

#include <stdatomic.h>

#include "core/thread.h"
#include "io/codec.h"
#include "io/strip/strip.h"

typedef struct gf_encoder gf_encoder;

/* One strip, from its first row until it is written. */
typedef struct gf_encoder_slot {
    gf_encoder *encoder;
    unsigned char *memory; /* rows with their padding */
    unsigned char *out;    /* encoder->out_bytes bytes */
    gf_png_strip strip;
    bool first;        /* first strip of the image */
    uint32_t crc;      /* of a PNG chunk */
    gf_work work;      /* encodes the strip */
    bool encoded;      /* false after work: it failed */
    char failure[256]; /* the reason and a remedy; "": out of memory */
} gf_encoder_slot;

struct gf_encoder {
    gf_sink base; /* threads: 0 if the caller encodes */
    /* Set before gf_encoder_open. */
    gf_png_strips strips;
    size_t out_bytes;     /* memory for an encoded strip, and for what precedes and follows it */
    size_t scratch_bytes; /* memory of a thread that encodes */
    uint64_t held_bytes;  /* other memory, at most setup->max_memory; counted in base.memory */
    bool swap;            /* 16-bit samples are encoded in big-endian order */
    /* Encode a strip, in any thread. Return false on failure. NULL: strips are written as they are,
     * without threads. */
    bool (*encode)(gf_encoder_slot *slot, gf_png_scratch *scratch);
    /* Write an encoded strip; in order. */
    gf_status (*write)(gf_encoder *encoder, gf_encoder_slot *slot, gf_error *error);

    gf_format format;
    uint64_t max_memory;
    double caller_seconds; /* busy time of the caller */
    uint64_t y;            /* rows received */
    uint64_t filled;       /* strips filled */
    uint64_t written;      /* strips written */
    gf_png_rule rule;      /* of the last strip submitted */
    gf_encoder_slot *slots;
    uint32_t slot_count;
    gf_pool *pool; /* base.threads threads; NULL: none */
    /* One per pool thread, which allocates it; the last one belongs to the caller. */
    gf_png_scratch **scratch;
    atomic_bool stop;
};

/* Allocate the slots, and set shrink, counts_clipped and memory of the sink. The memory of the
 * first thread is counted from 16 MiB on, which only wide rows exceed; the call fails if the excess
 * is over max_memory. The number of threads, at most setup->threads, is limited so that this excess
 * and the memory of the other threads stay within half of max_memory. */
gf_status gf_encoder_open(gf_encoder *encoder, const gf_sink_setup *setup, gf_error *error);
/* Functions of the sink: write rows; after the last row, set the busy time and end the threads. */
gf_status gf_encoder_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                           gf_error *error);
void gf_encoder_end(gf_encoder *encoder);
/* Free everything but the encoder itself, and close the output. Also after a failure. */
void gf_encoder_close(gf_encoder *encoder);

#endif
