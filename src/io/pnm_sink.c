/* PGM, PPM and PAM out: a header and the rows as they are, 16-bit samples in big-endian order. And
 * raw rows: no header, little-endian. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "io/costs.h"
#include "io/kinds.h"
#include "io/row_writer.h"

typedef struct pnm_sink {
    gf_sink base;
    gf_output *output;
    gf_row_writer *writer;
} pnm_sink;

/* ---- what the formats hold ------------------------------------------------------------------- */

static gf_status check(const gf_format *format, const char *name, const char *kind, bool grey,
                       bool rgb, gf_error *error) {
    if (format->type == GF_F32) {
        return gf_fail(error, GF_FAILED,
                       "%s: %s holds no f32 samples and this image has them; write .pfm", name,
                       kind);
    }
    if (gf_has_alpha(format->channels)) {
        return gf_fail(
            error, GF_FAILED,
            "%s: %s holds no alpha channel and the image to write has one; write .png or .pam",
            name, kind);
    }
    if (!grey && format->channels == 1) {
        return gf_fail(error, GF_FAILED,
                       "%s: %s is for colour and this image is grey; write .pgm, .pnm or .png",
                       name, kind);
    }
    if (!rgb && format->channels == 3) {
        return gf_fail(error, GF_FAILED,
                       "%s: %s is for grey and this image is in colour; write .ppm, .pnm or .png",
                       name, kind);
    }
    return GF_OK;
}

gf_status gf_pgm_sink_check(const gf_format *format, const char *name, gf_error *error) {
    return check(format, name, "PGM", true, false, error);
}

gf_status gf_ppm_sink_check(const gf_format *format, const char *name, gf_error *error) {
    return check(format, name, "PPM", false, true, error);
}

gf_status gf_pnm_sink_check(const gf_format *format, const char *name, gf_error *error) {
    return check(format, name, "PNM", true, true, error);
}

gf_status gf_pam_sink_check(const gf_format *format, const char *name, gf_error *error) {
    if (format->type == GF_F32) {
        return gf_fail(error, GF_FAILED,
                       "%s: PAM holds no f32 samples and this image has them; write .pfm", name);
    }
    return GF_OK;
}

/* Any image: but nothing in the file says which. */
gf_status gf_raw_sink_check(const gf_format *format, const char *name, gf_error *error) {
    (void)format;
    (void)name;
    (void)error;
    return GF_OK;
}

/* ---- the sink -------------------------------------------------------------------------------- */

static gf_status pnm_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                           gf_error *error) {
    return gf_row_writer_write(((pnm_sink *)base)->writer, src, stride, rows, error);
}

static gf_status pnm_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    pnm_sink *sink = (pnm_sink *)base;
    const gf_busy busy = gf_row_writer_busy(sink->writer);

    (void)metadata;
    base->threads = busy.workers;
    base->busy_seconds = busy.seconds;
    return gf_output_prepare(sink->output, error);
}

static gf_status pnm_place(gf_sink *base, gf_error *error) {
    return gf_output_place(((pnm_sink *)base)->output, error);
}

static void pnm_close(gf_sink *base) {
    pnm_sink *sink = (pnm_sink *)base;

    gf_row_writer_close(sink->writer);
    gf_output_close(sink->output);
    free(sink);
}

static gf_status open_sink(const gf_sink_setup *setup, const char *header, bool little,
                           gf_sink **opened, gf_error *error) {
    static const gf_sink_ops ops = {pnm_write, pnm_finish, pnm_place, pnm_close};
    const gf_row_order order = {
        .format = *setup->format, .start = strlen(header), .little = little};
    pnm_sink *sink = calloc(1, sizeof *sink);

    if (sink == NULL)
        return gf_fail_memory(error, gf_output_name(setup->output), sizeof *sink, "a sink");
    sink->base.ops = &ops;
    sink->base.cost = GF_PLAIN_COST;
    sink->base.exact = true;
    sink->output = setup->output;
    gf_status status = gf_row_writer_open(setup, &order, header, &sink->writer, error);
    if (status != GF_OK) {
        free(sink);
        return status;
    }
    sink->base.threads =
        gf_row_writer_threads(sink->writer) > 1 ? gf_row_writer_threads(sink->writer) : 0;
    *opened = &sink->base;
    return GF_OK;
}

gf_status gf_pnm_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    const gf_format *format = setup->format;
    char header[128];

    (void)snprintf(header, sizeof header, "P%d\n%" PRIu64 " %" PRIu64 "\n%d\n",
                   format->channels == 1 ? 5 : 6, format->width, format->height,
                   format->type == GF_U8 ? 255 : 65535);
    return open_sink(setup, header, false, opened, error);
}

gf_status gf_pam_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    static const char *const tuples[] = {"", "GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"};
    const gf_format *format = setup->format;
    char header[256];

    (void)snprintf(header, sizeof header,
                   "P7\nWIDTH %" PRIu64 "\nHEIGHT %" PRIu64 "\nDEPTH %" PRIu32
                   "\nMAXVAL %d\nTUPLTYPE %s\nENDHDR\n",
                   format->width, format->height, format->channels,
                   format->type == GF_U8 ? 255 : 65535, tuples[format->channels]);
    return open_sink(setup, header, false, opened, error);
}

gf_status gf_raw_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    const gf_status status = open_sink(setup, "", true, opened, error);

    if (status == GF_OK)
        (*opened)->headless = true;
    return status;
}
