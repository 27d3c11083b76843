/* What the parts of bench share: what is timed, what came of it, how it is told. */
#ifndef GF_CLI_BENCH_H
#define GF_CLI_BENCH_H

#include "devices.h"

#define GF_BENCH_TARGETS 66
#define GF_BENCH_SIZES 3
#define GF_BENCH_KINDS 2

/* Who is timed: an engine, and how fast its memory is. */
typedef struct gf_bench_target {
    char name[48]; /* "cpu, 2 threads" */
    gf_engine *engine;
    gf_memory_speed memory;
} gf_bench_target;

/* One filter with some settings. */
typedef struct gf_bench_item {
    const gf_filter *filter;
    const char *name; /* with its settings: "hist bins=8" */
    const char *text; /* of the settings, as a case has them; "" for the defaults */
    gf_settings *settings;
    gf_format drawn; /* what it draws of the picture; width 0: nothing */
} gf_bench_item;

/* One filter timed on one target. */
typedef struct gf_bench_row {
    const gf_bench_item *item;
    const gf_bench_target *target; /* NULL: golden, one pass */
    gf_speed speed;
    bool differs; /* from golden: then the time is not worth telling */
} gf_bench_row;

/* What auto expects of one filter and one size of image in one format of files. */
typedef struct gf_bench_forecast {
    const gf_bench_item *item;
    const char *files;
    gf_format format;
    gf_forecast forecast;
    bool cuda; /* it would take CUDA: a device is here */
} gf_bench_forecast;

typedef struct gf_bench {
    /* What is asked for. */
    gf_format format; /* of the picture */
    double seconds;   /* for each number */
    bool json;
    uint64_t max_memory;
    int name_width; /* of the longest item's */
    gf_machine machine;
    gf_bench_target targets[GF_BENCH_TARGETS];
    size_t target_count;
    gf_bench_item *items;
    size_t item_count;
    gf_engine *golden, *any; /* any: auto, with the threads asked for */
    /* What is timed on: rows without gaps. */
    void *pictures[2];
    /* What came of it. */
    gf_bench_row *rows; /* golden and all targets, an item after the other */
    size_t row_count;
    gf_format codec_format; /* of the rows of the picture that were written and read */
    const char *codec_files;
    gf_codec_speed codec;
    gf_bench_forecast *forecasts; /* an item after the other; of each, sizes of a format together */
    size_t forecast_count;
} gf_bench;

/* Everything in order. In text each number is told when it is there. GF_FAILED without a message:
 * something differed, which is told already. */
gf_status gf_bench_run(gf_bench *bench, gf_error *error);

void gf_bench_tell_start(const gf_bench *bench);
void gf_bench_tell_memory(const gf_bench_target *target);
void gf_bench_tell_rows(const gf_bench *bench); /* their heading */
void gf_bench_tell_row(const gf_bench *bench, const gf_bench_row *row);
void gf_bench_tell_codec(const gf_bench *bench);
void gf_bench_tell_forecasts(const gf_bench *bench);
void gf_bench_json(const gf_bench *bench);

#endif
