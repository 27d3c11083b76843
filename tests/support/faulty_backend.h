/* Backend that replaces cuda in tests without a device: the cpu backend with strips of another
 * height, which fails or corrupts data on request. */
#ifndef FAULTY_BACKEND_H
#define FAULTY_BACKEND_H

#include <stdatomic.h>

#include "engine/engine.h"

/* Data that a device corrupts in one strip. */
typedef enum faulty_corruption {
    CORRUPT_NONE,
    CORRUPT_ROW,
    CORRUPT_RECORD,
    CORRUPT_PAYLOAD,
    CORRUPT_STATE,
    CORRUPT_INPUT
} faulty_corruption;

typedef struct faulty_plan {
    uint64_t fail_at; /* number of the failing call, from 1; 0: none */
    bool permanent;   /* all later calls fail, too */
    gf_status status; /* GF_FAILED: no memory; GF_NO_BACKEND: the device is lost */
    const char *only; /* name of the failing device (of an engine); NULL: any */
    uint64_t rows;    /* approximate rows per strip */
    faulty_corruption corruption;
    bool corrupts_once;  /* once in total; otherwise once per image */
    uint64_t strip, bit; /* position of the corruption, modulo the available strips and bits */
} faulty_plan;

/* Set the plan, and reset the number of calls. */
void faulty_expect(const faulty_plan *plan);
/* Return the number of calls so far, of all engines. */
uint64_t faulty_calls(void);
/* Return the first call that failed: "open", "begin", "submit", "wait", "collect"; NULL: none. */
const char *faulty_failed(void);
/* Return true if data was corrupted. */
bool faulty_corrupted(void);

extern const gf_backend faulty_backend;

#endif
