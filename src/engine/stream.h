/* source -> ring of bands -> backend -> sink, all busy at once. */
#ifndef GF_STREAM_H
#define GF_STREAM_H

#include "engine/backend.h"
#include "io/io.h"

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
} gf_stream_job;

/* Takes the image, or the rows to compute of it, from source through the backend to sink and to the
 * filter's measure; the sink (NULL if no image is made) is not finished, the measure is. Fills the
 * report's bands and times. After a failure with report->bands at 0 the backend could not begin:
 * nothing of source, sink and measure was touched. */
gf_status gf_stream_run(const gf_stream_job *job, gf_source *source, gf_sink *sink,
                        gf_report *report, gf_error *error);

#endif
