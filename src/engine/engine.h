/* Engine: the started backends and the choice among them. */
#ifndef GF_ENGINE_H
#define GF_ENGINE_H

#include "backend/backend.h"
#include "io/codecs.h"

#define GF_KEPT_JOBS 16
#define GF_REASON_BYTES sizeof((gf_report *)0)->reason

struct gf_engine {
    gf_engine_options options;            /* the caller owns the strings */
    const gf_backend *named;              /* explicitly requested backend; NULL for auto */
    gf_started started[GF_BACKEND_COUNT]; /* backend NULL: not started */
    double start_seconds;                 /* start-up time not yet added to a report */
    bool may_fall_back;  /* "cuda" for a batch under "auto": may fall back to cpu */
    bool may_defer;      /* in a batch: no fallback if CUDA fails before the first strip */
    gf_error cuda_error; /* its status is not GF_OK: CUDA failed, and is not used again */
    void *verify;        /* state of gf_backend_verify; NULL until needed */
    /* Jobs of gf_run_on_device, the most recently used first, and the function that frees one. */
    gf_device_job *jobs[GF_KEPT_JOBS];
    size_t job_count;
    void (*free_job)(gf_device_job *job);
};

/* Replace CUDA by another backend in tests without a device. "auto" then expects it to finish
 * first. NULL ends the replacement. No engine may be open. */
void gf_engine_stand_in(const gf_backend *backend);

/* Return the number of threads that decode, compute and encode. */
uint32_t gf_engine_threads(const gf_engine *engine);

/* Work for which a backend is chosen. */
typedef struct gf_workload {
    const gf_nodes *nodes;
    gf_codec_costs codec; /* cost of reading and writing; all zero for none */
    uint64_t rows;        /* rows to compute; 0: all */
    uint64_t images;      /* similar images, with this one, that share the start-up time; 0: one */
} gf_workload;

/* Choose and start a backend. With auto, store why in `reason`. */
gf_status gf_engine_choose(gf_engine *engine, const gf_workload *work, gf_started *on,
                           char reason[GF_REASON_BYTES], gf_error *error);

/* Record a failure of a backend: after GF_NO_BACKEND from CUDA, CUDA is not used again. */
void gf_engine_note_failure(gf_engine *engine, const gf_backend *backend, const gf_error *error);

/* Record a failure of *on. Under auto, replace it by cpu, store the reason, and return true. */
bool gf_engine_fall_back(gf_engine *engine, gf_started *on, char reason[GF_REASON_BYTES],
                         const gf_error *error);

/* Convert the failure of a backend to a reason in a report: remove its remedy. */
void gf_engine_format_reason(char reason[GF_REASON_BYTES], const gf_error *error);

/* In tests: decode PNG files on the device even if the CPU is expected to be faster. */
extern bool gf_device_decodes_always;

/* Start the backend for images in device memory. Return GF_USAGE for an engine of another one. */
gf_status gf_engine_device(gf_engine *engine, gf_started *on, gf_error *error);

/* Machine properties in the cost model of auto. */
typedef struct gf_auto_machine {
    uint32_t threads; /* at least 1 */
    uint32_t devices; /* devices that share an image; 0 counts as one */
    bool cuda_started;
    /* Files decoded and encoded at once, each with the threads of its codec; 0: one. */
    uint32_t files;        /* on the CPU */
    uint32_t device_files; /* on all devices */
} gf_auto_machine;

gf_auto_machine gf_engine_machine(const gf_engine *engine);

/* Time estimates of auto. */
typedef struct gf_forecast {
    bool cuda;                        /* CUDA is expected to finish first */
    double cpu_seconds, cuda_seconds; /* for the whole image */
    double start_seconds;             /* part of cuda_seconds that starts the device */
    char reason[GF_REASON_BYTES];     /* as in gf_report */
} gf_forecast;

/* Estimate the times of both backends. Pure arithmetic; accesses no device. */
gf_forecast gf_auto_expect(const gf_workload *work, const gf_auto_machine *machine);
/* Scale the estimate for one image to a number of images. */
void gf_auto_scale(gf_forecast *forecast, uint64_t images);
/* Estimate the time of PNG files that the CPU and a device share. *forecast: for
 * all of them. bytes: filtered bytes of each; parts: its number of streams. Return whether sharing
 * is expected to be faster than either; *forecast then has its time and reason. */
bool gf_auto_expect_shared(uint64_t images, double bytes, uint32_t parts, gf_forecast *forecast);

#endif
