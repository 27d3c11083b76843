#include "faulty_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

typedef struct faulty {
    void *cpu;
    char device[16];
} faulty;

typedef struct faulty_run {
    const faulty *owner;
    void *cpu;
    const gf_plan *plan; /* of the last node */
    uint32_t node;
    size_t row_bytes;        /* of the input */
    uint64_t strips, waited; /* strips with rows */
} faulty_run;

static faulty_plan expected;
static atomic_ullong calls;
static atomic_bool corrupted;
static _Atomic(const char *) failed;

void faulty_expect(const faulty_plan *plan) {
    expected = *plan;
    atomic_store(&calls, 0);
    atomic_store(&failed, NULL);
    atomic_store(&corrupted, false);
}

uint64_t faulty_calls(void) {
    return atomic_load(&calls);
}

const char *faulty_failed(void) {
    return atomic_load(&failed);
}

bool faulty_corrupted(void) {
    return atomic_load(&corrupted);
}

/* Count a call of a device, and fail if it is the selected call. */
static gf_status call(const faulty *owner, const char *what, gf_error *error) {
    if (expected.only && strcmp(expected.only, owner->device) != 0)
        return GF_OK;
    const uint64_t n = atomic_fetch_add(&calls, 1) + 1;
    if (!expected.fail_at || n < expected.fail_at || (n > expected.fail_at && !expected.permanent))
        return GF_OK;
    const char *none = NULL;
    atomic_compare_exchange_strong(&failed, &none, what);
    return gf_fail(error, expected.status, "cuda: %s: injected failure; use --backend cpu", what);
}

static gf_status faulty_open(const gf_engine_options *options, void **state, gf_error *error) {
    faulty *own = calloc(1, sizeof *own);
    if (!own)
        return gf_fail_memory(error, "cuda", sizeof *own, "the backend");
    strncpy(own->device, options->devices ? options->devices : "", sizeof own->device - 1);
    gf_status status = call(own, "open", error);
    if (status && error)
        error->status = GF_NO_BACKEND;
    if (status)
        status = GF_NO_BACKEND;
    else
        status = gf_backend_cpu.open(options, &own->cpu, error);
    if (status) {
        free(own);
        return status;
    }
    *state = own;
    return GF_OK;
}

static void faulty_close(void *state) {
    faulty *own = state;
    gf_backend_cpu.close(own->cpu);
    free(own);
}

static void faulty_describe(const void *state, char *text, size_t size) {
    const faulty *own = state;
    snprintf(text, size, "faulty %s", own->device);
}

/* Request other strips than the cpu backend, so that a fallback changes the strips. */
static gf_strip_request faulty_request(const void *state, const gf_nodes *nodes) {
    gf_strip_request request = gf_backend_cpu.request(((const faulty *)state)->cpu, nodes);
    const gf_plan *plan = nodes->node[0].plan;
    request.bytes = expected.rows * plan->inputs * gf_align(gf_row_bytes(&plan->in));
    request.halos = 0;
    request.in_memory = false; /* corrupted input must not be that of the caller */
    return request;
}

static gf_status faulty_begin(void *state, const gf_cut *cut, gf_slot *slots, unsigned char **ring,
                              void **out, gf_error *error) {
    faulty *own = state;
    faulty_run *run = calloc(1, sizeof *run);
    if (!run)
        return gf_fail_memory(error, "cuda", sizeof *run, "a run");
    run->owner = own;
    run->node = cut->nodes->count - 1;
    run->plan = cut->nodes->node[run->node].plan;
    run->row_bytes = gf_row_bytes(&cut->nodes->node[0].plan->in);
    for (uint64_t k = 0; k < cut->strips; k++) {
        const gf_range rows = gf_cut_rows(cut, run->node + 1, k);
        run->strips += rows.end > rows.first;
    }
    gf_status status = call(own, "begin", error);
    if (!status)
        status = gf_backend_cpu.begin(own->cpu, cut, slots, ring, &run->cpu, error);
    if (status) {
        free(run);
        return status;
    }
    *out = run;
    return GF_OK;
}

static gf_status faulty_submit(void *state, gf_slot *slot, gf_error *error) {
    faulty_run *run = state;
    const gf_status status = call(run->owner, "submit", error);
    return status ? status : gf_backend_cpu.submit(run->cpu, slot, error);
}

/* Flip one bit. The data race is intended: a faulty device writes without synchronization. */
__attribute__((no_sanitize_thread)) static void flip(void *data, uint64_t bytes) {
    if (bytes == 0 || (atomic_exchange(&corrupted, true) && expected.corrupts_once))
        return;
    ((unsigned char *)data)[expected.bit / 8 % bytes] ^= (unsigned char)(1u << expected.bit % 8);
}

/* Flip a bit in the first payload with samples, or in the header of the first payload. */
static void flip_payload(const faulty_run *run, const gf_node_rows *out) {
    const gf_payload_format *format = run->plan->filter->payload;
    const size_t head = format->bytes(run->plan, 0);
    uint32_t i = 0;
    while (i + 1 < out->payload_pieces &&
           format->used(run->plan, out->payloads + i * out->payload_stride) == head)
        i++;
    unsigned char *payload = out->payloads + i * out->payload_stride;
    const size_t used = format->used(run->plan, payload);
    /* A larger count includes bytes after the samples: initialize them. */
    memset(payload + used, 0, out->payload_stride - used);
    flip(payload, used);
}

static void corrupt(const faulty_run *run, const gf_slot *slot) {
    const gf_plan *plan = run->plan;
    const gf_node_rows *out = &slot->out[run->node];
    const gf_rows *in = expected.bit % plan->inputs ? &out->second : &slot->in;
    const uint64_t y = out->rows.y0 + expected.bit / 64 % out->rows.rows;
    switch (expected.corruption) {
    case CORRUPT_ROW:
        if (plan->out.width)
            flip(gf_row(&out->rows, y), gf_row_bytes(&plan->out));
        break;
    case CORRUPT_RECORD:
        if (plan->record)
            flip(out->records + (y - out->rows.y0) * plan->record, plan->record);
        break;
    case CORRUPT_PAYLOAD:
        if (plan->has_payload)
            flip_payload(run, out);
        break;
    case CORRUPT_INPUT:
        flip(gf_row(in, in->y0 + expected.bit / 64 % in->rows), run->row_bytes);
        break;
    default:
        break;
    }
}

static gf_status faulty_wait(void *state, gf_slot *slot, gf_error *error) {
    faulty_run *run = state;
    gf_status status = call(run->owner, "wait", error);
    if (!status)
        status = gf_backend_cpu.wait(run->cpu, slot, error);
    if (!status && slot->out[run->node].rows.rows && run->waited++ == expected.strip % run->strips)
        corrupt(run, slot);
    return status;
}

static void faulty_busy(void *state, gf_busy busy[GF_STAGE_COUNT], double *nodes) {
    gf_backend_cpu.busy(((const faulty_run *)state)->cpu, busy, nodes);
}

static gf_status faulty_collect(void *state, uint32_t node, void *total, gf_error *error) {
    faulty_run *run = state;
    gf_status status = call(run->owner, "collect", error);
    if (!status)
        status = gf_backend_cpu.collect(run->cpu, node, total, error);
    if (!status && expected.corruption == CORRUPT_STATE)
        flip(total, run->plan->state_bytes);
    return status;
}

static void faulty_end(void *state) {
    faulty_run *run = state;
    gf_backend_cpu.end(run->cpu);
    free(run);
}

const gf_backend faulty_backend = {
    .name = "cuda",
    .open = faulty_open,
    .close = faulty_close,
    .describe = faulty_describe,
    .request = faulty_request,
    .begin = faulty_begin,
    .submit = faulty_submit,
    .wait = faulty_wait,
    .busy = faulty_busy,
    .collect = faulty_collect,
    .end = faulty_end,
};
