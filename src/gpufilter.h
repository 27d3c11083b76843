/* gpufilter: image filters that give the same bits on every backend.
 *
 * This is the whole public interface of libgpufilter; the gpufilter program uses nothing else.
 *
 * Images are H rows x W columns x C interleaved channels (1 grey, 2 grey+alpha, 3 RGB, 4 RGBA) of
 * u8, u16 or f32 samples in native byte order. Sizes, offsets and counts are 64-bit. What every
 * filter computes, to the bit, is written in docs/numerics.md.
 *
 * Thread safety: a gf_engine runs one job at a time; different engines may be used from different
 * threads. Everything else here is either constant or owned by the caller.
 */
#ifndef GPUFILTER_H
#define GPUFILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GF_VERSION_MAJOR 0
#define GF_VERSION_MINOR 1
#define GF_VERSION_PATCH 0

#if defined(_WIN32)
#error "gpufilter needs a POSIX system"
#endif
#define GF_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* "MAJOR.MINOR.PATCH" of the library that is linked. */
GF_API const char *gf_version(void);

/* ---- errors ---------------------------------------------------------------------------------- */

/* What a call returns; the numbers are the program's exit codes. */
typedef enum gf_status {
    GF_OK = 0,
    GF_FAILED = 1,    /* a file, an image, memory or the system failed */
    GF_USAGE = 2,     /* an option or operand is not acceptable */
    GF_NO_BACKEND = 3 /* the asked-for backend or device is not there */
} gf_status;

/* One line without a newline: the file or option, what is wrong, what to do. */
typedef struct gf_error {
    gf_status status;
    char message[1024];
} gf_error;

/* ---- images ---------------------------------------------------------------------------------- */

typedef enum gf_type { GF_U8, GF_U16, GF_F32 } gf_type;

typedef struct gf_format {
    uint64_t width;    /* pixels a row, at least 1 */
    uint64_t height;   /* rows, at least 1 */
    uint32_t channels; /* 1 grey, 2 grey+alpha, 3 RGB, 4 RGBA */
    gf_type type;
} gf_format;

/* ---- parameters ------------------------------------------------------------------------------ */

typedef enum gf_param_type {
    GF_PARAM_FLAG,   /* no value; false until given */
    GF_PARAM_INT,    /* decimal integer in [min, max] */
    GF_PARAM_FLOAT,  /* read as binary32, in [min, max] */
    GF_PARAM_CHOICE, /* one of choices */
    GF_PARAM_LIST,   /* some of choices, comma-separated, in their order */
    GF_PARAM_SIZE,   /* bytes, with an optional K, M, G or T (powers of 1024), in [min, max] */
    GF_PARAM_TEXT    /* any text */
} gf_param_type;

/* One parameter of a filter, or one option of the program. */
typedef struct gf_param {
    const char *name; /* long name without dashes: "keep-brightness" */
    char letter;      /* short option, or 0 */
    gf_param_type type;
    const char *metavar;        /* how help calls the value; NULL for flags */
    const char *help;           /* one sentence without a full stop */
    const char *fallback;       /* the default, as text; NULL for none */
    double min, max;            /* INT, FLOAT and SIZE */
    const char *const *choices; /* CHOICE and LIST: NULL-terminated, at most 64 */
} gf_param;

/* Values for a table of parameters. */
typedef struct gf_settings gf_settings;

/* Settings holding every default of the table, which must outlive them. NULL if out of memory. */
GF_API gf_settings *gf_settings_new(const gf_param *params, size_t count);
GF_API void gf_settings_free(gf_settings *settings);
/* Sets one parameter from text (NULL or "" for a flag). GF_USAGE if the name is unknown or the text
 * is not acceptable; the settings are then unchanged. */
GF_API gf_status gf_settings_set(gf_settings *settings, const char *name, const char *text,
                                 gf_error *error);
/* Was this parameter set by the caller? */
GF_API bool gf_settings_given(const gf_settings *settings, const char *name);
/* The value of a parameter of the matching type. */
GF_API bool gf_settings_flag(const gf_settings *settings, const char *name);
GF_API int64_t gf_settings_int(const gf_settings *settings, const char *name);
GF_API uint64_t gf_settings_size(const gf_settings *settings, const char *name);
GF_API float gf_settings_float(const gf_settings *settings, const char *name);
GF_API size_t gf_settings_choice(const gf_settings *settings, const char *name); /* its index */
GF_API uint64_t gf_settings_list(const gf_settings *settings,
                                 const char *name); /* bit i: choice i */
/* The text last set, the default, or NULL. */
GF_API const char *gf_settings_text(const gf_settings *settings, const char *name);

/* ---- filters --------------------------------------------------------------------------------- */

typedef struct gf_filter gf_filter;

/* What a filter is, for help and for parsing. */
typedef struct gf_filter_info {
    const char *name;     /* the command: "smooth" */
    const char *summary;  /* one line */
    const char *operands; /* "IN OUT" */
    const char *details;  /* paragraphs for --help, lines of at most 78 characters */
    const char *examples; /* command lines, one a line */
    const gf_param *params;
    size_t param_count;
} gf_filter_info;

GF_API size_t gf_filter_count(void);
GF_API const gf_filter *gf_filter_at(size_t index);       /* NULL past the end */
GF_API const gf_filter *gf_filter_find(const char *name); /* NULL if there is none */
GF_API const gf_filter_info *gf_filter_describe(const gf_filter *filter);

/* ---- engine ---------------------------------------------------------------------------------- */

/* Owns what is worth starting once for many images: threads, devices, buffers. */
typedef struct gf_engine gf_engine;

typedef struct gf_engine_options {
    const char *backend; /* "auto" (NULL), "golden", "cpu" or "cuda" */
    const char *devices; /* CUDA devices: "0", "0,2", "all"; NULL: device 0 if CUDA runs. Naming
                          * them with "auto" asks for CUDA, with "golden" or "cpu" is GF_USAGE */
    const char *simd;    /* "auto" (NULL) or one of gf_simd_names() */
    uint32_t threads;    /* CPU worker threads; 0: one a core */
    uint64_t band_rows;  /* rows a band; 0: chosen from the row size */
    uint64_t max_memory; /* bytes one image may take in buffers; 0: GF_DEFAULT_MAX_MEMORY */
} gf_engine_options;

#define GF_DEFAULT_MAX_MEMORY (UINT64_C(4) << 30)
#define GF_DEFAULT_MAX_PIXELS (UINT64_C(1) << 36)
#define GF_DEFAULT_MAX_CHUNK (UINT64_C(16) << 20)

/* NULL-terminated names for gf_engine_options.backend, "auto" first. CUDA is named even where it
 * was not built in, so that asking for it says why it cannot be had. */
GF_API const char *const *gf_backend_names(void);
/* NULL-terminated names for gf_engine_options.simd, "auto" first. */
GF_API const char *const *gf_simd_names(void);
/* Was the CUDA backend built in? */
GF_API bool gf_has_cuda(void);

/* Opens an engine. A backend named here is started at once: GF_NO_BACKEND if that cannot be. With
 * "auto" nothing is started before an image asks for it. */
GF_API gf_status gf_engine_open(const gf_engine_options *options, gf_engine **engine,
                                gf_error *error);
GF_API void gf_engine_close(gf_engine *engine);

/* ---- running --------------------------------------------------------------------------------- */

/* What was done, by whom, and how long each part of the pipeline was busy. */
typedef struct gf_report {
    char backend[16];
    char device[192]; /* "2 threads, avx2"; "NVIDIA H200 (sm_90)" */
    char reason[192]; /* why "auto" chose this backend; empty if it was named */
    gf_format in, out;
    uint64_t band_rows, bands;
    double decode_seconds;  /* busy time of the source */
    double compute_seconds; /* time spent in the backend's calls, waiting for results included */
    double encode_seconds;  /* busy time of the sink */
    double start_seconds;   /* starting the backend; 0 if it ran already */
    double total_seconds;   /* wall time of the whole job, start included */
} gf_report;

/* How files are read and written. All zero is the default. */
typedef struct gf_file_options {
    const char *format;  /* of the output: "png", "pam", ...; NULL: from the output's name */
    bool force;          /* replace an existing output; binary data to a terminal */
    bool strip;          /* leave the input's metadata out */
    int compression;     /* PNG: 1 + zlib level (0..9); 0: the default */
    uint64_t max_pixels; /* 0: GF_DEFAULT_MAX_PIXELS */
    uint64_t max_memory; /* for images that must be held whole; 0: GF_DEFAULT_MAX_MEMORY */
    uint64_t max_chunk;  /* bytes of one metadata chunk; 0: GF_DEFAULT_MAX_CHUNK */
} gf_file_options;

/* NULL-terminated names for gf_file_options.format. */
GF_API const char *const *gf_output_formats(void);

/* Filters one file into another; "-" is standard input or output. The output appears under its name
 * only when it is complete; on failure what was there before is still there. report may be NULL. */
GF_API gf_status gf_run_file(gf_engine *engine, const gf_filter *filter,
                             const gf_settings *settings, const char *in_path, const char *out_path,
                             const gf_file_options *options, gf_report *report, gf_error *error);

/* Filters an image in memory. Strides are bytes from one row to the next and at least the bytes of
 * a row; in and out have the same format and must not overlap. report may be NULL. */
GF_API gf_status gf_run_memory(gf_engine *engine, const gf_filter *filter,
                               const gf_settings *settings, const gf_format *format, const void *in,
                               size_t in_stride, void *out, size_t out_stride, gf_report *report,
                               gf_error *error);

/* Unlinks the temporary files of all running jobs. Async-signal-safe: for signal handlers that are
 * about to end the process. */
GF_API void gf_remove_temporaries(void);

#ifdef __cplusplus
}
#endif

#endif
