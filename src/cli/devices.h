/* What this machine has to compute with. */
#ifndef GF_CLI_DEVICES_H
#define GF_CLI_DEVICES_H

#include "gpufilter.h"

typedef struct gf_machine {
    char processor[64];
    gf_device *devices;
    size_t count;
    gf_error none; /* why there is no CUDA; its status is 0 if there is */
} gf_machine;

/* Having no CUDA is no failure. */
gf_status gf_machine_look(gf_machine *machine, gf_error *error);
void gf_machine_free(gf_machine *machine);
/* A line for the processor and each device, or why there is none. */
void gf_machine_text(const gf_machine *machine);
/* Members of an object: "cpu", "cuda", "why_no_cuda". */
void gf_machine_json(const gf_machine *machine);

#endif
