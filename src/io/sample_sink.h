/* Extracted samples as a file: .csv, .npy or .json, by the file's name. */
#ifndef GF_SAMPLE_SINK_H
#define GF_SAMPLE_SINK_H

#include "core/image.h"

#define GF_SAMPLE_LUMA 255

/* What the samples are. */
typedef struct gf_sample_layout {
    gf_type type;
    uint64_t width;    /* pixels a row of the image */
    uint32_t channels; /* measured in each pixel: position = (y * width + x) * channels + channel */
    const char *names[GF_MAX_CHANNELS]; /* of these channels; short constants */
    uint8_t indices[GF_MAX_CHANNELS];   /* of these channels in a pixel; GF_SAMPLE_LUMA for luma */
    bool with_bin;                      /* samples of several bins: the bin is written, too */
    uint32_t bins;                      /* with_bin: all bins are below this */
} gf_sample_layout;

typedef struct gf_sample_sink gf_sample_sink;

/* Opens a file, or standard output for "-" (as CSV unless options->sample_format says otherwise).
 * The rules of gf_output_open hold; but text may go to a terminal. */
gf_status gf_sample_sink_open(const char *path, const gf_file_options *options,
                              const gf_sample_layout *layout, gf_sample_sink **sink,
                              gf_error *error);
/* Must the number of samples be told before the first one? (An .npy file into a pipe.) */
bool gf_sample_sink_wants_count(const gf_sample_sink *sink);
gf_status gf_sample_sink_count(gf_sample_sink *sink, uint64_t count, gf_error *error);
/* The next count samples, all of one bin: positions, and values of layout->type, which need not be
 * aligned. */
gf_status gf_sample_sink_write(gf_sample_sink *sink, uint32_t bin, const uint64_t *positions,
                               const void *values, uint64_t count, gf_error *error);
/* Completes the file. */
gf_status gf_sample_sink_finish(gf_sample_sink *sink, gf_error *error);
/* Where it is written. */
struct gf_output *gf_sample_sink_output(const gf_sample_sink *sink);
/* Frees; removes what was written unless it is in place. */
void gf_sample_sink_close(gf_sample_sink *sink);

#endif
