/* A backend that stands in CUDA's place for tests without a device: the cpu backend, in strips of
 * its own height, failing or lying where it is told to. */
#ifndef FAULTY_BACKEND_H
#define FAULTY_BACKEND_H

#include <stdatomic.h>

#include "engine/engine.h"

/* What a device may get wrong in one strip. */
typedef enum faulty_lie {
    LIE_NONE,
    LIE_ROW,
    LIE_RECORD,
    LIE_PAYLOAD,
    LIE_STATE,
    LIE_INPUT
} faulty_lie;

typedef struct faulty_plan {
    uint64_t fail_at; /* of its calls, counted from 1; 0: none */
    bool for_ever;    /* and all that follow */
    gf_status status; /* GF_FAILED: no memory; GF_NO_BACKEND: the device is gone */
    const char *only; /* the device (an engine's) that fails; NULL: any */
    uint64_t rows;    /* of a strip, about */
    faulty_lie lie;
    bool lies_once;      /* in all its life; otherwise once in every image */
    uint64_t strip, bit; /* where: both are taken modulo what there is */
} faulty_plan;

/* From now on, with the calls counted anew. */
void faulty_expect(const faulty_plan *plan);
/* Calls until now, of all engines. */
uint64_t faulty_calls(void);
/* Which call it was that failed first: "open", "begin", "submit", "wait", "collect"; NULL: none. */
const char *faulty_failed(void);
/* Did it lie? */
bool faulty_lied(void);

extern const gf_backend faulty_backend;

#endif
