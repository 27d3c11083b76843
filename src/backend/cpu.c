/* The cpu backend: a pool of threads computes the parts of each strip; parts of several strips may
 * run concurrently. The golden backend: one thread computes the whole image as one strip, so that
 * errors in the division into strips cannot affect it. For --verify, threads run golden on parts of
 * strips. */
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "core/error.h"

typedef struct gf_cpu {
    const char *name; /* of the backend */
    bool golden;      /* run golden functions: on parts only with several threads */
    gf_pool *pool;
    uint32_t threads;
    bool unthreaded; /* run all work in the calling thread */
    gf_isa isa;
} gf_cpu;

/* A strip of a node. */
typedef struct cpu_task {
    struct cpu_node *node;
    const gf_rows *in; /* rows that it reads of its edge */
    gf_rows view;      /* rows of its edge in this strip: kept ones and new ones */
    gf_node_rows *out; /* new ones, with the records and payloads */
    gf_work work;
    bool ended;
    atomic_flag failed; /* a part of the strip has set the error */
    gf_error error;
} cpu_task;

/* A node of the chain. Strips begin in order; those of a node without a single state overlap. */
typedef struct cpu_node {
    struct cpu_run *run;
    const gf_plan *plan;
    uint32_t from;
    uint32_t parts;        /* parts per strip */
    unsigned char *states; /* one state per thread; a single one if ordered or disjoint. The ring,
                            * and the records and payloads of all slots, follow */
    size_t state_bytes;
    gf_ring ring;
    uint64_t begun, done;      /* strips; those before `done` are complete */
    atomic_uint_fast64_t busy; /* nanoseconds of all threads */
    cpu_task *tasks;           /* one per slot */
} cpu_node;

typedef struct cpu_run {
    gf_cpu *cpu;
    gf_cut cut;
    gf_slot *slots;
    unsigned char *ring;    /* of the source */
    unsigned char *scratch; /* scratch memory, one block per thread */
    size_t scratch_bytes;   /* size of a block */
    double busy_before;     /* busy time of the pool before this image */
    bool alone;             /* the calling thread computes */
    pthread_mutex_t lock;   /* of the fields below, and of begun, done, ended and the rings */
    pthread_cond_t changed;
    uint64_t submitted, consumed; /* strips */
    uint32_t active;              /* tasks begun, until the callback has returned */
    cpu_task *tasks;
    cpu_node nodes[];
} cpu_run;

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

static gf_status cpu_open_verify(const gf_engine_options *options, void **state, gf_error *error) {
    const uint32_t threads = options->threads ? options->threads : gf_cores();
    return cpu_new((gf_cpu){.name = "golden", .golden = true, .threads = threads}, state, error);
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

static bool cpu_one_state(const gf_cpu *cpu, const gf_plan *plan) {
    return plan->ordered || (plan->disjoint && !plan->golden_only && !cpu->golden);
}

static uint32_t cpu_count_states(const gf_cpu *cpu, const gf_plan *plan) {
    return cpu_one_state(cpu, plan) ? 1 : cpu->threads;
}

/* Return the bytes of all states of a chain. */
static uint64_t cpu_states_bytes(const gf_cpu *cpu, const gf_nodes *nodes) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < nodes->count; i++)
        bytes += nodes->node[i].plan->state_bytes * cpu_count_states(cpu, nodes->node[i].plan);
    return bytes;
}

/* Choose strips large enough to give every thread a worthwhile part, and small enough for the
 * cache. Without output rows, more input rows fit: a histogram on two cores then takes 0.8 times as
 * long. With a halo, more strips are in memory at a time: half as large ones are as fast with few
 * threads. Small images are divided into up to 16 strips, so that decoding and encoding overlap. */
static gf_strip_request cpu_request(const void *state, const gf_nodes *nodes) {
    const gf_cpu *cpu = state;
    const gf_format *in = &nodes->node[0].plan->in;
    bool makes_image = false, overlaps = false, golden_only = false;
    for (uint32_t i = 0; i < nodes->count; i++) {
        const gf_plan *plan = nodes->node[i].plan;
        makes_image = makes_image || plan->out.width;
        overlaps = overlaps || !gf_map_one_to_one(plan);
        golden_only = golden_only || plan->golden_only;
    }
    const uint64_t part = 64u << 10, share = in->height * gf_row_bytes(in) / 16;
    const uint64_t whole = (makes_image ? 512u << 10 : 1u << 20) + cpu->threads * part;
    const uint64_t most = overlaps && cpu->threads < MANY_THREADS ? whole / 2 : whole;
    const uint64_t bytes = gf_min(gf_min(most, 2u << 20), share > part ? share : part);
    const uint32_t slots = cpu->threads < MANY_THREADS ? SLOTS : MORE_SLOTS;
    return (gf_strip_request){.bytes = bytes,
                              .halos = 2,
                              .max = HALO_BYTES,
                              /* Without threads, nothing overlaps. A strip that shares rows with
                               * the next one keeps its slot until both are computed. */
                              .slots = cpu->unthreaded ? 1 : slots + overlaps,
                              .in_memory = true,
                              .fits_source = true,
                              .pieces = cpu->threads,
                              .golden_parts = golden_only ? cpu->threads : 0,
                              .extra = cpu_states_bytes(cpu, nodes)};
}

static gf_strip_request cpu_request_golden(const void *state, const gf_nodes *nodes) {
    uint64_t extra = cpu_states_bytes(state, nodes);
    for (uint32_t i = 0; i < nodes->count; i++)
        extra += nodes->node[i].plan->golden_bytes;
    return (gf_strip_request){.whole_image = true, .slots = 1, .pieces = 1, .extra = extra};
}

/* Return the number of parts per strip of a node: one per thread, or fewer if they would be too
 * small. A single strip with too little work to wake another thread is one part. */
static uint32_t cpu_count_parts(const gf_cpu *cpu, const gf_cut *cut, uint32_t node) {
    const gf_plan *plan = cut->nodes->node[node].plan;
    const gf_edge_cut *from = &cut->edge[cut->nodes->node[node].from];
    const uint64_t rows = from->max_rows, samples = gf_row_samples(&plan->in);
    const double work = (double)samples * (double)plan->in.height * plan->cost;
    const double by_work = (double)(rows * samples) * plan->cost / PART_NS + 1;
    uint64_t parts = rows * plan->inputs * from->stride / PART_BYTES + 1;
    if ((double)parts > by_work)
        parts = (uint64_t)by_work;
    parts = cpu->golden ? cpu->threads : gf_min(parts, cpu->threads);
    if ((cut->slots == 1 && work < INLINE_NS && !cpu->golden) ||
        ((plan->golden_only || cpu->golden) && plan->ordered))
        parts = 1;
    return plan->has_payload ? gf_payload_pieces(cut, node, (uint32_t)parts) : (uint32_t)parts;
}

/* ---- one image ------------------------------------------------------------------------------- */

static void cpu_free_run(cpu_run *run) {
    for (uint32_t i = 0; i < run->cut.nodes->count; i++) {
        free(run->nodes[i].states);
    }
    pthread_cond_destroy(&run->changed);
    pthread_mutex_destroy(&run->lock);
    free(run->ring);
    free(run->scratch);
    free(run->tasks);
    free(run);
}

/* Allocate the memory of a node. */
static gf_status cpu_begin_node(cpu_run *run, uint32_t index, gf_error *error) {
    gf_cpu *cpu = run->cpu;
    const gf_cut *cut = &run->cut;
    const gf_plan *plan = cut->nodes->node[index].plan;
    const gf_edge_cut *to = &cut->edge[index + 1];
    cpu_node *node = &run->nodes[index];
    const uint32_t states = cpu_count_states(cpu, plan), slots = cut->slots;
    *node = (cpu_node){.run = run,
                       .plan = plan,
                       .from = cut->nodes->node[index].from,
                       .parts = cpu_count_parts(cpu, cut, index),
                       .state_bytes = gf_align((size_t)plan->state_bytes),
                       .ring = {.edge = index + 1, .rows = to->ring_rows},
                       .tasks = run->tasks + (size_t)index * slots};
    const size_t ring = (size_t)to->ring_rows * to->stride, all_states = states * node->state_bytes;
    const size_t records = gf_align((size_t)to->max_rows * plan->record);
    const size_t payload = gf_payload_stride(cut, index, node->parts);
    const size_t all = all_states + ring + slots * (records + node->parts * payload);
    node->states = gf_aligned_alloc(1, all);
    if (!node->states)
        return gf_fail_memory(error, cpu->golden ? cpu->name : "strips", all,
                              cpu->golden ? "the measurement"
                                          : "one strip; use a smaller --rows-per-strip");
    memset(node->states, 0, all_states);
    node->ring.memory = node->states + all_states;
    for (uint32_t s = 0; s < slots; s++) {
        unsigned char *own = node->ring.memory + ring + s * (records + node->parts * payload);
        node->tasks[s] = (cpu_task){.node = node, .out = &run->slots[s].out[index]};
        *node->tasks[s].out = (gf_node_rows){
            .records = own, .payloads = payload ? own + records : NULL, .payload_stride = payload};
    }
    return GF_OK;
}

static gf_status cpu_begin(void *state, const gf_cut *cut, gf_slot *slots, unsigned char **ring,
                           void **out, gf_error *error) {
    gf_cpu *cpu = state;
    const uint32_t count = cut->nodes->count;
    assert(count > 0 && cut->slots > 0);
    cpu_run *run = calloc(1, sizeof *run + count * sizeof run->nodes[0]);
    if (!run)
        return gf_fail_memory(error, cpu->name, sizeof *run, "a run");
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->changed, NULL);
    run->cpu = cpu;
    run->cut = *cut;
    run->slots = slots;
    run->busy_before = gf_pool_busy(cpu->pool);
    run->alone = cpu->unthreaded || cut->slots == 1;
    for (uint32_t i = 0; i < count && !cpu->golden; i++)
        run->scratch_bytes =
            gf_max(run->scratch_bytes, gf_align(gf_cpu_scratch_bytes(cut->nodes->node[i].plan)));
    size_t second[GF_MAX_NODES];
    const size_t ring_bytes = gf_cut_ring_bytes(cut, second);
    run->ring = gf_alloc_pages(ring_bytes);
    run->scratch = gf_aligned_alloc(cpu->threads, run->scratch_bytes);
    run->tasks = calloc((size_t)count * cut->slots, sizeof *run->tasks);
    gf_status status = GF_OK;
    if (!run->ring)
        status =
            gf_fail_memory(error, "strips", ring_bytes, "the ring; use a smaller --rows-per-strip");
    else if (!run->scratch || !run->tasks)
        status = gf_fail_memory(error, cpu->name, run->scratch_bytes * cpu->threads, "scratch");
    for (uint32_t i = 0; i < count && !status; i++) {
        status = cpu_begin_node(run, i, error);
        run->alone = run->alone && (cpu->unthreaded || run->nodes[i].parts == 1);
    }
    if (status) {
        cpu_free_run(run);
        return status;
    }
    *ring = run->ring;
    *out = run;
    return GF_OK;
}

/* Return a part of the rows of a strip as a strip with their inputs and the same state. */
static gf_strip cpu_strip_part(const gf_plan *plan, const gf_strip *strip, uint32_t part,
                               uint32_t parts) {
    const uint64_t begin = strip->out.y0 + gf_share(strip->out.rows, part, parts);
    const uint64_t end = strip->out.y0 + gf_share(strip->out.rows, part + 1, parts);
    const gf_range needs = gf_map_needs(plan, (gf_range){begin, end});
    gf_strip piece = *strip;
    piece.out = gf_rows_part(&strip->out, begin, end - begin);
    piece.records = gf_record(plan, strip, begin);
    for (uint32_t i = 0; i < plan->inputs && begin < end; i++)
        piece.in[i] = gf_rows_part(&strip->in[i], needs.first, needs.end - needs.first);
    return piece;
}

/* Return the strip of a node, without a state and with its first payload. in: the rows that it
 * reads of its edge. */
static gf_strip cpu_strip(const gf_plan *plan, const gf_rows *in, const gf_node_rows *out) {
    const gf_rows *second = &out->second;
    return (gf_strip){
        .in = {second->data ? gf_rows_part(in, second->y0, second->rows) : *in, *second},
        .out = out->rows,
        .records = out->records,
        .payload = out->payloads,
        .constants = plan->constants};
}

/* Compute a part of a strip with golden. */
static gf_status cpu_golden_part(const gf_plan *plan, const gf_strip *strip, uint32_t part,
                                 uint32_t parts, gf_error *error) {
    const gf_strip piece = parts > 1 ? cpu_strip_part(plan, strip, part, parts) : *strip;
    /* A payload needs its header even if it has no rows. */
    return piece.out.rows || piece.payload ? plan->filter->golden(plan, &piece, error) : GF_OK;
}

gf_status gf_compute_part(const gf_plan *plan, const gf_strip *strip, uint32_t part, uint32_t parts,
                          void *scratch, gf_isa isa, gf_error *error) {
    const gf_filter *filter = plan->filter;
    if (plan->golden_only)
        return cpu_golden_part(plan, strip, part, parts, error);
    filter->cpu.run[isa](plan, strip, part, parts, scratch);
    return GF_OK;
}

static void cpu_run_part(void *context, uint32_t part, uint32_t thread) {
    cpu_task *task = context;
    cpu_node *node = task->node;
    const cpu_run *run = node->run;
    const gf_plan *plan = node->plan;
    gf_strip strip = cpu_strip(plan, task->in, task->out);
    const double began = gf_now();
    gf_error error;
    strip.state = node->states + (cpu_one_state(run->cpu, plan) ? 0 : thread) * node->state_bytes;
    if (task->out->payload_pieces)
        strip.payload = task->out->payloads + part * task->out->payload_stride;
    const gf_status status =
        run->cpu->golden
            ? cpu_golden_part(plan, &strip, part, node->parts, &error)
            : gf_compute_part(plan, &strip, part, node->parts,
                              run->scratch + thread * run->scratch_bytes, run->cpu->isa, &error);
    if (status && !atomic_flag_test_and_set(&task->failed))
        task->error = error;
    atomic_fetch_add(&node->busy, (uint64_t)((gf_now() - began) * 1e9));
}

/* ---- the scheduler --------------------------------------------------------------------------- */

/* Return how many strips of an edge all readers have finished with. */
static uint64_t cpu_released(const cpu_run *run, uint32_t edge) {
    const gf_nodes *nodes = run->cut.nodes;
    uint64_t released = nodes->written >> edge & 1 ? run->consumed : UINT64_MAX;
    for (uint32_t i = edge; i < nodes->count; i++)
        if (nodes->node[i].from == edge)
            released = gf_min(released, run->nodes[i].done);
    return gf_min(released, run->nodes[edge - 1].done);
}

/* Set the rows of a node's next strip. Return false while its ring has no room. */
static bool cpu_place(cpu_node *node, cpu_task *task) {
    const cpu_run *run = node->run;
    const gf_cut *cut = &run->cut;
    const uint32_t edge = node->ring.edge;
    const uint64_t k = node->begun;
    const gf_range rows = gf_cut_rows(cut, edge, k);
    const uint64_t count = rows.end - rows.first;
    gf_rows *view = &task->view;
    *view = (gf_rows){.stride = cut->edge[edge].stride, .y0 = rows.first, .rows = count};
    if (edge == cut->nodes->count && cut->out.data)
        *view = gf_rows_part(&cut->out, rows.first, count);
    else if (view->stride &&
             !gf_ring_take(&node->ring, cut, k, cpu_released(run, edge), node->done >= k, view))
        return false;
    task->out->rows = view->data ? gf_rows_part(view, rows.first, count) : *view;
    task->out->payload_pieces = count && node->plan->has_payload ? node->parts : 0;
    return true;
}

static void cpu_ended(void *context);

/* Begin the next strip of a node if its input, its memory and its state allow. */
static cpu_task *cpu_begin_strip(cpu_node *node) {
    cpu_run *run = node->run;
    const uint64_t k = node->begun;
    const uint32_t s = (uint32_t)(k % run->cut.slots);
    cpu_task *task = &node->tasks[s];
    if (k >= (node->from ? run->nodes[node->from - 1].done : run->submitted) ||
        (cpu_one_state(run->cpu, node->plan) && node->done < k) || !cpu_place(node, task))
        return NULL;
    task->in = node->from ? &run->nodes[node->from - 1].tasks[s].view : &run->slots[s].in;
    task->work = (gf_work){.run = cpu_run_part,
                           .ended = run->alone ? NULL : cpu_ended,
                           .context = task,
                           .count = task->out->rows.rows ? node->parts : 0,
                           .first = node->from != 0};
    task->ended = false;
    task->error.status = GF_OK;
    atomic_flag_clear(&task->failed);
    node->begun++;
    run->active++;
    return task;
}

/* Complete a strip of a node. */
static void cpu_end_strip(cpu_task *task) {
    cpu_node *node = task->node;
    const uint32_t slots = node->run->cut.slots;
    task->ended = true;
    for (const cpu_task *next; node->done < node->begun; node->done++) {
        next = &node->tasks[node->done % slots];
        if (!next->ended)
            break;
    }
    pthread_cond_broadcast(&node->run->changed);
}

/* Begin all strips that are ready, those of later nodes first: a strip passes through all nodes
 * while it is in the cache. Called with the lock; it is not held while work is queued. */
static void cpu_advance(cpu_run *run) {
    for (uint32_t i = run->cut.nodes->count; i-- > 0;) {
        cpu_task *task = cpu_begin_strip(&run->nodes[i]);
        if (!task)
            continue;
        pthread_mutex_unlock(&run->lock);
        const bool here = run->alone || task->work.count == 0;
        if (here)
            gf_pool_run(run->cpu->pool, &task->work);
        else
            gf_pool_submit(run->cpu->pool, &task->work); /* another thread may end the task */
        pthread_mutex_lock(&run->lock);
        if (here) {
            cpu_end_strip(task);
            run->active--;
        }
        i = run->cut.nodes->count;
    }
}

static void cpu_ended(void *context) {
    cpu_task *task = context;
    cpu_run *run = task->node->run;
    pthread_mutex_lock(&run->lock);
    cpu_end_strip(task);
    cpu_advance(run);
    run->active--;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

static gf_status cpu_submit(void *state, gf_slot *slot, gf_error *error) {
    cpu_run *run = state;
    (void)slot, (void)error;
    pthread_mutex_lock(&run->lock);
    run->submitted++;
    cpu_advance(run);
    pthread_mutex_unlock(&run->lock);
    return GF_OK;
}

static gf_status cpu_wait(void *state, gf_slot *slot, gf_error *error) {
    cpu_run *run = state;
    gf_status status = GF_OK;
    pthread_mutex_lock(&run->lock);
    run->consumed = slot->strip; /* the consumer has those before */
    cpu_advance(run);
    for (uint32_t i = 0; i < run->cut.nodes->count && !status; i++) {
        const cpu_node *node = &run->nodes[i];
        while (node->done <= slot->strip)
            pthread_cond_wait(&run->changed, &run->lock);
        status = gf_return_error(&node->tasks[slot->index].error, error);
    }
    pthread_mutex_unlock(&run->lock);
    return status;
}

/* Report as many workers as can run concurrently. */
static void cpu_busy(void *state, gf_busy busy[GF_STAGE_COUNT], double *nodes) {
    const cpu_run *run = state;
    uint64_t workers = 0;
    for (uint32_t i = 0; i < run->cut.nodes->count; i++) {
        workers += run->nodes[i].parts *
                   (cpu_one_state(run->cpu, run->nodes[i].plan) ? 1 : (uint64_t)run->cut.slots);
        nodes[i] += (double)atomic_load(&run->nodes[i].busy) * 1e-9;
    }
    const double seconds = gf_pool_busy(run->cpu->pool) - run->busy_before;
    gf_busy_add(&busy[GF_COMPUTING],
                (gf_busy){seconds, (uint32_t)gf_min(workers, run->cpu->threads)});
}

static gf_status cpu_collect(void *state, uint32_t index, void *total, gf_error *error) {
    (void)error;
    const cpu_run *run = state;
    const cpu_node *node = &run->nodes[index];
    memcpy(total, node->states, (size_t)node->plan->state_bytes);
    for (uint32_t i = 1; i < cpu_count_states(run->cpu, node->plan); i++)
        node->plan->filter->measure->merge(node->plan, total, node->states + i * node->state_bytes);
    return GF_OK;
}

static void cpu_end(void *state) {
    cpu_run *run = state;
    pthread_mutex_lock(&run->lock);
    while (run->active)
        pthread_cond_wait(&run->changed, &run->lock);
    pthread_mutex_unlock(&run->lock);
    cpu_free_run(run);
}

#define CPU_BACKEND                                                                                \
    .close = cpu_close, .describe = cpu_describe, .begin = cpu_begin, .submit = cpu_submit,        \
    .wait = cpu_wait, .busy = cpu_busy, .collect = cpu_collect, .end = cpu_end

const gf_backend gf_backend_cpu = {
    .name = "cpu", .open = cpu_open, .request = cpu_request, CPU_BACKEND};

const gf_backend gf_backend_golden = {
    .name = "golden", .open = cpu_open_golden, .request = cpu_request_golden, CPU_BACKEND};

const gf_backend gf_backend_verify = {.open = cpu_open_verify, CPU_BACKEND};
