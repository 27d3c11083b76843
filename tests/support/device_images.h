/* Images of one case in painted memory of a device, real or simulated: make, run and check them. */
#ifndef DEVICE_IMAGES_H
#define DEVICE_IMAGES_H

#include "job.h"

enum { IMAGES_MAX = GF_STRIP_IMAGES + 6 };

/* Calls of one kind of memory that fail the test on an error. */
typedef struct image_memory {
    void *(*allocate)(size_t size);
    void (*release)(void *data);
    /* Copy from or to host memory after the work of the stream, and wait for the copy. */
    void (*copy)(void *to, const void *from, size_t size, void *stream);
} image_memory;
static const image_memory default_memory; /* each test that includes this file defines it */

typedef struct image_case {
    const char *filter, *text;
    gf_format format;
    uint64_t count;             /* of random images */
    uint64_t positions;         /* in memory; image i % count is at position i; 0: count */
    size_t shift;               /* painted bytes before the first position */
    size_t padding;             /* painted bytes after each row */
    size_t gap;                 /* painted bytes after each image */
    bool reversed;              /* inputs are in reverse order */
    bool open;                  /* open an engine and a job */
    void *stream;               /* of runs and copies */
    const image_memory *memory; /* NULL: default_memory */
} image_case;

/* Memory of the device. */
typedef struct image_block {
    unsigned char *data, *want; /* `size` bytes, and what they must be */
    size_t size, row, stride;
    size_t step;   /* from an image to the next one */
    uint64_t rows; /* of an image; 0: no images */
} image_block;

typedef struct image_set {
    image_case is;
    uint32_t inputs;      /* of the filter */
    test_job *jobs;       /* one for each image; they differ in the content */
    test_outcome *golden; /* of each job */
    gf_engine *engine;
    gf_device_job *job;
    image_block in, out;        /* second inputs follow all first inputs */
    uint64_t shown[IMAGES_MAX]; /* image at each position */
    gf_pixels from[2 * IMAGES_MAX];
    gf_out_pixels to[IMAGES_MAX];          /* into the margin if the filter makes no image */
    gf_result *results[IMAGES_MAX];        /* of gf_run */
    gf_device_results *queued[IMAGES_MAX]; /* of the job's run that begins at each position */
} image_set;

/* Run image i on golden. */
static inline void images_golden(image_set *set, uint64_t i) {
    AUTO(engine) gf_engine *golden = test_engine(&(gf_engine_options){.backend = "golden"});
    test_outcome_free(&set->golden[i]);
    set->golden[i] = test_run(&set->jobs[i], golden, 0);
}

/* Allocate a block, and expect paint. margin: bytes before and after all images. */
static inline image_block new_block(const image_case *is, uint64_t images, const gf_format *format,
                                    size_t margin) {
    image_block block = {.row = gf_row_bytes(format)};
    block.rows = format->width ? format->height : 0;
    block.stride = block.row + is->padding;
    block.step = block.rows * block.stride + is->gap;
    block.size = is->shift + images * block.step + 2 * margin;
    block.data = is->memory->allocate(block.size);
    block.want = test_alloc(block.size);
    memset(block.want, TEST_PAINT, block.size);
    return block;
}

/* Expect an image without padding at `at`, or paint if it is NULL. */
static inline void block_expect(const image_block *block, const void *at, const test_image *image) {
    unsigned char *want = block->want + ((const unsigned char *)at - block->data);
    for (uint64_t y = 0; y < block->rows; y++, want += block->stride)
        if (image)
            memcpy(want, gf_row(&image->rows, y), block->row);
        else
            memset(want, TEST_PAINT, block->row);
}

/* Wait for the stream. Return whether the memory of the device is as expected. */
static inline bool block_same(const image_set *set, const image_block *block) {
    AUTO(free) unsigned char *got = test_alloc(block->size);
    size_t i = 0;
    set->is.memory->copy(got, block->data, block->size, set->is.stream);
    if (memcmp(got, block->want, block->size) == 0)
        return true;
    while (got[i] == block->want[i])
        i++;
    print_error("%s '%s': byte %zu of %zu differs; images are %zu apart\n", set->is.filter,
                set->is.text, i, block->size, block->step);
    return false;
}

/* Expect an image at a position, and paint in the output. */
static inline void images_expect(image_set *set, uint64_t at, uint64_t image) {
    set->shown[at] = image;
    for (uint32_t k = 0; k < set->inputs; k++)
        block_expect(&set->in, set->from[at * set->inputs + k].data, &set->jobs[image].in[k]);
    block_expect(&set->out, set->to[at].data, NULL);
}

/* Store the expected bytes in the memory of the device. */
static inline void images_put(const image_set *set) {
    set->is.memory->copy(set->in.data, set->in.want, set->in.size, set->is.stream);
    set->is.memory->copy(set->out.data, set->out.want, set->out.size, set->is.stream);
}

static inline gf_status images_job(image_set *set, gf_engine *engine) {
    return test_device_job(engine, set->jobs->filter, set->jobs->settings, &set->is.format,
                           &set->job);
}

/* Make the images of a case. The memory ends with the last input. */
static inline image_set new_images(image_case is) {
    const gf_filter *filter = gf_filter_find(is.filter);
    test_random random = test_seeded(is.format.width + is.count);
    is.positions = is.positions ? is.positions : is.count;
    is.memory = is.memory ? is.memory : &default_memory;
    assert_true(is.positions <= IMAGES_MAX);
    image_set set = {.is = is, .inputs = filter->info.inputs};
    set.jobs = test_zeros(is.count * sizeof *set.jobs);
    set.golden = test_zeros(is.count * sizeof *set.golden);
    for (uint64_t i = 0; i < is.count; i++) {
        assert_true(test_job_new(&set.jobs[i], filter, is.text, is.format, NULL));
        test_job_fill(&set.jobs[i], &random);
        images_golden(&set, i);
    }
    set.in = new_block(&is, set.inputs * is.positions, &is.format, 0);
    set.out = new_block(&is, is.positions, &set.jobs->drawn, TEST_MARGIN);
    for (uint64_t i = 0; i < is.positions; i++) {
        const uint64_t at = is.reversed ? is.positions - 1 - i : i;
        for (uint32_t k = 0; k < set.inputs; k++)
            set.from[i * set.inputs + k] = (gf_pixels){
                set.in.data + is.shift + (k * is.positions + at) * set.in.step, set.in.stride};
        set.to[i] = (gf_out_pixels){set.out.data + TEST_MARGIN + is.shift + i * set.out.step,
                                    set.out.stride};
        images_expect(&set, i, i % is.count);
    }
    images_put(&set);
    if (is.open) {
        set.engine = test_engine(&(gf_engine_options){.backend = "cuda"});
        assert_ok(images_job(&set, set.engine));
    }
    return set;
}

static inline void test_auto_images(image_set *set) {
    gf_device_job_free(set->job);
    gf_engine_close(set->engine);
    for (uint64_t i = 0; i < set->is.count; i++) {
        test_outcome_free(&set->golden[i]);
        test_job_free(&set->jobs[i]);
    }
    free(set->golden);
    free(set->jobs);
    set->is.memory->release(set->in.data);
    set->is.memory->release(set->out.data);
    free(set->in.want);
    free(set->out.want);
}

/* Run `count` images from position `first` on: by gf_run, or queue them if there is a job. */
static inline gf_status images_run(image_set *set, uint64_t first, uint64_t count) {
    const test_job *job = set->jobs;
    const gf_pixels *from = set->from + first * set->inputs;
    gf_out_pixels *to = set->to + first;
    if (set->job)
        return test_device_job_run(set->job, set->inputs, count, from, to, set->is.stream,
                                   job->filter->measure ? &set->queued[first] : NULL);
    if (!set->engine)
        set->engine = test_engine(&(gf_engine_options){.backend = "cuda"});
    return test_run_device_list(
        &(test_list){set->engine, job->filter, job->settings, &job->format, count, from,
                     set->out.rows ? to : NULL, .stream = set->is.stream,
                     .result = job->filter->measure ? &set->results[first] : NULL});
}

/* Wait for the stream. Return whether outputs and results of images_run are golden's, and all other
 * bytes, also of the inputs, are unchanged. */
static inline bool images_same(image_set *set, uint64_t first, uint64_t count) {
    bool same = true;
    if (set->queued[first] &&
        !(same = !gf_device_results_wait(set->queued[first], &set->results[first], &why)))
        print_error("%s\n", why.message);
    set->queued[first] = NULL;
    for (uint64_t i = first; i < first + count; i++) {
        const test_outcome *golden = &set->golden[set->shown[i]];
        block_expect(&set->out, set->to[i].data, &golden->image);
        same = test_same_result(golden->result, set->results[i], set->is.filter) && same;
        gf_result_free(set->results[i]);
        set->results[i] = NULL;
    }
    return block_same(set, &set->in) && block_same(set, &set->out) && same;
}

static inline void images_check(image_set *set, uint64_t first, uint64_t count) {
    assert_ok(images_run(set, first, count));
    assert_true(images_same(set, first, count));
}

#endif
