/* The pipeline: inputs -> stream -> backend -> consumer, all busy at once.
 *
 * A pass takes rows of an image from its inputs through a filter into a consumer. It lets the
 * engine choose a backend, has a stream feed it, and goes on with another backend where the first
 * fails. Each use gives the pass a consumer of its own: one image's outputs and result, and the
 * measuring pass before another filter (gf_delivery); many images in memory (batch_memory.c); a
 * range of rows (partial.c); golden's check of any of these (gf_verifier). */
#ifndef GF_PIPELINE_H
#define GF_PIPELINE_H

#include <sys/stat.h>

#include "core/thread.h"
#include "engine/backend.h"
#include "engine/engine.h"
#include "io/io.h"

/* ---- consumers ------------------------------------------------------------------------------- */

/* Takes what a stream makes, strip by strip in image order, in the thread that runs the stream.
 * Kinds extend it. The functions that may be NULL serve a consumer that checks strips against their
 * input.
 */
typedef struct gf_consumer gf_consumer;
struct gf_consumer {
    uint32_t checks; /* parts of a strip that golden computes here at the same time; 0: none */
    uint64_t extra;  /* bytes it takes beside the strips */
    /* Prepares for strips of this geometry; after it, end is called once. May be NULL. */
    gf_status (*begin)(gf_consumer *consumer, const gf_job *geometry, gf_error *error);
    /* Sees a strip whose rows were read, before the backend does, in the reader's thread. May be
     * NULL. */
    void (*filled)(gf_consumer *consumer, const gf_slot *slot);
    /* Takes the rows and payloads of a computed strip. */
    gf_status (*strip)(gf_consumer *consumer, const gf_slot *slot, gf_error *error);
    /* Takes the state of the image, after the last strip. */
    gf_status (*state)(gf_consumer *consumer, const void *state, gf_error *error);
    void (*end)(gf_consumer *consumer); /* may be NULL */
};

/* ---- inputs (inputs.c) ----------------------------------------------------------------------- */

/* A file as it was before anything was read of it. */
typedef struct gf_seen {
    bool regular; /* it can be read again */
    struct stat info;
} gf_seen;

gf_seen gf_see(const char *path);

typedef struct gf_inputs {
    const char *name;         /* of the first, for messages */
    uint32_t count;           /* 1, or 2: their rows lie side by side */
    gf_source *source;        /* of all of them; NULL: none is open */
    const char *const *paths; /* the caller's; NULL: images in memory */
    gf_limits limits;
    gf_seen seen[2];
    uint64_t first; /* row at which reading begins; not 0 only where source->ops->seek is there */
} gf_inputs;

/* Opens files. To be closed, whatever it returns. */
gf_status gf_inputs_open_files(gf_inputs *inputs, uint32_t count, const char *const *paths,
                               const gf_limits *limits, gf_error *error);
/* Opens images in memory, all of one format. filter is the name for messages. To be closed, too. */
gf_status gf_inputs_open_memory(gf_inputs *inputs, uint32_t count, const gf_format *format,
                                const gf_pixels *in, const char *filter, gf_error *error);
/* Opens `times` pairs or single images in memory as one tall one: image i is in[i * count]. */
gf_status gf_inputs_open_many(gf_inputs *inputs, uint32_t count, const gf_format *format,
                              uint64_t times, const gf_pixels *in, gf_error *error);
/* Begins at this row. Only where source->ops->seek is there. */
void gf_inputs_seek(gf_inputs *inputs, uint64_t first);
/* Can it begin again? */
bool gf_inputs_can_restart(const gf_inputs *inputs);
/* Begins again: memory at its first row, files opened anew. Needs gf_inputs_can_restart. GF_FAILED
 * for files that are not any more what they were when they were opened first. */
gf_status gf_inputs_restart(gf_inputs *inputs, gf_error *error);
/* Reads a single image into memory, from which it can be read twice, and closes its file. Takes its
 * bytes out of *memory, and adds the time to *busy. */
gf_status gf_inputs_hold(gf_inputs *inputs, uint64_t *memory, gf_busy *busy, gf_error *error);
void gf_inputs_close(gf_inputs *inputs);

/* ---- a stream (stream.c, geometry.c) --------------------------------------------------------- */

typedef struct gf_stream_job {
    const char *name; /* of the image, for messages */
    const gf_filter *filter;
    const gf_plan *plan;
    const gf_backend *backend;
    void *state; /* the backend's */
    gf_consumer *consumer;
    uint64_t first, end;     /* rows of the image to compute; end 0: all. The source begins with the
                              * first one that is read, the consumer with the first that is computed */
    uint64_t rows_per_strip; /* 0: chosen */
    uint64_t max_memory;     /* bytes of all strips together */
    bool unthreaded;         /* read and consume in the calling thread, in turn */
} gf_stream_job;

/* How far a stream got that failed. */
typedef struct gf_stream_rest {
    bool by_backend;         /* the backend failed: neither source nor consumer did */
    bool begun;              /* something was read; otherwise source and consumer are as before */
    uint64_t done;           /* rows before this one went to the consumer */
    uint64_t rows_per_strip; /* as the image was cut */
} gf_stream_rest;

/* Streams the image, or the rows to compute of it, from source through the backend to the consumer.
 * Where the backend has no memory for the strips that it wishes, they are lower. Adds to the
 * report's strips and times. After a failure fills in *rest (NULL: not wanted). */
gf_status gf_stream_run(const gf_stream_job *job, gf_source *source, gf_report *report,
                        gf_stream_rest *rest, gf_error *error);

/* Chooses strip height and ring size: what the backend wishes, less where memory is short. */
gf_status gf_choose_geometry(const gf_stream_job *job, gf_job *out, gf_error *error);

/* After a backend had no memory for them: fewer strips at a time, and lower ones. False if they
 * cannot be any less. */
bool gf_shrink_geometry(const gf_stream_job *job, gf_job *geometry);

/* ---- a pass (pass.c) ------------------------------------------------------------------------- */

typedef struct gf_pass {
    gf_engine *engine;
    gf_inputs *inputs; /* at their first row; after a failure of a backend they may be read again */
    const gf_filter *filter;
    const gf_plan *plan;
    gf_consumer *consumer;
    uint64_t first, end;     /* rows to compute; end 0: all */
    uint64_t images;         /* like this one that are to come; 0 counts as one */
    uint64_t memory;         /* for the strips */
    double encode;           /* estimated nanoseconds an output sample takes to write */
    uint32_t encode_threads; /* that share it; 0: the caller's */
    gf_report *report;       /* of the image; its formats, backend, strips and times */
    bool begun;              /* set: something was read or computed */
} gf_pass;

gf_status gf_pass_run(gf_pass *pass, gf_error *error);

/* ---- one image (delivery.c) ------------------------------------------------------------------ */

/* Who is shown the progress of an image, which may be read more than once. */
typedef struct gf_watch {
    uint64_t item;                                                /* of a batch: its index */
    void (*progress)(void *context, const gf_progress *progress); /* NULL: none */
    void *context;
    uint32_t pass, passes; /* this time of reading, from 0, and how many there are */
} gf_watch;

typedef struct gf_delivery {
    gf_consumer base;
    const gf_filter *filter;
    const gf_plan *plan;
    void *data;            /* of the filter's measure, open; NULL if it has none */
    gf_sink *sink;         /* NULL: no image is made */
    const gf_watch *watch; /* NULL: none */
    gf_report *report;     /* gets the time that this takes, as that of encoding */
    uint64_t next;         /* row after the last one taken: rows before it that come again, because
                            * the image was read again, are dropped */
    bool digests;          /* are the sink's rows digested? */
    uint64_t digest;
} gf_delivery;

/* Sets the functions of a delivery whose other fields are filled in. */
void gf_delivery_init(gf_delivery *delivery);

/* Returns a strip's rows from row `next` on. */
gf_rows gf_slot_rows_from(const gf_slot *slot, uint64_t next);

/* ---- golden's check (verify.c) --------------------------------------------------------------- */

/* For one image; fill in what is between base and run. */
typedef struct gf_verifier {
    gf_consumer base;
    gf_consumer *next;         /* takes what is right */
    const gf_backend *backend; /* that is verified, */
    void *state;               /* and its own */
    gf_pool *pool;             /* that golden runs on, and nothing else at the same time */
    uint32_t threads;          /* of it */
    const char *name;          /* of the image, for messages */
    struct gf_verify_run *run; /* while a stream runs */
} gf_verifier;

/* Returns the verifier as a consumer of images of this plan. After a strip is there, golden makes
 * the same rows, records and payloads from the same input, and in the end the same state. The first
 * difference is GF_FAILED. So are input rows that changed after the strip was submitted. */
gf_consumer *gf_verifier_consumer(gf_verifier *verifier, const gf_plan *plan);

#endif
