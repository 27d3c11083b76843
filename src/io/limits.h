/* Limits on what is read from a file, and options of reading: what a caller asks of a source. */
#ifndef GF_LIMITS_H
#define GF_LIMITS_H

#include "core/image.h"

/* The page of a file that was read last, from which the next one is found. */
typedef struct gf_page_place {
    uint64_t page;  /* from 1; 0: none */
    uint64_t pages; /* in the file */
    uint64_t offset;
    bool all; /* smaller versions of other pages count, because there is nothing else */
} gf_page_place;

typedef struct gf_limits {
    uint64_t max_pixels;  /* width x height of an image; option --max-pixels */
    uint64_t max_memory;  /* bytes allocated for one image or one row; option --max-memory */
    uint64_t max_chunk;   /* bytes of one metadata chunk; option --max-chunk */
    uint32_t max_seconds; /* CPU time of decoding; option --max-seconds */
    bool no_sandbox;      /* decode untrusted formats in this process; option --no-sandbox */
    uint32_t threads;     /* threads that read one file; 0: one */
    bool shared;          /* the processors also compute and encode rows of this image */
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
    /* Return the scale, in 1/8, at which to decode an image, upright; `chain` is its argument.
     * Formats that cannot scale do not call it. NULL: 8. */
    uint32_t (*eighths)(const void *chain, const gf_format *image);
    const void *chain;
} gf_limits;

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

#endif
