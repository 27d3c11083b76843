/* Shared by the tests of the stream: a source and a sink that count rows, check their order, and
 * fail at the row `fail_at`. */
#ifndef COUNTING_H
#define COUNTING_H

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/error.h"
#include "io/codecs.h"

typedef struct counting_source {
    gf_source base;
    uint64_t next, fail_at;
    bool finished;
    pthread_t reader; /* thread of the last read */
    long pause;       /* duration of a read in ns */
} counting_source;

typedef struct counting_sink {
    gf_sink base;
    const gf_format *format;
    uint64_t next, fail_at;
    bool checks_rows;
} counting_sink;

/* Read rows. Each byte of row y is y modulo 256. */
static inline gf_status read_rows(gf_source *base, void *dst, size_t stride, uint64_t rows,
                                  gf_error *error) {
    counting_source *source = (counting_source *)base;
    source->reader = pthread_self();
    nanosleep(&(struct timespec){.tv_nsec = source->pause}, NULL);
    for (uint64_t i = 0; i < rows; i++) {
        if (source->next == source->fail_at)
            return gf_fail(error, GF_FAILED, "source: row %" PRIu64, source->next);
        assert_true(source->next < base->format.height);
        memset((unsigned char *)dst + i * stride, (int)(source->next++ & 0xff),
               gf_row_bytes(&base->format));
    }
    return GF_OK;
}

static inline gf_status finish_source(gf_source *base, gf_error *error) {
    counting_source *source = (counting_source *)base;
    source->finished = true;
    if (source->fail_at == base->format.height)
        return gf_fail(error, GF_FAILED, "source: the end");
    return GF_OK;
}

static inline gf_status write_rows(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                                   gf_error *error) {
    counting_sink *sink = (counting_sink *)base;
    for (uint64_t i = 0; i < rows; i++) {
        if (sink->next == sink->fail_at)
            return gf_fail(error, GF_FAILED, "sink: row %" PRIu64, sink->next);
        const unsigned char *row = (const unsigned char *)src + i * stride;
        for (size_t k = 0; sink->checks_rows && k < gf_row_bytes(sink->format); k++)
            if (row[k] != (sink->next & 0xff))
                fail_msg("row %" PRIu64 " holds %u", sink->next, row[k]);
        sink->next++;
    }
    return GF_OK;
}

static const gf_source_ops source_ops = {.read = read_rows, .finish = finish_source};
static const gf_sink_ops sink_ops = {write_rows, NULL, NULL};

#define NEVER UINT64_MAX

#endif
