/* Sources: images as streams of rows from top to bottom, independent of the file format. Sinks:
 * receivers of such rows, which then commit or abort. */
#ifndef GF_STREAM_H
#define GF_STREAM_H

#include "core/image.h"
#include "io/meta/metadata.h"

typedef struct gf_source gf_source;
typedef struct gf_sink gf_sink;

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
    gf_scaled scaled; /* as gf_limits.eighths says */
    bool held;        /* reading any row reads the whole image, which is held in memory */
    const struct gf_codec *codec; /* file format; NULL for memory. Set by gf_source_open unless
                                   * the source knows a better one. */
    char stored[96];              /* encoding of the pixels: "8-bit palette, interlaced" */
};

/* Return the busy time of a source, complete after finish. called: seconds spent in its calls. */
static inline gf_busy gf_source_busy(const gf_source *source, double called) {
    return source->threads ? (gf_busy){source->busy_seconds, source->threads}
                           : (gf_busy){called, 1};
}

/* Allocate a source of `size` bytes, zeroed apart from ops and the metadata. The source's struct
 * begins with a gf_source. Return NULL if out of memory. */
void *gf_source_new(size_t size, const gf_source_ops *ops, const char *name, gf_error *error);

/* Read a whole image and finish the source. *pixels receives rows without padding, which the caller
 * frees; if they are shorter than min_row, they are at the end of memory for rows of min_row bytes.
 * `name`, `what` and max_memory are used as by gf_check_memory. */
gf_status gf_source_read_all(gf_source *source, const char *name, const char *what,
                             uint64_t max_memory, size_t min_row, void **pixels, gf_error *error);

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
    struct gf_output *output;     /* output file; NULL: memory */
    const struct gf_codec *codec; /* file format; NULL: memory. Set by gf_sink_open, as cost and
                                   * form are */
    gf_metadata_form form;        /* form of the metadata that the file stores */
    uint32_t dropped;             /* bits of gf_dropped: items that are too large for this form */
    gf_remarks remarks;           /* about the output; complete after finish */
    /* Before the first row: free the buffers that only improve speed. NULL if there are none. */
    gf_status (*shrink)(gf_sink *sink, gf_error *error);
    /* Instead of finish: complete a page that is not the last one. Then only gf_sink_next_page and
     * close may follow. NULL for formats that hold one image. */
    gf_status (*end_page)(gf_sink *sink, const gf_metadata *metadata, gf_error *error);
};

/* Allocate a sink; as gf_source_new. Takes ownership of output (may be NULL): closes it on
 * failure. */
void *gf_sink_new(size_t size, const gf_sink_ops *ops, struct gf_output *output, gf_error *error);

/* Create a source for rows in memory. The rows are borrowed until close. */
gf_status gf_memory_source(const gf_format *format, const void *data, size_t stride,
                           gf_source **source, gf_error *error);
/* Transfer ownership of the rows to a memory source. Its close calls release(data). */
void gf_memory_source_own(gf_source *source, void *data, void (*release)(void *data));
/* Store a view of the rows of a memory source with one image whose samples are aligned; return
 * false for another source. */
bool gf_memory_source_rows(const gf_source *source, gf_rows *rows);
/* The same for a memory sink, if its image has this format. Rows that are in place are not copied.
 */
bool gf_memory_sink_rows(const gf_sink *sink, const gf_format *format, gf_rows *rows);
/* Return true for a memory source. */
bool gf_memory_source_is(const gf_source *source);

/* Create a source for `count` images in memory that have one format, stacked vertically. All memory
 * is borrowed until close. */
gf_status gf_batch_source(const gf_format *format, uint64_t count, const gf_pixels *images,
                          gf_source **source, gf_error *error);

/* Create a sink that writes to `count` images in memory that have one format, one after the other.
 * All memory is borrowed until close. */
gf_status gf_memory_sink(const gf_format *format, uint64_t count, const gf_out_pixels *images,
                         gf_sink **sink, gf_error *error);

#endif
