/* source -> ring of bands -> backend -> sink, all busy at once. */
#ifndef GF_STREAM_H
#define GF_STREAM_H

#include "engine/backend.h"
#include "io/io.h"

/* Whom a stream tells how far it has come, and of what. */
typedef struct gf_listener {
    void (*tell)(void *context, const gf_progress *progress); /* NULL: nobody */
    void *context;
    uint32_t pass, passes; /* which time of how many the image is read */
    uint64_t first, rows;  /* that are computed, whoever began */
} gf_listener;

typedef struct gf_stream_job {
    const char *name; /* of the image, for messages */
    const gf_filter *filter;
    const gf_plan *plan;
    const gf_backend *backend;
    void *state;         /* the backend's */
    uint64_t first, end; /* rows of the image to compute; end 0: all. The source begins with the
                          * first one that is read, the sink with the first that is computed */
    uint64_t band_rows;  /* 0: chosen */
    uint64_t max_memory; /* bytes of all bands together */
    bool unthreaded;     /* read and write in the calling thread, in turn */
    void *data;          /* of the filter's measure, open; NULL if it has none */
    uint64_t handed;     /* rows before this one went on when the image was streamed before, and are
                          * computed again for the state's sake. With payloads a band begins there */
    const gf_listener *listener; /* NULL: nobody */
    uint64_t *digest;            /* of the rows that go to the sink; NULL: not wanted */
} gf_stream_job;

/* What is left of an image whose backend failed. */
typedef struct gf_stream_rest {
    bool by_backend; /* it was the backend that failed: neither file nor measure did. Otherwise the
                      * rest means nothing */
    bool begun;      /* something was read; otherwise source, sink and measure are as before */
    uint64_t done;   /* rows before this one went on to sink and measure */
    uint64_t band_rows; /* as the image was cut */
    gf_source *source;  /* gives the rows from the first that is read for those from `done` on: what
                         * is in the ring, and then the stream's source, which must live as long.
                         * NULL where there was no memory for it */
    uint64_t bytes;     /* that it holds */
} gf_stream_rest;

/* Takes the image, or the rows to compute of it, from source through the backend to sink and to the
 * filter's measure; the sink (NULL if no image is made) is not finished, the measure is. Where the
 * backend has no memory for the bands that it wishes, they are lower. Adds to the report's bands
 * and times. After a failure fills in *rest (NULL: not wanted), whose source is then the caller's
 * to close. */
gf_status gf_stream_run(const gf_stream_job *job, gf_source *source, gf_sink *sink,
                        gf_report *report, gf_stream_rest *rest, gf_error *error);

#endif
