/* The cpu backend: a pool of threads computes the parts of each strip; parts of several strips may
 * run concurrently. The golden backend: one thread computes the whole image as one strip, so that
 * errors in the division into strips cannot affect it. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "core/error.h"

typedef struct gf_cpu {
    const char *name; /* of the backend */
    bool golden;      /* run golden functions */
    gf_pool *pool;
    uint32_t threads;
    bool unthreaded; /* run all work in the calling thread */
    gf_isa isa;
} gf_cpu;

typedef struct gf_cpu_run {
    gf_cpu *cpu;
    gf_cut job;
    uint32_t parts;         /* parts per strip */
    unsigned char *scratch; /* scratch memory, one block per thread */
    size_t scratch_bytes;   /* size of a block */
    unsigned char *states;  /* one state per thread; a single one if ordered or disjoint */
    size_t state_bytes;
    double busy_before;           /* busy time of the pool before this image */
    struct gf_cpu_slot *previous; /* slot submitted last */
    struct gf_cpu_slot {
        struct gf_cpu_run *run;
        gf_slot *slot;
        gf_work work;
        atomic_flag failed; /* a part of the strip has set the error */
        gf_error error;
    } slots[];
} gf_cpu_run;

#define PART_BYTES (UINT64_C(16) << 10)
/* Estimated work of a part: waking a thread takes 5 to 10 us, 50 us in a virtual machine. */
#define PART_NS 3e5
/* Strips in the ring. With many threads, more of them wait for a thread to wake. */
#define SLOTS 4u
#define MORE_SLOTS 6u
#define MANY_THREADS 8u
/* Limit for all strips when their height is raised for a large halo or for the source. */
#define HALO_BYTES (UINT64_C(48) << 20)
/* Estimated work below which the calling thread computes an image: waking one takes longer. */
#define INLINE_NS 2e5

static gf_status cpu_new(gf_cpu settings, void **state, gf_error *error) {
    gf_cpu *cpu = malloc(sizeof *cpu);
    if (!cpu)
        return gf_fail_memory(error, settings.name, sizeof *cpu, "the backend");
    *cpu = settings;
    const gf_status status = gf_pool_open(cpu->threads, &cpu->pool, error);
    if (status)
        free(cpu);
    else
        *state = cpu;
    return status;
}

static gf_status cpu_open(const gf_engine_options *options, void **state, gf_error *error) {
    gf_cpu cpu = {.name = "cpu",
                  .threads = options->threads ? options->threads : gf_cores(),
                  .unthreaded = options->unthreaded,
                  .isa = gf_isa_best()};
    for (int i = 0; options->simd && i < GF_ISA_COUNT; i++)
        if (strcmp(options->simd, gf_simd_names[1 + i]) == 0)
            cpu.isa = (gf_isa)i;
    if (!gf_isa_available(cpu.isa))
        return gf_fail(error, GF_NO_BACKEND, "cpu: this processor has no %s; use --simd auto",
                       gf_simd_names[1 + cpu.isa]);
    return cpu_new(cpu, state, error);
}

static gf_status cpu_open_golden(const gf_engine_options *options, void **state, gf_error *error) {
    (void)options;
    return cpu_new((gf_cpu){.name = "golden", .golden = true, .threads = 1, .unthreaded = true},
                   state, error);
}

static void cpu_close(void *state) {
    gf_cpu *cpu = state;
    gf_pool_close(cpu->pool);
    free(cpu);
}

static void cpu_describe(const void *state, char *text, size_t size) {
    const gf_cpu *cpu = state;
    snprintf(text, size, "%u thread%s, %s", cpu->threads, cpu->threads == 1 ? "" : "s",
             cpu->golden ? "scalar" : gf_simd_names[1 + cpu->isa]);
}

static bool cpu_one_state(const gf_plan *plan) {
    return plan->ordered || (plan->disjoint && !plan->golden_only);
}

static uint32_t cpu_count_states(const gf_cpu *cpu, const gf_plan *plan) {
    return cpu_one_state(plan) ? 1 : cpu->threads;
}

/* Choose strips large enough to give every thread a worthwhile part, and small enough for the
 * cache. Without output rows, more input rows fit: a histogram on two cores then takes 0.8 times as
 * long. With a halo, more strips are in memory at a time: half as large ones are as fast with few
 * threads. Small images are divided into up to 16 strips, so that decoding and encoding overlap. */
static gf_strip_request cpu_request(const void *state, const gf_plan *plan) {
    const gf_cpu *cpu = state;
    const uint64_t part = 64u << 10, share = plan->in.height * gf_row_bytes(&plan->in) / 16;
    const uint64_t whole = (plan->out.width ? 512u << 10 : 1u << 20) + cpu->threads * part;
    const bool halve = !gf_map_one_to_one(plan) && cpu->threads < MANY_THREADS;
    const uint64_t most = halve ? whole / 2 : whole;
    const uint64_t bytes = gf_min(gf_min(most, 2u << 20), share > part ? share : part);
    const uint32_t slots = cpu->threads < MANY_THREADS ? SLOTS : MORE_SLOTS;
    return (gf_strip_request){.bytes = bytes,
                              .halos = 2,
                              .max = HALO_BYTES,
                              /* Without threads, nothing overlaps. A strip that shares rows with
                               * the next one keeps its slot until both are computed. */
                              .slots = cpu->unthreaded ? 1 : slots + !gf_map_one_to_one(plan),
                              .in_memory = true,
                              .fits_source = true,
                              .pieces = cpu->threads,
                              .golden_parts = plan->golden_only ? cpu->threads : 0,
                              .extra = plan->state_bytes * cpu_count_states(cpu, plan)};
}

static gf_strip_request cpu_request_golden(const void *state, const gf_plan *plan) {
    (void)state;
    return (gf_strip_request){.whole_image = true,
                              .slots = 1,
                              .pieces = 1,
                              .extra = plan->golden_bytes + plan->state_bytes};
}

/* Return the number of parts per strip: one per thread, or fewer if they would be too small. A
 * single strip with too little work to wake another thread is one part. */
static uint32_t cpu_count_parts(const gf_cpu *cpu, const gf_cut *job) {
    const gf_plan *plan = job->plan;
    const uint64_t rows = gf_map_scale(plan, job->out_rows), samples = gf_row_samples(&plan->in);
    const double work = (double)samples * (double)plan->in.height * plan->cost;
    const double by_work = (double)(rows * samples) * plan->cost / PART_NS + 1;
    uint64_t parts = rows * plan->inputs * job->in_stride / PART_BYTES + 1;
    if ((double)parts > by_work)
        parts = (uint64_t)by_work;
    parts = gf_min(parts, cpu->threads);
    if (cpu->golden || (job->slots == 1 && work < INLINE_NS) ||
        (plan->golden_only && plan->ordered))
        parts = 1;
    return plan->has_payload ? gf_payload_pieces(job, (uint32_t)parts) : (uint32_t)parts;
}

static void cpu_free_run(gf_cpu_run *run) {
    free(run->scratch);
    free(run->states);
    free(run);
}

static gf_status cpu_begin(void *state, const gf_cut *job, gf_slot *slots, void **out,
                           gf_error *error) {
    gf_cpu *cpu = state;
    gf_cpu_run *run = calloc(1, sizeof *run + job->slots * sizeof run->slots[0]);
    const uint32_t states = cpu_count_states(cpu, job->plan);
    if (!run)
        return gf_fail_memory(error, cpu->name, sizeof *run, "a run");
    run->cpu = cpu;
    run->job = *job;
    run->parts = cpu_count_parts(cpu, job);
    run->busy_before = gf_pool_busy(cpu->pool);
    run->scratch_bytes = cpu->golden ? 0 : gf_align(gf_cpu_scratch_bytes(job->plan));
    run->scratch = gf_aligned_alloc(cpu->threads, run->scratch_bytes);
    run->state_bytes = gf_align((size_t)job->plan->state_bytes);
    run->states = gf_aligned_alloc(states, run->state_bytes);
    gf_status status = run->scratch && run->states
                           ? gf_slots_alloc(job, run->parts, slots, error)
                           : gf_fail_memory(error, cpu->name,
                                            (run->scratch_bytes + run->state_bytes) * cpu->threads,
                                            cpu->golden ? "the measurement" : "scratch");
    if (status) {
        cpu_free_run(run);
        return status;
    }
    memset(run->states, 0, states * run->state_bytes);
    *out = run;
    return GF_OK;
}

gf_status gf_compute_part(const gf_plan *plan, const gf_strip *strip, uint32_t part, uint32_t parts,
                          void *scratch, gf_isa isa, gf_error *error) {
    const gf_filter *filter = plan->filter;
    if (filter->cpu.run[isa]) {
        filter->cpu.run[isa](plan, strip, part, parts, scratch);
        return GF_OK;
    }
    const gf_strip piece = gf_strip_part(plan, strip, part, parts);
    /* A payload needs its header even if it has no rows. */
    return piece.out.rows || piece.payload ? filter->golden(plan, &piece, error) : GF_OK;
}

static void cpu_run_part(void *context, uint32_t task, uint32_t thread) {
    struct gf_cpu_slot *cpu_slot = context;
    const gf_cpu_run *run = cpu_slot->run;
    const gf_slot *slot = cpu_slot->slot;
    const gf_plan *plan = run->job.plan;
    gf_strip strip = gf_slot_strip(plan, slot);
    gf_error error;
    strip.state = run->states + (cpu_one_state(plan) ? 0 : thread) * run->state_bytes;
    if (slot->payload_pieces)
        strip.payload = slot->payload_buffer + task * slot->payload_stride;
    const gf_status status =
        run->cpu->golden
            ? plan->filter->golden(plan, &strip, &error)
            : gf_compute_part(plan, &strip, task, run->parts,
                              run->scratch + thread * run->scratch_bytes, run->cpu->isa, &error);
    if (status && !atomic_flag_test_and_set(&cpu_slot->failed))
        cpu_slot->error = error;
}

static gf_status cpu_submit(void *state, gf_slot *slot, gf_error *error) {
    (void)error;
    gf_cpu_run *run = state;
    gf_cpu *cpu = run->cpu;
    struct gf_cpu_slot *cpu_slot = &run->slots[slot->index];
    /* A single state is updated by one strip at a time. */
    if (cpu_one_state(run->job.plan) && run->previous)
        gf_pool_wait(cpu->pool, &run->previous->work);
    *cpu_slot = (struct gf_cpu_slot){
        .run = run,
        .slot = slot,
        .work = {.run = cpu_run_part, .context = cpu_slot, .count = run->parts},
        .failed = ATOMIC_FLAG_INIT};
    run->previous = cpu_slot;
    /* The calling thread runs it if it has nothing else to do. */
    const bool alone = cpu->unthreaded || (run->parts == 1 && run->job.slots == 1);
    (alone ? gf_pool_run : gf_pool_submit)(cpu->pool, &cpu_slot->work);
    return GF_OK;
}

static gf_status cpu_wait(void *state, gf_slot *slot, gf_error *error) {
    gf_cpu_run *run = state;
    struct gf_cpu_slot *cpu_slot = &run->slots[slot->index];
    gf_pool_wait(run->cpu->pool, &cpu_slot->work);
    return gf_return_error(&cpu_slot->error, error);
}

/* Report as many workers as can run concurrently. */
static void cpu_busy(void *state, gf_busy busy[GF_STAGE_COUNT]) {
    const gf_cpu_run *run = state;
    const uint64_t strips = cpu_one_state(run->job.plan) ? 1 : run->job.slots;
    const uint64_t workers = gf_min(run->parts * strips, run->cpu->threads);
    const double seconds = gf_pool_busy(run->cpu->pool) - run->busy_before;
    gf_busy_add(&busy[GF_COMPUTING], (gf_busy){seconds, (uint32_t)workers});
}

static gf_status cpu_collect(void *state, void *total, gf_error *error) {
    (void)error;
    const gf_cpu_run *run = state;
    const gf_plan *plan = run->job.plan;
    memcpy(total, run->states, (size_t)plan->state_bytes);
    for (uint32_t i = 1; i < cpu_count_states(run->cpu, plan); i++)
        plan->filter->measure->merge(plan, total, run->states + i * run->state_bytes);
    return GF_OK;
}

static void cpu_end(void *state, gf_slot *slots) {
    gf_cpu_run *run = state;
    for (uint32_t i = 0; i < run->job.slots; i++)
        gf_pool_wait(run->cpu->pool, &run->slots[i].work);
    gf_slots_free(slots, run->job.slots);
    cpu_free_run(run);
}

#define CPU_BACKEND                                                                                \
    .close = cpu_close, .describe = cpu_describe, .begin = cpu_begin, .submit = cpu_submit,        \
    .wait = cpu_wait, .busy = cpu_busy, .collect = cpu_collect, .end = cpu_end

const gf_backend gf_backend_cpu = {
    .name = "cpu", .open = cpu_open, .request = cpu_request, CPU_BACKEND};

const gf_backend gf_backend_golden = {
    .name = "golden", .open = cpu_open_golden, .request = cpu_request_golden, CPU_BACKEND};
