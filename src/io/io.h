/* Sources and sinks: images as streams of rows, whatever file they live in.
 *
 * The kind of an input is read from its first bytes, unless it is said to have no header; of an
 * output from its name or the format asked for. A source gives rows top to bottom; a sink takes
 * them in that order and commits or aborts. */
#ifndef GF_IO_H
#define GF_IO_H

#include "core/image.h"

typedef struct gf_limits {
    uint64_t max_pixels;  /* width x height of an input; option --max-pixels */
    uint64_t max_memory;  /* bytes held for one image or one row; option --max-memory */
    uint64_t max_chunk;   /* bytes of one metadata chunk; option --max-chunk */
    uint32_t max_seconds; /* of CPU time in the sandbox; option --max-seconds */
    bool no_sandbox;      /* what runs there runs in this process; option --no-sandbox */
    uint32_t threads;     /* that may read one file; 0: one */
    const gf_raw *raw;    /* the input has no header, and holds this; NULL: it says what it holds */
} gf_limits;

typedef struct gf_chunk {
    char name[5];
    bool late; /* stood behind the pixels, where it is put back */
    size_t size;
    unsigned char *data;
} gf_chunk;

/* What travels beside the pixels. Chunks are carried as the bytes they are, never parsed. */
typedef struct gf_metadata {
    gf_chunk *chunks;
    size_t count;
    char damaged[5];  /* name of a chunk that could not be carried because it is damaged, or "" */
    double pfm_scale; /* magnitude of the scale in a PFM header; 1 elsewhere */
} gf_metadata;

void gf_metadata_init(gf_metadata *metadata);
void gf_metadata_clear(gf_metadata *metadata);

/* Appends a copy of a chunk; name is 4 characters. GF_FAILED if out of memory, the metadata is then
 * unchanged; file is the name for the message. */
gf_status gf_metadata_append(gf_metadata *metadata, const char *name, bool late, const void *data,
                             size_t size, const char *file, gf_error *error);

/* ---- limits ---------------------------------------------------------------------------------- */

/* The limits with every 0 replaced by its default. limits may be NULL. */
gf_limits gf_limits_resolve(const gf_limits *limits);
/* The same of what the options say, NULL for nothing; so many threads may read a file. */
gf_limits gf_limits_of(const gf_file_options *options, uint32_t threads);
/* Checks a format as a file gives it, before anything is computed from it: GF_FAILED if a size is
 * 0, their product is over limits->max_pixels, or for what gf_format_check refuses. */
gf_status gf_check_pixels(const gf_format *format, const gf_limits *limits, const char *name,
                          gf_error *error);
/* Checks bytes before they are allocated; what names them ("the image", "a row"). Its message and
 * that of gf_check_pixels name the option that raises the limit. */
gf_status gf_check_memory(uint64_t bytes, uint64_t max_memory, const char *name, const char *what,
                          gf_error *error);
/* Memory that is checked so, all 0 and the caller's to free. NULL on failure. */
void *gf_hold(uint64_t bytes, uint64_t max_memory, const char *name, const char *what,
              gf_error *error);

/* ---- sources --------------------------------------------------------------------------------- */

typedef struct gf_source gf_source;

typedef struct gf_source_ops {
    /* Reads the next `rows` rows to dst, `stride` bytes apart. Never called past the last row. */
    gf_status (*read)(gf_source *source, void *dst, size_t stride, uint64_t rows, gf_error *error);
    /* After the last row: reads what follows the pixels (checksums, late metadata). */
    gf_status (*finish)(gf_source *source, gf_error *error);
    void (*close)(gf_source *source);
    /* Reads row y next. NULL where rows can be read only in their order. */
    void (*seek)(gf_source *source, uint64_t y);
} gf_source_ops;

/* The common head of every source; the kinds extend it. */
struct gf_source {
    const gf_source_ops *ops;
    gf_format format;
    gf_metadata metadata; /* chunks after the pixels are there only after finish */
    double cost;          /* estimated nanoseconds of one core that a sample takes to read */
    /* Of a source that reads in threads of its own, at most so many at a time (its caller's among
     * them): the seconds that all of them were busy, complete after finish. Where threads is 0,
     * whoever calls it takes the time. */
    uint32_t threads;
    double busy_seconds;
    uint32_t dropped; /* bits of gf_dropped: metadata that is not carried */
    uint64_t bytes;   /* of the file, that were read of it or skipped; complete after finish */
    char kind[8];     /* of file, "png"; empty for memory */
    char stored[96];  /* how the file holds the pixels: "8-bit palette, interlaced" */
};

/* How long a source was busy, complete after finish; calls of it took so many seconds. */
static inline gf_busy gf_source_busy(const gf_source *source, double called) {
    return source->threads ? (gf_busy){source->busy_seconds, source->threads}
                           : (gf_busy){called, 1};
}

/* A new source of a kind, all else 0; NULL if there is no memory for `size` bytes. The kind's
 * struct begins with a gf_source. */
void *gf_source_new(size_t size, const gf_source_ops *ops, const char *name, gf_error *error);

/* Opens a file, or standard input for "-". On success the format is known and checked against the
 * limits; close with source->ops->close. */
gf_status gf_source_open(const char *path, const gf_limits *limits, gf_source **source,
                         gf_error *error);

/* A source over rows in memory (borrowed until close). */
gf_status gf_memory_source(const gf_format *format, const void *data, size_t stride,
                           gf_source **source, gf_error *error);
/* Hands the rows of a memory source over to it: its close releases them. */
void gf_memory_source_own(gf_source *source, void *data, void (*release)(void *data));
/* The rows of a memory source over one image. */
gf_pixels gf_memory_source_pixels(const gf_source *source);
/* Does it have all rows in memory? */
bool gf_memory_source_is(const gf_source *source);

/* Reads a whole image, to its end, into memory that is the caller's to free; its rows lie close
 * together. Refuses more than max_memory bytes; name and what are for that message. */
gf_status gf_source_read_all(gf_source *source, const char *name, const char *what,
                             uint64_t max_memory, void **pixels, gf_error *error);

/* A source over `count` images of one format in memory, one below the other: image i is
 * images[i * step]. All is borrowed until close. */
gf_status gf_batch_source(const gf_format *format, uint64_t count, const gf_pixels *images,
                          size_t step, gf_source **source, gf_error *error);

/* Two sources of one format as one: each of its rows holds a row of a and, from the middle of the
 * stride on, a row of b. Takes both over, unless it fails. The names are for messages. */
gf_status gf_pair_source(gf_source *a, gf_source *b, const char *a_name, const char *b_name,
                         gf_source **source, gf_error *error);

/* ---- sinks ----------------------------------------------------------------------------------- */

typedef struct gf_sink gf_sink;

typedef struct gf_sink_ops {
    /* Takes the next `rows` rows. Never called past the last row. */
    gf_status (*write)(gf_sink *sink, const void *src, size_t stride, uint64_t rows,
                       gf_error *error);
    /* After the last row: writes what follows the pixels. All that can fail has then happened, but
     * for the renaming. metadata is the source's, now complete (NULL for none). */
    gf_status (*finish)(gf_sink *sink, const gf_metadata *metadata, gf_error *error);
    /* Frees the sink. Unless the output was put in place: removes what was written. */
    void (*close)(gf_sink *sink);
} gf_sink_ops;

struct gf_sink {
    const gf_sink_ops *ops;
    double cost;      /* estimated nanoseconds of one core that a sample takes to write */
    uint32_t threads; /* as a source's */
    double busy_seconds;
    uint64_t memory; /* bytes of --max-memory that it holds: for speed, or the whole image */
    /* Does it count the samples written at the largest value, alpha aside? Where rows are encoded
     * that takes less than 2 % of the time; where they are copied it would take more. The count is
     * complete after finish. */
    bool counts_clipped;
    uint64_t clipped;
    struct gf_output *output; /* where it writes; NULL: to memory */
    bool exact;               /* whoever reads the file gets the same rows, */
    bool headless;            /* if he knows what they are */
    /* Before the first row: gives up what it holds for speed. NULL if there is nothing. */
    gf_status (*spare)(gf_sink *sink, gf_error *error);
};

/* As gf_source_busy. */
static inline gf_busy gf_sink_busy(const gf_sink *sink, double called) {
    return sink->threads ? (gf_busy){sink->busy_seconds, sink->threads} : (gf_busy){called, 1};
}

/* As gf_source_new; output, which may be NULL, is owned from now on, and closed on failure. */
void *gf_sink_new(size_t size, const gf_sink_ops *ops, struct gf_output *output, gf_error *error);

/* Opens an output file, or standard output for "-". Refuses, before a byte is written: a format
 * that cannot hold the image without loss, an existing file without force, a folder that cannot be
 * written. metadata (NULL for none) holds what the source knows before its pixels. threads: that
 * may write it; 0 counts as one. The bytes of the file do not depend on it. */
gf_status gf_sink_open(const char *path, const gf_format *format, const gf_metadata *metadata,
                       const gf_file_options *options, uint32_t threads, gf_sink **sink,
                       gf_error *error);

/* Can processes write parts of it? A file of rows that have their place. */
bool gf_sink_has_parts(const char *path, const gf_file_options *options);
/* Opens such a file; format is the whole image's. temporary NULL: creates it, with its header but
 * without rows, under the temporary name gf_output_reach(sink->output). Otherwise that name, of a
 * file created so by any process, to write rows from `first` on; after finish they are in the file,
 * and the sink is not put in place. */
gf_status gf_sink_open_part(const char *path, const char *temporary, const gf_format *format,
                            uint64_t first, const gf_file_options *options, uint32_t threads,
                            gf_sink **sink, gf_error *error);

/* A sink into rows in memory (borrowed until close). */
gf_status gf_memory_sink(const gf_format *format, void *data, size_t stride, gf_sink **sink,
                         gf_error *error);

/* A sink into `count` images of one format in memory, one after the other. All is borrowed until
 * close. */
gf_status gf_batch_sink(const gf_format *format, uint64_t count, const gf_out_pixels *images,
                        gf_sink **sink, gf_error *error);

/* Reads the file of a sink that has finished, before it has its name, and compares the digest of
 * its rows (digest.h) with that of the rows which the sink took. GF_FAILED where they differ. Sinks
 * without a file that gives the rows back (pipes, memory, lossy formats) pass. */
gf_status gf_read_back(const gf_sink *sink, const gf_format *format, const gf_limits *limits,
                       uint64_t digest, gf_error *error);

/* Estimates of what a format takes: nanoseconds of one core for a sample of a photograph, all
 * threads together, and how many threads share them. */
typedef struct gf_codec_costs {
    double decode, encode;
    uint32_t decode_threads, encode_threads;
} gf_codec_costs;

/* What a format of gf_output_formats() takes with this compression (of gf_file_options) where so
 * many threads are; false for an unknown format. */
bool gf_format_costs(const char *format, const char *compression, uint32_t threads,
                     gf_codec_costs *costs);

#endif
