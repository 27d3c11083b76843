/* Image files: sources and sinks by content or name, and what their formats cost.
 *
 * The format of an input is detected from its first bytes, unless the input is declared as raw. The
 * format of an output follows from its name or from --format. */
#ifndef GF_CODECS_H
#define GF_CODECS_H

#include "io/limits.h"
#include "io/stream/stream.h"

/* Open a file, or standard input for "-". On success the format is set and checked against the
 * limits. Close with source->ops->close. */
gf_status gf_source_open(const char *path, const gf_limits *limits, gf_source **source,
                         gf_error *error);

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

/* Return true if the sink for an image of this type would write the same IDAT chunks as a device
 * (gf_encode_png_device). Instead of rows, the caller may write these to the output, and set
 * clipped. */
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

/* Read the file of a finished sink under its temporary name, page limits->page of it, and compare
 * the digest of its rows (digest.h) with `digest`, that of the rows written. Return GF_FAILED if
 * they differ. Sinks whose rows cannot be read back (pipes, memory, lossy formats) pass. */
gf_status gf_read_back(const gf_sink *sink, const gf_format *format, const gf_limits *limits,
                       uint64_t digest, gf_error *error);

/* Return the names for gf_file_options.write.format, NULL-terminated. */
const char *const *gf_output_formats(void);

/* Estimated time to read and write a format, in ns per sample of a photograph, summed over all
 * threads, and the number of threads. */
typedef struct gf_codec_costs {
    double decode, encode;
    uint32_t decode_threads, encode_threads;
} gf_codec_costs;

/* Return the costs of encoding a file of this name with the options, with at most `threads`
 * threads; 0 for an unknown format. */
gf_codec_costs gf_encoding_costs(const char *path, const gf_file_options *options,
                                 uint32_t threads);

#endif
