/* The contract between one filter and everything else: read this first.
 *
 * A filter is a descriptor (struct gf_filter): what it is called, which parameters it takes, how
 * they become a plan, and one function a backend that carries the plan out. The parser, the help,
 * the golden digests and the equality tests are all made from it. To add a filter: a folder in
 * filters/, a .cu in cuda/, a line in filters/registry.def.
 *
 * All implementations of one filter give the same bits. The golden one says which bits. */
#ifndef GF_FILTER_H
#define GF_FILTER_H

#include "image.h"
#include "isa.h"

/* Parameters resolved once, on the host, for one image format. Every filter's own plan begins with
 * this head; every backend reads the same plan. */
typedef struct gf_plan {
    gf_format in, out;
    uint64_t
        halo; /* rows above and below an output row that the filter reads, clipped to the image */
    uint64_t golden_bytes; /* memory that the golden function takes, at most */
    double cost;           /* estimated nanoseconds an input sample takes one CPU core */
} gf_plan;

/* The fast CPU implementation. Many threads share a band: each computes some parts of it, cut as
 * the filter likes, by rows or by columns. */
typedef struct gf_filter_cpu {
    /* Bytes of scratch that one thread needs. */
    size_t (*scratch_bytes)(const gf_plan *plan);
    /* Computes part `part` of `parts` of the rows of out (all of them together are all of it); in
     * holds at least these rows and their halo. */
    void (*run)(const gf_plan *plan, const gf_rows *in, const gf_rows *out, uint32_t part,
                uint32_t parts, void *scratch, gf_isa isa);
} gf_filter_cpu;

/* The CUDA implementation: the same on device memory, queued on a stream. */
typedef struct gf_filter_cuda {
    /* Bytes of device scratch that one band of at most in_rows input rows needs. */
    size_t (*scratch_bytes)(const gf_plan *plan, uint64_t in_rows);
    /* Queues the kernels; stream is a cudaStream_t of the current device. */
    gf_status (*launch)(const gf_plan *plan, const gf_rows *in, const gf_rows *out, void *scratch,
                        void *stream, gf_error *error);
} gf_filter_cuda;

struct gf_filter {
    gf_filter_info info;
    /* Parameter sets worth testing, "radius=3 axis=xy keep-brightness"; NULL-terminated. The golden
     * digests and the equality tests go through them all. */
    const char *const *cases;
    size_t plan_bytes;
    /* Fills a plan of plan_bytes; plan->in is set already. GF_USAGE for settings that contradict
     * each other. */
    gf_status (*plan)(const gf_settings *settings, gf_plan *plan, gf_error *error);
    /* The definition: scalar, one thread, the whole image at once. */
    gf_status (*golden)(const gf_plan *plan, const gf_rows *in, const gf_rows *out,
                        gf_error *error);
    gf_filter_cpu cpu;
    const gf_filter_cuda *cuda; /* NULL where CUDA is not built in */
};

#ifdef GF_WITH_CUDA
#define GF_IF_CUDA(pointer) (pointer)
#else
#define GF_IF_CUDA(pointer) NULL
#endif

/* Sets parameters from one of a filter's cases. */
gf_status gf_settings_apply_case(gf_settings *settings, const char *text, gf_error *error);

#endif
