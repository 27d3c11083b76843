/* Output of extracted samples: .csv, .npy or .json, by the extension of the file. */
#ifndef GF_SAMPLE_SINK_H
#define GF_SAMPLE_SINK_H

#include "core/image.h"

#define GF_SAMPLE_LUMA 255

/* Description of the samples. */
typedef struct gf_sample_layout {
    gf_type type;
    uint64_t width;    /* pixels per row of the image */
    uint32_t channels; /* measured per pixel: position = (y * width + x) * channels + channel */
    const char *names[GF_MAX_CHANNELS]; /* names of these channels; string constants */
    uint8_t indices[GF_MAX_CHANNELS];   /* of each channel in a pixel; GF_SAMPLE_LUMA for luma */
    bool with_bin; /* several bins are extracted: write the bin of each sample */
} gf_sample_layout;

typedef struct gf_sample_sink gf_sample_sink;

/* Open a file, or standard output for "-", which gets CSV unless options->sample_format is set. The
 * rules of gf_output_open apply, but text may be written to a terminal. */
gf_status gf_sample_sink_open(const char *path, const gf_file_options *options,
                              const gf_sample_layout *layout, gf_sample_sink **sink,
                              gf_error *error);
/* Return whether the number of samples must be set before the first one. This is the case for an
 * .npy file that is written to a pipe. */
bool gf_sample_sink_wants_count(const gf_sample_sink *sink);
gf_status gf_sample_sink_count(gf_sample_sink *sink, uint64_t count, gf_error *error);
/* Write the next `count` samples, all of one bin. values: of layout->type, may be unaligned. */
gf_status gf_sample_sink_write(gf_sample_sink *sink, uint32_t bin, const uint64_t *positions,
                               const void *values, uint64_t count, gf_error *error);
/* Complete the file. */
gf_status gf_sample_sink_finish(gf_sample_sink *sink, gf_error *error);
/* Return the output that the samples are written to. */
struct gf_output *gf_sample_sink_output(const gf_sample_sink *sink);
/* Free the sink. Remove the file unless it is committed. */
void gf_sample_sink_close(gf_sample_sink *sink);

#endif
