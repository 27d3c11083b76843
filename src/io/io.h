/* Sources and sinks: images as streams of rows, independent of the file format.
 *
 * The format of an input is detected from its first bytes, unless the input is declared as raw. The
 * format of an output follows from its name or from --format. A source returns rows from top to
 * bottom. A sink receives rows in the same order and then commits or aborts. */
#ifndef GF_IO_H
#define GF_IO_H

#include "core/image.h"
#include "io/meta/metadata.h"

/* The page of a file that was read last, from which the next one is found. */
typedef struct gf_page_place {
    uint64_t page;  /* from 1; 0: none */
    uint64_t pages; /* in the file */
    uint64_t offset;
    bool all; /* smaller versions of other pages count, because there is nothing else */
} gf_page_place;

typedef struct gf_limits {
    uint64_t max_pixels;  /* width x height of an input; option --max-pixels */
    uint64_t max_memory;  /* bytes allocated for one image or one row; option --max-memory */
    uint64_t max_chunk;   /* bytes of one metadata chunk; option --max-chunk */
    uint32_t max_seconds; /* CPU time of decoding; option --max-seconds */
    bool no_sandbox;      /* decode untrusted formats in this process; option --no-sandbox */
    uint32_t threads;     /* threads that read one file; 0: one */
    /* Output bytes of a part of a file that one thread decodes; 0: default. Tests use small ones.
     */
    size_t segment;
    const gf_raw *raw;    /* format of an input without a header; NULL: read it from the header */
    bool strict;          /* fail for damage that is otherwise read and reported */
    gf_alpha alpha;       /* which channel is alpha */
    bool keep_nodata;     /* treat samples with the nodata value of the file as others */
    bool autorotate;      /* turn the image as its EXIF orientation says */
    const gf_crop *crop;  /* part of the image to read; NULL: all */
    uint32_t page;        /* page of the file, from 1; 0: the first */
    bool stacked;         /* read all pages, as one image */
    gf_depth as;          /* as in gf_file_options */
    const char *channels; /* as in gf_file_options */
    gf_page_place *place; /* updated; NULL: pages are found from the first one */
} gf_limits;

/* ---- limits ---------------------------------------------------------------------------------- */

/* Return the limits with each 0 replaced by its default. limits may be NULL. */
gf_limits gf_limits_resolve(const gf_limits *limits);
/* Return the limits set by options (NULL: all defaults) for a file that `threads` threads read. */
gf_limits gf_limits_of(const gf_file_options *options, uint32_t threads);
/* Validate the format in a file's header, before anything is computed from it. Return GF_FAILED if
 * the width or height is 0, for over limits->max_pixels pixels, or if gf_format_check fails. */
gf_status gf_check_pixels(const gf_format *format, const gf_limits *limits, const char *name,
                          gf_error *error);
/* Return GF_USAGE for a number outside the range of its option. Both may be NULL. */
gf_status gf_check_options(const gf_engine_options *engine, const gf_file_options *files,
                           gf_error *error);
/* Return the CPU seconds to decode rows: max_seconds, and 0.1 us per sample, as slow decoders take.
 */
uint64_t gf_limit_seconds(const gf_limits *limits, const gf_format *format);
/* Return GF_FAILED if bytes exceeds max_memory. `what` names the allocation in the message: "the
 * image", "a row". The message names the option that raises the limit, as in gf_check_pixels. */
gf_status gf_check_memory(uint64_t bytes, uint64_t max_memory, const char *name, const char *what,
                          gf_error *error);
/* Allocate zeroed memory, limited as by gf_check_memory. The caller frees it. NULL on failure. */
void *gf_alloc_limited(uint64_t bytes, uint64_t max_memory, const char *name, const char *what,
                       gf_error *error);

/* ---- sources --------------------------------------------------------------------------------- */

typedef struct gf_source gf_source;

typedef struct gf_source_ops {
    /* Read the next `rows` rows to dst, `stride` bytes apart. Not called after the last row. */
    gf_status (*read)(gf_source *source, void *dst, size_t stride, uint64_t rows, gf_error *error);
    /* After the last row: read the data that follows the pixels (checksums, late metadata). */
    gf_status (*finish)(gf_source *source, gf_error *error);
    void (*close)(gf_source *source);
    /* Set the next row to read. NULL if rows can only be read in order. */
    void (*seek)(gf_source *source, uint64_t y);
    /* Read only `width` columns from x on, which become the format; only before the first row.
     * Return false if this saves nothing. NULL if rows can only be read as a whole. */
    bool (*cut)(gf_source *source, uint64_t x, uint64_t width);
    /* Announce the memory of the next rows that have not been announced: a source with threads of
     * its own may write to it before read is called, with the same arguments. Either all rows are
     * announced or none; at most GF_SOURCE_AHEAD announcements are without a read. NULL if the
     * source does not write ahead. */
    gf_status (*announce)(gf_source *source, void *dst, size_t stride, uint64_t rows,
                          gf_error *error);
    /* End the writes to announced memory, and complete `bytes`. Only close may follow. NULL if
     * announce is. */
    void (*cancel)(gf_source *source);
    /* Release the optional memory; only before the first row. NULL if there is none. */
    void (*shrink)(gf_source *source);
} gf_source_ops;

enum { GF_SOURCE_AHEAD = 8 };

/* Samples that a source returns as they are stored, because no gf_format describes them. format is
 * then that of their bytes: u8, with the bytes of a pixel as channels. gf_samples_source makes an
 * image of them. */
typedef struct gf_samples {
    char kind;            /* unsigned, signed, floating-point, bool: 'u', 'i', 'f' or 'b' */
    uint32_t bytes;       /* of a sample: 1, 2, 4 or 8; 0: format describes the samples */
    bool little;          /* byte order */
    bool several;         /* the channels to read must be chosen */
    uint64_t count;       /* channels of a pixel */
    uint64_t width;       /* of the image */
    uint64_t first;       /* sample of a row with the first channel of the first pixel */
    uint64_t step, plane; /* samples from pixel to pixel, and from channel to channel */
    bool transposed;      /* columns are stored as rows */
} gf_samples;

/* Common first member of all sources. */
struct gf_source {
    const gf_source_ops *ops;
    gf_format format;
    gf_samples samples;
    gf_nodata nodata;
    gf_metadata metadata; /* late chunks are present only after finish */
    double cost;          /* estimated time to read, in ns per sample on one core */
    /* A source that reads in its own threads sets threads to their maximum number, the caller's
     * included, and busy_seconds to the sum of their busy times, complete after finish. threads is
     * 0 if all work is done in the calls of read. */
    uint32_t threads;
    double busy_seconds;
    /* Rows are decoded in groups of this height from row 0, in announced memory if it contains the
     * whole group; 0: the division is of no use to the caller. All threads decode `groups` of them
     * at a time. */
    uint64_t rows_together;
    uint32_t groups;
    uint64_t memory;  /* bytes of --max-memory in use: buffers for speed */
    uint32_t dropped; /* bits of gf_dropped: metadata that is not read */
    uint64_t bytes;   /* bytes of the file that were read or skipped; complete after finish or
                       * cancel */
    uint32_t pages;   /* pages of the file; 0: the format has none */
    bool held;        /* reading any row reads the whole image, which is held in memory */
    char kind[8];     /* file format: "png"; empty for memory */
    char stored[96];  /* encoding of the pixels: "8-bit palette, interlaced" */
};

/* Return the busy time of a source, complete after finish. called: seconds spent in its calls. */
static inline gf_busy gf_source_busy(const gf_source *source, double called) {
    return source->threads ? (gf_busy){source->busy_seconds, source->threads}
                           : (gf_busy){called, 1};
}

/* Allocate a source of `size` bytes, zeroed apart from ops and the metadata. The source's struct
 * begins with a gf_source. Return NULL if out of memory. */
void *gf_source_new(size_t size, const gf_source_ops *ops, const char *name, gf_error *error);

/* Open a file, or standard input for "-". On success the format is set and checked against the
 * limits. Close with source->ops->close. */
gf_status gf_source_open(const char *path, const gf_limits *limits, gf_source **source,
                         gf_error *error);

/* Create a source for rows in memory. The rows are borrowed until close. */
gf_status gf_memory_source(const gf_format *format, const void *data, size_t stride,
                           gf_source **source, gf_error *error);
/* Transfer ownership of the rows to a memory source. Its close calls release(data). */
void gf_memory_source_own(gf_source *source, void *data, void (*release)(void *data));
/* Return the rows of a memory source of one image. */
gf_pixels gf_memory_source_pixels(const gf_source *source);
/* Return true for a memory source. */
bool gf_memory_source_is(const gf_source *source);

/* Read a whole image and finish the source. *pixels receives rows without padding, which the caller
 * frees. `name`, `what` and max_memory are used as by gf_check_memory. */
gf_status gf_source_read_all(gf_source *source, const char *name, const char *what,
                             uint64_t max_memory, void **pixels, gf_error *error);

/* Create a source for `count` images in memory that have one format, stacked vertically: image i is
 * images[i * step]. All memory is borrowed until close. */
gf_status gf_batch_source(const gf_format *format, uint64_t count, const gf_pixels *images,
                          size_t step, gf_source **source, gf_error *error);

/* Combine two sources of one format. Each row holds a row of a in the first half of the stride and
 * a row of b in the second half. Takes ownership of a and b unless it fails. */
gf_status gf_pair_source(gf_source *a, gf_source *b, const char *a_name, const char *b_name,
                         gf_source **source, gf_error *error);

/* ---- sinks ----------------------------------------------------------------------------------- */

typedef struct gf_sink gf_sink;

typedef struct gf_sink_ops {
    /* Write the next `rows` rows. Not called after the last row. */
    gf_status (*write)(gf_sink *sink, const void *src, size_t stride, uint64_t rows,
                       gf_error *error);
    /* After the last row: write the data that follows the pixels. Afterwards only the rename can
     * fail. metadata is that of the finished source; NULL for none. */
    gf_status (*finish)(gf_sink *sink, const gf_metadata *metadata, gf_error *error);
    /* Free the sink. Remove the written file unless the output was committed. */
    void (*close)(gf_sink *sink);
} gf_sink_ops;

struct gf_sink {
    const gf_sink_ops *ops;
    double cost;      /* estimated time to write, in ns per sample on one core */
    uint32_t threads; /* as in gf_source */
    double busy_seconds;
    uint64_t memory; /* bytes of --max-memory in use: buffers for speed, or the whole image */
    /* The sink counts the samples written with the maximum value, alpha excluded. Counting takes
     * less than 2 % of the time of an encoder; it would take more where rows are only copied.
     * clipped is complete after finish. */
    bool counts_clipped;
    uint64_t clipped;
    /* The sink stores other rows than it receives. If digests is set before the first row, digest
     * is that of the stored rows (gf_digest_rows). */
    bool converts, digests;
    uint64_t digest;
    struct gf_output *output; /* output file; NULL: memory */
    gf_sink *inner;           /* the sink that receives the rows of this one; NULL: none */
    bool exact;               /* lossless: a reader of the file gets the same rows */
    bool headerless;          /* the file does not store its format */
    gf_metadata_form form;    /* form of the metadata that the file stores */
    uint32_t dropped;         /* bits of gf_dropped: items that are too large for this form */
    gf_remarks remarks;       /* about the output; complete after finish */
    /* Before the first row: free the buffers that only improve speed. NULL if there are none. */
    gf_status (*shrink)(gf_sink *sink, gf_error *error);
    /* Instead of all rows, write the next bytes of the encoded image: the IDAT chunks of a PNG
     * file. The caller sets clipped. NULL for other formats. */
    gf_status (*write_encoded)(gf_sink *sink, const void *data, size_t size, gf_error *error);
    /* Instead of finish: complete a page that is not the last one. Then only gf_sink_next_page and
     * close may follow. NULL for formats that hold one image. */
    gf_status (*end_page)(gf_sink *sink, const gf_metadata *metadata, gf_error *error);
};

/* Allocate a sink; as gf_source_new. Takes ownership of output (may be NULL): closes it on
 * failure. */
void *gf_sink_new(size_t size, const gf_sink_ops *ops, struct gf_output *output, gf_error *error);

/* Open an output file, or standard output for "-". Fail before the first byte is written if the
 * file format does not support the image, if the file exists and force is not set, or if the
 * directory is not writable. metadata: read by the source before its pixels; NULL for none.
 * threads: maximum number of encoding threads; 0: one. The bytes of the file do not depend on it.
 */
gf_status gf_sink_open(const char *path, const gf_format *format, const gf_metadata *metadata,
                       const gf_file_options *options, uint32_t threads, gf_sink **sink,
                       gf_error *error);

/* Replace a sink after its end_page by one for the next page of the file. The caller closes the
 * sink, also on failure. */
gf_status gf_sink_next_page(gf_sink **sink, const char *path, const gf_format *format,
                            const gf_metadata *metadata, const gf_file_options *options,
                            uint32_t threads, gf_error *error);

/* Return true if the sink for an image of this type has write_encoded, and would write the same
 * bytes as a device (gf_encode_png_device). */
bool gf_sink_takes_encoded(const char *path, gf_type type, const gf_file_options *options);

/* Return true if several processes can write parts of the file: every row has a fixed offset. */
bool gf_sink_has_parts(const char *path, const gf_file_options *options);
/* Open such a file. format describes the whole image. With temporary NULL, create the file under
 * the temporary name gf_output_pending_path(sink->output), with its header and without rows.
 * Otherwise open the file that another process created under that name, to write rows from `first`
 * on. finish completes these rows; the sink does not commit the file. */
gf_status gf_sink_open_part(const char *path, const char *temporary, const gf_format *format,
                            uint64_t first, const gf_file_options *options, uint32_t threads,
                            gf_sink **sink, gf_error *error);

/* Create a sink that writes to `count` images in memory that have one format, one after the other.
 * All memory is borrowed until close. */
gf_status gf_memory_sink(const gf_format *format, uint64_t count, const gf_out_pixels *images,
                         gf_sink **sink, gf_error *error);

/* Read the file of a finished sink under its temporary name, page limits->page of it, and compare
 * the digest of its rows (digest.h) with `digest`, that of the rows written. Return GF_FAILED if
 * they differ. Sinks whose rows cannot be read back (pipes, memory, lossy formats) pass. */
gf_status gf_read_back(const gf_sink *sink, const gf_format *format, const gf_limits *limits,
                       uint64_t digest, gf_error *error);

/* Estimated time to read and write a format, in ns per sample of a photograph, summed over all
 * threads, and the number of threads. */
typedef struct gf_codec_costs {
    double decode, encode;
    uint32_t decode_threads, encode_threads;
} gf_codec_costs;

/* Return the costs of encoding in a format of gf_output_formats() at the compression of the
 * options, with at most `threads` threads; 0 for an unknown format. */
gf_codec_costs gf_encoding_costs(const char *format, const gf_file_options *options,
                                 uint32_t threads);

#endif
