// Host memory that devices read and write themselves, or, where there is no more of that, ordinary
// memory: the driver then copies in between.
#ifndef GF_PINNED_CUH
#define GF_PINNED_CUH

#include "device.cuh"

struct gf_pinned {
    void *data; // NULL: nothing
    size_t size;
    size_t mapped; // bytes from the system, data's pages; 0: the driver's own
    bool ordinary;
};

// Grows it to at least so many bytes, for all devices; what it held is lost.
gf_status gf_pinned_grow(gf_pinned *pinned, size_t size, gf_error *error);
void gf_pinned_free(gf_pinned *pinned);

#endif
