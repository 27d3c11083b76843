/* A backend whose every band golden computes, too, and compares to the bit. */
#ifndef GF_VERIFIED_H
#define GF_VERIFIED_H

#include "engine/backend.h"
#include "pool.h"

/* The state of gf_backend_verified, for one image. */
typedef struct gf_verifier {
    const gf_backend *backend; /* that is verified, */
    void *state;               /* and its own */
    gf_pool *pool;             /* that golden runs on; nothing else does meanwhile */
    uint32_t threads;          /* of it */
    const char *name;          /* of the image, for messages */
    bool differs;              /* the failure was that something is not as golden has it */
} gf_verifier;

/* After a band is there, golden makes the same rows, records and payloads from the same input, and
 * in the end the same state. The first difference is GF_FAILED. So are input rows that are not any
 * more what they were when the band was submitted. */
extern const gf_backend gf_backend_verified;

#endif
