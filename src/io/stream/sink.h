/* Sinks: receivers of the rows of an image, from top to bottom, which then commit or abort. */
#ifndef GF_SINK_H
#define GF_SINK_H

#include "io/meta/metadata.h"

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
    struct gf_output *output;     /* output file; NULL: memory */
    gf_sink *inner;               /* the sink that receives the rows of this one; NULL: none */
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

#endif
