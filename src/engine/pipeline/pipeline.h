/* Pipeline: inputs -> stream -> backend -> consumer, all running concurrently.
 *
 * A pass runs the rows of an image from its inputs through a filter into a consumer. It lets the
 * engine choose a backend and streams the image through it. If the backend fails, the pass
 * continues with another one. A gf_delivery receives the strips: its measure is that of the filter,
 * or takes the measurements of many images in memory (engine/run/job.c) or of a range of rows
 * (partial.c). With verification, a gf_verifier before it compares them with golden. */
#ifndef GF_PIPELINE_H
#define GF_PIPELINE_H

#include <sys/stat.h>

#include "engine/engine.h"

/* ---- consumers ------------------------------------------------------------------------------- */

/* Receiver of the output of a stream: strips in image order, in the thread that runs the stream.
 * gf_delivery and gf_verifier extend this struct. */
typedef struct gf_consumer gf_consumer;
struct gf_consumer {
    uint32_t golden_parts; /* parts of a strip that golden computes concurrently; 0: none */
    /* Prepare for these strips. If it succeeds, end is called once. May be NULL. */
    gf_status (*begin)(gf_consumer *consumer, const gf_cut *cut, gf_error *error);
    /* Inspect the input rows of a strip before it is submitted to the backend. Called in the reader
     * thread. Used to detect input that changes in memory. May be NULL. */
    void (*filled)(gf_consumer *consumer, const gf_slot *slot);
    /* Consume the rows and payloads of a computed strip. */
    gf_status (*strip)(gf_consumer *consumer, const gf_slot *slot, gf_error *error);
    /* Consume the merged state of a node, after the last strip. */
    gf_status (*state)(gf_consumer *consumer, uint32_t node, const void *state, gf_error *error);
    void (*end)(gf_consumer *consumer); /* release what begin allocated; may be NULL */
};

/* ---- inputs (inputs.c) ----------------------------------------------------------------------- */

/* Return the status of a regular file, which can be read again. st_mode is 0 for standard input
 * ("-") and all other files. */
struct stat gf_stat_file(const char *path);

/* Inputs of a job: its image, and the second image of each node that has one, in their order. */
enum { GF_MAX_INPUTS = 1 + 32 };

typedef struct gf_inputs {
    const char *name; /* name of the first input, for messages */
    uint32_t count;
    bool pair;        /* the second input is read together with the first one, not with the output
                       * of a node: of the same size, channels and type */
    uint32_t reading; /* inputs that a pass reads: all, or the first one; 0 counts as all */
    gf_source *sources[GF_MAX_INPUTS]; /* NULL: not open */
    double seconds[GF_MAX_INPUTS];     /* spent in reading each one */
    gf_format format;         /* of the first image; with alpha if either one of a pair has it */
    const char *const *paths; /* owned by the caller; NULL: inputs in memory */
    gf_limits limits;
    struct stat stats[GF_MAX_INPUTS]; /* of the files before they were read (gf_stat_file) */
    gf_nodata_use nodata;             /* of the filter that reads the image, or the pair */
    uint64_t first;                   /* first row to read; 0 unless source->ops->seek exists */
    gf_left_out *left_out;            /* NULL: no input declares a nodata value */
} gf_inputs;

static inline uint32_t gf_inputs_reading(const gf_inputs *inputs) {
    return inputs->reading ? inputs->reading : inputs->count;
}

/* Open input files; the caller has set pair and nodata. Always close the inputs, also after a
 * failure. */
gf_status gf_inputs_open_files(gf_inputs *inputs, uint32_t count, const char *const *paths,
                               const gf_limits *limits, gf_error *error);
/* Open `times` images in memory as one tall image. formats, in: of each input, with a list of
 * images. Always close the inputs, also after a failure. */
gf_status gf_inputs_open_memory(gf_inputs *inputs, uint32_t count, const gf_format *const *formats,
                                uint64_t times, const gf_pixels *const *in, gf_error *error);
/* Check that image i has a size, channels and type. */
gf_status gf_inputs_check_second(const gf_inputs *inputs, uint32_t i, const gf_format *format,
                                 gf_error *error);
/* Set the first row to read. Requires source->ops->seek of all sources. */
void gf_inputs_seek(gf_inputs *inputs, uint64_t first);
bool gf_inputs_can_restart(const gf_inputs *inputs);
/* Read the inputs again from their first row: seek in memory, reopen files. Requires
 * gf_inputs_can_restart. Return GF_FAILED for files that have changed since they were opened. */
gf_status gf_inputs_restart(gf_inputs *inputs, gf_error *error);
/* Return GF_FAILED if the files have changed since the inputs `before` were opened. */
gf_status gf_inputs_check_same(const gf_inputs *inputs, const gf_inputs *before, gf_error *error);
/* Read the next rows of each input that is being read; to: these rows, may be empty. */
gf_status gf_inputs_read(gf_inputs *inputs, const gf_rows *to, gf_error *error);
/* Announce the memory of the next rows that have not been announced to the sources that write ahead
 * (gf_source_ops). After a failure, end these writes. */
gf_status gf_inputs_announce(gf_inputs *inputs, const gf_rows *to, gf_error *error);
void gf_inputs_cancel(gf_inputs *inputs);
/* Finish all sources, after the last row. */
gf_status gf_inputs_finish(gf_inputs *inputs, gf_error *error);
/* Store views of the images if all inputs are in memory, one image each; else return false. */
bool gf_inputs_in_memory(const gf_inputs *inputs, gf_rows rows[GF_MAX_INPUTS]);
/* Return the bytes of --max-memory in use by the sources. */
uint64_t gf_inputs_memory(const gf_inputs *inputs);
/* Return the remarks about the inputs; those about one of two name it. */
void gf_inputs_remarks(const gf_inputs *inputs, gf_remarks *remarks);
/* Release the optional memory of the inputs; only before their first row. */
void gf_inputs_shrink(gf_inputs *inputs);
/* Close the source of a single image. Another one takes its place and its metadata. */
void gf_inputs_replace(gf_inputs *inputs, gf_source *replacement);
/* Load a single image into memory, where it can be read repeatedly, and close its file. Subtract
 * its size from *memory and add the time to *busy. */
gf_status gf_inputs_buffer(gf_inputs *inputs, uint64_t *memory, gf_busy *busy, gf_error *error);
void gf_inputs_close(gf_inputs *inputs);

/* ---- streams (stream.c, geometry.c) ---------------------------------------------------------- */

typedef struct gf_stream_job {
    const char *name; /* name of the image, for messages */
    const gf_nodes *nodes;
    gf_started on;
    gf_consumer *consumer;
    /* Positions between which rows become due (gf_cut); end 0: to the last. The inputs start at the
     * first row that they need. */
    gf_range source;
    uint64_t rows_per_strip; /* 0: chosen automatically */
    uint64_t rows_together;  /* of the source; 0 for two */
    uint32_t groups;         /* of the source */
    uint64_t max_memory;     /* maximum bytes of all strips */
    bool unthreaded;         /* read and consume alternately in the calling thread */
    gf_sink *sink;           /* receives the image from the consumer; NULL: none */
    const gf_rows *in;       /* images of all inputs in memory; NULL: they are not, or not all */
    gf_rows out;             /* that of the sink in memory; data NULL: it is not */
    double *seconds; /* adds the computing time of each node, summed over threads; may be NULL */
} gf_stream_job;

/* Point at which a stream failed. */
typedef struct gf_stream_stop {
    bool by_backend;       /* the backend failed, not the source or the consumer */
    bool begun;            /* rows were read; otherwise source and consumer are unchanged */
    uint64_t done;         /* row after the last one passed to the consumer; 0: none was */
    gf_error device_error; /* failure of the device while the file failed, if any */
} gf_stream_stop;

/* Stream the image, or its rows to compute, from the inputs through the backend to the consumer.
 * Use lower strips if the backend cannot allocate the requested ones. Add strips and times to the
 * report. On failure, fill in *stop, which may be NULL. */
gf_status gf_stream_run(const gf_stream_job *job, gf_inputs *inputs, gf_report *report,
                        gf_stream_stop *stop, gf_error *error);

/* Choose strip height and number of slots as the backend requests, within max_memory. */
gf_status gf_choose_geometry(const gf_stream_job *job, gf_cut *out, gf_error *error);

/* Reduce slots or strip height after the backend ran out of memory. Return false if impossible. */
bool gf_shrink_geometry(const gf_stream_job *job, gf_cut *geometry);

/* ---- comparison with golden (verify.c) ------------------------------------------------------- */

/* Consumer that verifies and forwards strips. The caller sets the fields from next to golden. */
typedef struct gf_verifier {
    gf_consumer base;
    gf_consumer *next;           /* receives the verified strips */
    const gf_stream_job *stream; /* the image, its nodes, and the backend to verify */
    void *golden;                /* state of gf_backend_verify */
    /* Valid while a stream runs. */
    gf_cut cut;        /* that of the stream, with memory for one strip */
    gf_slot slot;      /* of golden */
    gf_node_rows *out; /* of the slot */
    uint64_t *digests; /* per slot of the stream: digest of the input rows at submission */
    void *run;
} gf_verifier;

/* Return the verifier as a consumer. For each strip, golden computes the rows, records and payloads
 * from the same input in parts, and at the end the state. Any difference is GF_FAILED, and so are
 * input rows that changed after the strip was submitted. */
gf_consumer *gf_verifier_consumer(gf_verifier *verifier, uint32_t parts);

/* ---- passes (pass.c) ------------------------------------------------------------------------- */

typedef struct gf_pass {
    gf_engine *engine;
    gf_inputs *inputs; /* positioned at their first row; read again if a backend fails */
    const gf_nodes *nodes;
    gf_rows in[GF_MAX_INPUTS];    /* images in memory */
    double seconds[GF_MAX_NODES]; /* that each node has computed */
    /* The caller sets source and sink. The others are those of the backend that computes. */
    gf_stream_job job;
    gf_consumer *consumer;
    uint64_t images;         /* expected number of similar images, with this one; 0: one */
    uint64_t memory;         /* maximum bytes of the strips */
    double encode;           /* estimated nanoseconds to write the outputs, per input sample */
    uint32_t encode_threads; /* threads of the encoder; 0: it runs in the caller's thread */
    gf_report *report;       /* statistics of the image: formats, backend, strips and times */
    bool dry_run;            /* only choose backend and strips, and report them */
    bool begun;              /* output: rows were read or computed */
    gf_verifier verifier;    /* set by gf_pass_run if verification is enabled */
} gf_pass;

gf_status gf_pass_run(gf_pass *pass, gf_error *error);

/* ---- outputs and measurements (delivery.c) --------------------------------------------------- */

/* Progress callback of an image, which may be read more than once. */
typedef struct gf_watch {
    const char *name;                                             /* of the image, for messages */
    uint64_t item;                                                /* index in the batch */
    bool (*progress)(void *context, const gf_progress *progress); /* NULL: none */
    void *context;
    uint64_t first, rows;  /* a pass reads rows [first, first + rows) of the input */
    uint32_t pass, passes; /* number of the current reading pass, from 0, and of all passes */
} gf_watch;

/* Receiver of the measurements of a node. */
typedef struct gf_delivered {
    const gf_measure *measure; /* only rows, payload and finish are used; NULL: none */
    void *data;                /* data of the measure */
    uint64_t next;             /* row to receive; earlier ones recur if another backend continues */
} gf_delivered;

/* An image that a delivery writes. */
typedef struct gf_written {
    uint32_t edge;
    gf_sink *sink;   /* NULL: not open */
    uint64_t digest; /* of the rows written, if verified */
    uint64_t memory; /* of the caller: reserved for the sink, in bytes */
} gf_written;

/* Consumer that writes rows to sinks and passes records, payloads and states to measures. */
typedef struct gf_delivery {
    gf_consumer base;
    const gf_nodes *nodes;
    gf_delivered node[GF_MAX_NODES];
    gf_written *written; /* `written_count` images */
    uint32_t written_count;
    bool digests;          /* compute those of written rows */
    const gf_watch *watch; /* NULL: none */
    gf_report *report;     /* receives the time spent here, as encoding time */
    uint64_t seen;         /* rows of the input that were reported as progress */
} gf_delivery;

/* Set the functions of a delivery. The caller has set its other fields. */
void gf_delivery_init(gf_delivery *delivery);

#endif
