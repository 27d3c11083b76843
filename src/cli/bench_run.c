/* Timing what was asked for, and comparing what was timed with golden. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cli.h"
#include "verify.h"

static size_t row_bytes(const gf_format *format) {
    return (size_t)(format->width * format->channels) * gf_verify_sample_bytes(format->type);
}

static size_t image_bytes(const gf_format *format) {
    return row_bytes(format) * (size_t)format->height;
}

/* As many as there are at a time, about: two inputs, what golden and a target make of them, and the
 * target's own. */
#define PICTURES 8

/* Something like a photograph, and the same again with some samples changed. */
static gf_status draw(gf_bench *bench, gf_error *error) {
    const size_t bytes = image_bytes(&bench->format);
    if (bytes > bench->max_memory / PICTURES)
        return gf_set_error(error, GF_USAGE,
                            "bench: %d pictures of %zu bytes are more than --max-memory; use a "
                            "smaller --size",
                            PICTURES, bytes);
    const size_t sample = gf_verify_sample_bytes(bench->format.type);
    gf_random random = gf_random_start(1, 0, 0);
    for (int i = 0; i < 2; i++) {
        bench->pictures[i] = malloc(bytes); /* NOLINT: a picture has at least one sample */
        if (!bench->pictures[i])
            return gf_set_error(error, GF_FAILED,
                                "bench: out of memory for a picture; use a smaller --size");
    }
    gf_verify_photo(&bench->format, bench->pictures[0], &random);
    memcpy(bench->pictures[1], bench->pictures[0], bytes);
    for (size_t i = 0; i < bytes; i += 4001 * sample)
        ((unsigned char *)bench->pictures[1])[i] ^= 1;
    return GF_OK;
}

/* ---- filters --------------------------------------------------------------------------------- */

/* What one item makes of the picture. */
typedef struct gf_bench_made {
    void *image;
    gf_result *result;
} gf_bench_made;

static void drop(gf_bench_made *made) {
    free(made->image);
    gf_result_free(made->result);
}

static gf_status make_room(const gf_bench_item *item, gf_bench_made *made, gf_error *error) {
    *made = (gf_bench_made){0};
    if (!item->drawn.width)
        return GF_OK;
    made->image = malloc(image_bytes(&item->drawn)); /* NOLINT */
    return made->image ? GF_OK
                       : gf_set_error(error, GF_FAILED,
                                      "bench: out of memory for a picture; use a smaller --size");
}

static gf_status time_golden(const gf_bench *bench, gf_bench_row *row, const gf_pixels *in,
                             gf_bench_made *made, gf_error *error) {
    const gf_bench_item *item = row->item;
    gf_report report;
    gf_status status = make_room(item, made, error);
    if (!status)
        status = gf_run_memory(bench->golden, item->filter, item->settings, &bench->format, in,
                               made->image, row_bytes(&item->drawn), &made->result, &report, error);
    if (status)
        return status;
    row->speed.seconds = report.busy[GF_COMPUTING].seconds;
    row->speed.passes = 1;
    snprintf(row->speed.backend, sizeof row->speed.backend, "%s", report.backend);
    snprintf(row->speed.device, sizeof row->speed.device, "%s", report.device);
    return GF_OK;
}

/* Times a target and compares what it made with golden's. */
static gf_status time_target(const gf_bench *bench, gf_bench_row *row, const gf_pixels *in,
                             const gf_bench_made *want, gf_error *error) {
    const gf_bench_item *item = row->item;
    char where[GF_VERIFY_WHERE] = "";
    gf_bench_made got;
    gf_status status = make_room(item, &got, error);
    if (!status)
        status = gf_time_filter(row->target->engine, item->filter, item->settings, &bench->format,
                                in, got.image, row_bytes(&item->drawn), bench->seconds, &got.result,
                                &row->speed, error);
    if (!status)
        row->differs = (item->drawn.width &&
                        gf_verify_images(&item->drawn, want->image, got.image, where) > 0) ||
                       gf_verify_results(want->result, got.result, where) > 0;
    if (!status && row->differs) {
        fflush(stdout);
        fprintf(stderr, "gpufilter: bench: %s on %s differs from golden: %s\n", item->name,
                row->target->name, where);
    }
    drop(&got);
    return status;
}

/* Golden first: what is timed is compared with it, whole. */
static gf_status time_item(gf_bench *bench, const gf_bench_item *item, gf_error *error) {
    const size_t stride = row_bytes(&bench->format);
    const gf_pixels in[2] = {{bench->pictures[0], stride}, {bench->pictures[1], stride}};
    gf_bench_row *golden = &bench->rows[bench->row_count++];
    gf_bench_made want = {0};
    golden->item = item;
    gf_status status = time_golden(bench, golden, in, &want, error);
    if (!status && !bench->json)
        gf_bench_tell_row(bench, golden);
    for (size_t t = 0; t < bench->target_count && !status; t++) {
        gf_bench_row *row = &bench->rows[bench->row_count++];
        row->item = item;
        row->target = &bench->targets[t];
        status = time_target(bench, row, in, &want, error);
        golden->speed.bytes = row->speed.bytes;
        if (!status && !bench->json)
            gf_bench_tell_row(bench, row);
    }
    drop(&want);
    return status;
}

static gf_status time_filters(gf_bench *bench, gf_error *error) {
    gf_status status = GF_OK;
    bench->rows = calloc(bench->item_count * (1 + bench->target_count), sizeof *bench->rows);
    if (!bench->rows)
        return gf_set_error(error, GF_FAILED, "bench: out of memory");
    if (!bench->json)
        gf_bench_tell_rows(bench);
    for (size_t i = 0; i < bench->item_count && !status; i++)
        status = time_item(bench, &bench->items[i], error);
    return status;
}

/* ---- all else -------------------------------------------------------------------------------- */

static gf_status time_memory(gf_bench *bench, gf_error *error) {
    gf_status status = GF_OK;
    for (size_t t = 0; t < bench->target_count && !status; t++) {
        gf_bench_target *target = &bench->targets[t];
        status = gf_time_memory(target->engine, image_bytes(&bench->format), bench->seconds,
                                &target->memory, error);
        if (!status && !bench->json)
            gf_bench_tell_memory(target);
    }
    return status;
}

#define CODEC_PIXELS 4000000u /* it takes long, and as long for every pixel */

static gf_status time_codec(gf_bench *bench, gf_error *error) {
    const gf_pixels image = {bench->pictures[0], row_bytes(&bench->format)};
    bench->codec_format = bench->format;
    if (bench->format.height > CODEC_PIXELS / bench->format.width + 1)
        bench->codec_format.height = CODEC_PIXELS / bench->format.width + 1;
    /* PNG has no f32, and PFM no alpha. */
    const bool real = bench->format.type == GF_F32;
    if (real && bench->format.channels % 2 == 0)
        return GF_OK;
    bench->codec_files = real ? "pfm" : "png";
    const gf_status status = gf_time_codec(&bench->codec_format, &image,
                                           &(gf_file_options){.format = bench->codec_files},
                                           bench->seconds, &bench->codec, error);
    if (!status && !bench->json)
        gf_bench_tell_codec(bench);
    return status;
}

static bool has_device(const gf_machine *machine) {
    for (size_t i = 0; i < machine->count; i++)
        if (machine->devices[i].usable)
            return true;
    return false;
}

static gf_status ask_auto(gf_bench *bench, gf_error *error) {
    static const uint64_t widths[GF_BENCH_SIZES] = {1250, 6000, 40000};
    static const uint64_t heights[GF_BENCH_SIZES] = {800, 4000, 25000};
    static const char *const plain[] = {"png", "pnm", NULL}, *const real[] = {"pfm", NULL};
    const char *const *kinds = bench->format.type == GF_F32 ? real : plain;
    bench->forecasts =
        calloc(bench->item_count * GF_BENCH_KINDS * GF_BENCH_SIZES, sizeof *bench->forecasts);
    if (!bench->forecasts)
        return gf_set_error(error, GF_FAILED, "bench: out of memory");
    gf_status status = GF_OK;
    for (size_t i = 0; i < bench->item_count; i++)
        for (int k = 0; kinds[k]; k++)
            for (int s = 0; s < GF_BENCH_SIZES && !status; s++) {
                gf_bench_forecast *row = &bench->forecasts[bench->forecast_count++];
                row->item = &bench->items[i];
                row->files = kinds[k];
                row->format = bench->format;
                row->format.width = widths[s];
                row->format.height = heights[s];
                status = gf_expect(bench->any, row->item->filter, row->item->settings, &row->format,
                                   row->files, &row->forecast, error);
                row->cuda = row->forecast.cuda && has_device(&bench->machine);
            }
    if (!status && !bench->json && has_device(&bench->machine))
        gf_bench_tell_forecasts(bench);
    return status;
}

gf_status gf_bench_run(gf_bench *bench, gf_error *error) {
    gf_status status = draw(bench, error);
    if (!status && !bench->json)
        gf_bench_tell_start(bench);
    if (!status)
        status = time_memory(bench, error);
    if (!status)
        status = time_filters(bench, error);
    if (!status)
        status = time_codec(bench, error);
    if (!status)
        status = ask_auto(bench, error);
    if (!status && bench->json)
        gf_bench_json(bench);
    for (size_t i = 0; i < bench->row_count && !status; i++)
        if (bench->rows[i].differs)
            status = GF_FAILED;
    return status;
}
