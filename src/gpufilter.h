/* gpufilter: image filters that give the same bits on every backend.
 *
 * This is the whole public interface of libgpufilter; the gpufilter program uses nothing else.
 * docs/library.md begins with a complete program, and says more about threads, memory and versions.
 *
 * Images are H rows x W columns x C interleaved channels (1 grey, 2 grey+alpha, 3 RGB, 4 RGBA) of
 * u8, u16 or f32 samples in native byte order: u8 from 0 to 255, u16 from 0 to 65535, f32 anything,
 * where black is 0 and white is 1. A row takes W * C * (1, 2 or 4) bytes; the next begins a stride
 * of bytes later. Rows need no alignment. What every filter computes, to the bit, is written in
 * docs/numerics.md.
 *
 * Sizes, offsets and counts are 64-bit; sizes of memory and files are bytes, times are seconds of
 * wall time. Text ends with a NUL byte; paths are bytes, as the system has them.
 *
 * These may be NULL everywhere: error, options, the result and report that a call fills in, and
 * what is freed or closed. Other pointers may only where it is said. A call that makes an object
 * leaves NULL in its place when it fails; what else it was to fill in is then undefined.
 *
 * Thread safety: a gf_engine runs one job at a time; different engines may be used from different
 * threads. A gf_settings or gf_result that nobody changes or frees may be read from several. All
 * else is constant or the caller's, but for what a process has once: its standard streams, and
 * the table of temporary files that have a name, which holds 1088: where outputs need one, no more
 * than that can be open at once. Calls that take no engine may be made from any threads at once, on
 * objects of their own.
 *
 * The caller's floating-point environment (rounding mode, flush-to-zero, traps) has no influence on
 * results. Every call that computes sets the default environment and restores the caller's,
 * exception flags included. Callbacks run in the default environment and must leave it as it is.
 *
 * Nothing here is stable before version 1.0: see gf_version_fits.
 */
#ifndef GPUFILTER_H
#define GPUFILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GF_VERSION_MAJOR 0
#define GF_VERSION_MINOR 1
#define GF_VERSION_PATCH 0

/* One number for #if: `#if GF_VERSION >= GF_VERSION_NUMBER(0, 2, 0)`. */
#define GF_VERSION_NUMBER(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define GF_VERSION GF_VERSION_NUMBER(GF_VERSION_MAJOR, GF_VERSION_MINOR, GF_VERSION_PATCH)

/* "MAJOR.MINOR.PATCH" of this header. */
#define GF_VERSION_TEXT_(x) #x
#define GF_VERSION_DOTTED_(a, b, c)                                                                \
    GF_VERSION_TEXT_(a) "." GF_VERSION_TEXT_(b) "." GF_VERSION_TEXT_(c)
#define GF_VERSION_STRING GF_VERSION_DOTTED_(GF_VERSION_MAJOR, GF_VERSION_MINOR, GF_VERSION_PATCH)

#if defined(_WIN32)
#error "gpufilter needs a POSIX system"
#endif
#define GF_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* "MAJOR.MINOR.PATCH" of the library that runs, which may be another than GF_VERSION_STRING. */
GF_API const char *gf_version(void);
/* May a program that was compiled with this version of the header use the library that runs? To be
 * asked with GF_VERSION, before any call that takes a struct. Before 1.0 structs and functions are
 * the same within one MAJOR.MINOR; from 1.0 on within one MAJOR, of a library that is not older. */
GF_API bool gf_version_fits(int header);

/* ---- errors ---------------------------------------------------------------------------------- */

/* What a call returns; the numbers are the program's exit codes. */
typedef enum gf_status {
    GF_OK = 0,
    GF_FAILED = 1,    /* a file, an image, memory or the system failed */
    GF_USAGE = 2,     /* a parameter, an option or another argument is not acceptable */
    GF_NO_BACKEND = 3 /* the asked-for backend or device is not there */
} gf_status;

/* Why a call failed: filled in if it returns anything but GF_OK, and without a meaning otherwise.
 */
typedef struct gf_error {
    gf_status status;   /* what the call returned */
    char message[1024]; /* one line without a newline: the file or option, what is wrong, what to
                         * do. Options are called as in the program ("--radius"); of long paths the
                         * middle is left out, bytes that gf_printable refuses are '?' */
    int cause; /* errno where an output cannot be created, written or put in place; else 0 */
} gf_error;

/* Bytes of the character at the start of a NUL-terminated text, 1 to 4, if it is valid UTF-8 and no
 * control character (below U+0020, U+007F to U+009F), which a terminal would obey. 0 for any other
 * byte: print '?' for it and continue with the next one. */
GF_API size_t gf_printable(const char *text);

/* Fill in an error as the library does, for callbacks that fail: one printable line, the middle of
 * what is too long left out. Return status. error may be NULL. */
GF_API gf_status gf_set_error(gf_error *error, gf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- images ---------------------------------------------------------------------------------- */

/* Of samples: 1, 2 and 4 bytes. */
typedef enum gf_type { GF_U8, GF_U16, GF_F32 } gf_type;

/* What an image is, wherever its rows lie; together they take at most 2^60 bytes. A format that is
 * larger, has no pixels, or other channels or types, is GF_FAILED wherever it is given. */
typedef struct gf_format {
    uint64_t width;    /* pixels a row, at least 1 */
    uint64_t height;   /* rows, at least 1 */
    uint32_t channels; /* 1 grey, 2 grey+alpha, 3 RGB, 4 RGBA */
    gf_type type;
} gf_format;

/* ---- parameters ------------------------------------------------------------------------------ */

/* What the text of a parameter must be. */
typedef enum gf_param_type {
    GF_PARAM_FLAG,   /* no value; false until given */
    GF_PARAM_INT,    /* decimal integer in [min, max] */
    GF_PARAM_FLOAT,  /* read as binary32, in [min, max] */
    GF_PARAM_CHOICE, /* one of choices */
    GF_PARAM_LIST,   /* some of choices, comma-separated, in their order */
    GF_PARAM_SIZE,   /* bytes, with an optional K, M, G or T (powers of 1024), in [min, max] */
    GF_PARAM_RANGE,  /* two binary64 numbers LO,HI with LO < HI and a finite difference */
    GF_PARAM_TEXT,   /* any text */
    GF_PARAM_IMAGE,  /* name of a file for an image that the filter draws beside its result */
    GF_PARAM_SAMPLES /* name of a file for the samples that the filter extracts */
} gf_param_type;

/* One parameter of a filter, or one option of a program, which may have tables of its own. */
typedef struct gf_param {
    const char *name; /* long name without dashes: "keep-brightness" */
    char letter;      /* short option, or 0 */
    gf_param_type type;
    const char *metavar;        /* how help calls the value; NULL for flags */
    const char *help;           /* one sentence without a full stop */
    const char *fallback;       /* the default, as text; NULL for none */
    double min, max;            /* INT, FLOAT and SIZE: both are allowed */
    const char *const *choices; /* CHOICE and LIST: NULL-terminated, at most 64; else NULL */
    const char *group;          /* heading that help lists it under; NULL: the filter's own */
} gf_param;

/* Values for a table of parameters. */
typedef struct gf_settings gf_settings;

/* Settings holding every default of the table, which must outlive them: for a filter `params` and
 * `param_count` of its gf_filter_info. To be freed. NULL if out of memory. */
GF_API gf_settings *gf_settings_new(const gf_param *params, size_t count);
/* Frees settings; nothing for NULL. */
GF_API void gf_settings_free(gf_settings *settings);
/* Sets one parameter from text (NULL or "" for a flag), which is copied: what its type says, in
 * every locale with a point. GF_USAGE if the name is unknown or the text is not acceptable,
 * GF_FAILED if out of memory; the settings are then unchanged. Whether parameters suit each other
 * and an image is found when they are used. */
GF_API gf_status gf_settings_set(gf_settings *settings, const char *name, const char *text,
                                 gf_error *error);
/* Was this parameter set by the caller? */
GF_API bool gf_settings_given(const gf_settings *settings, const char *name);
/* The text last set, the default, or NULL; of a parameter of any type. Lives until it is set again
 * or the settings are freed. */
GF_API const char *gf_settings_text(const gf_settings *settings, const char *name);

/* ---- filters --------------------------------------------------------------------------------- */

/* One of those that are built in: constant, and there for as long as the library is. */
typedef struct gf_filter gf_filter;

/* What a filter is, for help and for parsing. Constant, too, with all that it points at. */
typedef struct gf_filter_info {
    const char *name;     /* the command: "smooth" */
    const char *summary;  /* one line */
    const char *operands; /* "IN OUT" */
    const char *details;  /* paragraphs for --help, lines of at most 78 characters */
    const char *examples; /* command lines, one a line */
    const gf_param *params;
    size_t param_count;
    uint32_t inputs;  /* images read: 1, or 2 of one format */
    bool makes_image; /* image -> image; otherwise it measures, and gives a gf_result (and an image
                       * beside it, if a parameter of type IMAGE is set) */
    bool has_chart;   /* a table of its result can be drawn */
    bool is_test;     /* its result is yes or no: exit code 0 or 1, and 2 for failures */
    /* Parameter sets worth testing, "radius=3 axis=xy keep-brightness"; NULL-terminated. The golden
     * digests, the equality tests and verify go through them all. */
    const char *const *cases;
} gf_filter_info;

/* Returns how many filters are built in. */
GF_API size_t gf_filter_count(void);
/* Returns a filter by its index, from 0; NULL past the last. */
GF_API const gf_filter *gf_filter_at(size_t index);
/* Returns the filter of this name ("smooth"); NULL if there is none. */
GF_API const gf_filter *gf_filter_find(const char *name);
/* Returns what a filter is; filter must not be NULL. */
GF_API const gf_filter_info *gf_filter_describe(const gf_filter *filter);
/* The format of the image that the filter makes of such an input: its result, or what it draws
 * beside it (all zero if it draws nothing with these settings). GF_USAGE if the settings contradict
 * each other or do not suit the input. Reads no image and starts nothing. */
GF_API gf_status gf_filter_output(const gf_filter *filter, const gf_settings *settings,
                                  const gf_format *in, gf_format *out, gf_error *error);
/* A copy of settings with the values that the filter uses for such an input: parameters without a
 * default that it derives from the format or from others (smooth: gain; hist: range, channel) are
 * set. To be freed. Fails as gf_filter_output does, and with GF_FAILED if out of memory. */
GF_API gf_status gf_settings_effective(const gf_filter *filter, const gf_settings *settings,
                                       const gf_format *in, gf_settings **effective,
                                       gf_error *error);
/* ---- results --------------------------------------------------------------------------------- */

/* What a filter measured: tables. The first is the main one; docs/results.md lists those of each
 * filter. It needs neither the engine nor the settings that it was made with: they may be gone. */
typedef struct gf_result gf_result;

/* What a cell of a table holds. */
typedef enum gf_value_type {
    GF_VALUE_UINT,   /* unsigned, up to 128 bits */
    GF_VALUE_FLOAT,  /* binary32 */
    GF_VALUE_DOUBLE, /* binary64 */
    GF_VALUE_TEXT,
    GF_VALUE_NONE /* nothing: an empty field, null in JSON */
} gf_value_type;

/* A cell of a table. */
typedef struct gf_value {
    gf_value_type type; /* which of the others counts: they are zero but for it */
    uint64_t low, high; /* UINT: high * 2^64 + low */
    double real;        /* FLOAT and DOUBLE */
    const char *text;   /* TEXT: lives as long as the result */
} gf_value;

/* How a table wants to be drawn. The first column is what is along x; the columns that count as
 * curves are those from gf_table.curves on. */
typedef enum gf_chart {
    GF_CHART_NONE,
    GF_CHART_BARS, /* bins: from and to in columns "from" and "to"; of integers both are in it */
    GF_CHART_LINES
} gf_chart;

#define GF_MAX_COLUMNS 12

/* A column of a table. */
typedef struct gf_column {
    const char *name;   /* a key: "from" */
    gf_value_type type; /* of each of its cells; one that has no value is NONE */
} gf_column;

/* What a table is like; gf_result_cell has what is in it. */
typedef struct gf_table {
    const char *name;                  /* a key: "bins" */
    gf_column columns[GF_MAX_COLUMNS]; /* the first column_count of them count */
    size_t column_count;
    uint64_t row_count;
    uint64_t brief; /* of bins that the caller did not choose: lines that suit a terminal; 0: all */
    bool single;    /* one row: a set of named values */
    bool in_text;   /* shown in text; otherwise gf_result_text tells about it */
    gf_chart chart;
    size_t curves;                 /* first of the columns that are drawn; they go to the last */
    const char *x_label, *y_label; /* of the chart, with units; NULL without one */
} gf_table;

/* Returns how many tables a result has, at least 1. */
GF_API size_t gf_result_table_count(const gf_result *result);
/* Tables count from 0; NULL past the last. Lives as long as the result. */
GF_API const gf_table *gf_result_table(const gf_result *result, size_t table);
/* All three count from 0. The text "" outside of the table. */
GF_API gf_value gf_result_cell(const gf_result *result, size_t table, uint64_t row, size_t column);
/* Lines for people, each with its newline: what the tables do not show by themselves. May be "".
 * Lives as long as the result. */
GF_API const char *gf_result_text(const gf_result *result);
/* The answer of a filter that is a test; true for others. */
GF_API bool gf_result_passed(const gf_result *result);
/* Frees a result, with its tables and texts; nothing for NULL. */
GF_API void gf_result_free(gf_result *result);
/* A value as text: integers exactly, real numbers with the fewest digits that read back as the same
 * binary32 or binary64; "nan", "inf", "-inf"; NONE as "". What does not fit into size bytes, the
 * NUL byte included, is cut off, as snprintf does; 40 hold any number. */
GF_API void gf_value_format(const gf_value *value, char *text, size_t size);

/* ---- engine ---------------------------------------------------------------------------------- */

/* Owns what is worth starting once for many images: threads, devices, buffers. */
typedef struct gf_engine gf_engine;

/* All zero is the default. The strings must outlive the engine. */
typedef struct gf_engine_options {
    const char *backend; /* "auto" (NULL), "golden", "cpu" or "cuda" */
    const char *devices; /* CUDA devices: "0", "0,2", "all"; NULL: device 0 if CUDA runs. Naming
                          * them with "auto" asks for CUDA, with "golden" or "cpu" is GF_USAGE */
    const char *simd;    /* "auto" (NULL) or one of gf_simd_names() */
    uint32_t threads;    /* CPU worker threads, at most 1024; 0: one a core (gf_cores) */
    bool unthreaded;     /* start no threads: read, compute on the cpu and write in the calling one.
                          * For those who run many engines side by side; `threads` is then 1 */
    uint64_t rows_per_strip; /* rows a strip; 0: chosen from the row size */
    /* Golden computes every strip, too, as it goes: what differs in any bit is GF_FAILED, and the
     * image's files do not appear. Those that give their rows back are read back before they do. */
    bool verify;
    /* Bytes that one image may take: the result, an image that is read twice and cannot be (from a
     * pipe), samples that are held until the end, and the strips in flight, all together. Held
     * samples get half of what result and image leave, the strips the rest. 0:
     * GF_DEFAULT_MAX_MEMORY */
    uint64_t max_memory;
} gf_engine_options;

#define GF_DEFAULT_MAX_MEMORY (UINT64_C(4) << 30)
#define GF_DEFAULT_MAX_PIXELS (UINT64_C(1) << 33)
#define GF_DEFAULT_MAX_CHUNK (UINT64_C(16) << 20)
#define GF_DEFAULT_MAX_SECONDS UINT32_C(60)

/* NULL-terminated names for gf_engine_options.backend, "auto" first. CUDA is named even where it
 * was not built in, so that asking for it says why it cannot be had. */
GF_API const char *const *gf_backend_names(void);
/* NULL-terminated names for gf_engine_options.simd, "auto" first. */
GF_API const char *const *gf_simd_names(void);
/* Was the CUDA backend built in? */
GF_API bool gf_has_cuda(void);
/* Opens an engine, to be closed. A backend named here is started at once: GF_NO_BACKEND if that
 * cannot be (or the processor lacks the named SIMD level). With "auto" nothing is started before an
 * image asks for it. GF_USAGE for names that there are not, GF_FAILED if memory or threads cannot
 * be had. */
GF_API gf_status gf_engine_open(const gf_engine_options *options, gf_engine **engine,
                                gf_error *error);
/* Ends its threads and gives devices and buffers back. Not while it runs a job. */
GF_API void gf_engine_close(gf_engine *engine);

/* ---- running --------------------------------------------------------------------------------- */

/* The parts of the pipeline, which work at the same time. */
typedef enum gf_stage {
    GF_DECODING,
    GF_UPLOADING, /* to a device, and back: only where the backend has one */
    GF_COMPUTING,
    GF_DOWNLOADING,
    GF_ENCODING,
    GF_STAGE_COUNT
} gf_stage;

/* "decoding"; NULL past the end. */
GF_API const char *gf_stage_name(gf_stage stage);

/* How long a stage was at work: seconds of wall time in which each of its workers (threads or
 * devices) had something to do, added up. It was busy for seconds / workers. */
typedef struct gf_busy {
    double seconds;
    uint32_t workers; /* 0: there was no such stage */
} gf_busy;

/* Metadata of an input that its output lacks, though `strip` was not asked for: bits. */
typedef enum gf_dropped {
    GF_DROPPED_ICC = 1,        /* a colour profile: colours look different without it */
    GF_DROPPED_EXIF = 2,       /* camera settings, time, place */
    GF_DROPPED_ORIENTATION = 4 /* in EXIF: the picture is to be turned or mirrored */
} gf_dropped;

/* What was done, by whom, and how long each part of the pipeline was busy. Of a job that failed: as
 * far as it came, the rest zero. */
typedef struct gf_report {
    char backend[16];
    char device[192]; /* "2 threads, avx2"; "NVIDIA H200 (sm_90)" */
    char reason[192]; /* why "auto" chose this backend; empty if it was named */
    /* A device failed, for this image or before it, and what was asked for was done without it: the
     * reason says why. "cuda+cpu" as the backend: the second did the rows that the first had
     * not done when it failed. */
    bool device_failed;
    bool verified;      /* golden computed all of it, too, and found no difference */
    gf_format in, out;  /* out: all zero if no image was made */
    uint64_t in_bytes;  /* of the files that were read, and of the */
    uint64_t out_bytes; /* image's and the samples' that were written; 0 for memory */
    /* Samples written at the largest value (255, 65535), alpha aside: clipped, or just there.
     * Counted where integer rows are encoded (PNG, JPEG, BMP, TGA); exact, the same for every
     * backend. */
    uint64_t clipped;
    bool counts_clipped; /* was it counted? */
    double brightness; /* factor of a flat area's samples, such as 1.452; 0: the filter has none */
    char advice[64];   /* the option that avoids clipping by that factor; empty for none */
    uint32_t dropped;  /* bits of gf_dropped: what a JPEG holds besides pixels */
    uint64_t rows_per_strip, strips; /* rows of a strip, and how many of these there were */
    gf_busy busy[GF_STAGE_COUNT];
    uint32_t processes;   /* that did it together; 0 if it was one alone */
    double start_seconds; /* starting the backend; 0 if it ran already */
    double total_seconds; /* wall time of the whole job, start included */
} gf_report;

/* A file that is complete, and about to appear under its name. */
typedef struct gf_ready {
    uint64_t item;    /* of a batch: its index */
    const char *file; /* where this process finds its image until then, which may have no name
                       * of its own ("/proc/self/fd/7"); NULL: it has no such file */
    const gf_result *result; /* NULL from a filter that makes an image */
    const gf_report *report; /* complete but for the time that naming the outputs takes */
    void *outputs;           /* the library's own */
} gf_ready;

/* How far an image has come. */
typedef struct gf_progress {
    uint64_t item; /* of a batch: its index */
    gf_format in;  /* the image, or the first of two */
    uint64_t done,
        total; /* rows: those that are through the filter and handed to the output, and all.
                * Of a filter that reads its image twice `total` is twice the rows */
} gf_progress;

/* What a file holds that is rows of samples without a header. */
typedef struct gf_raw {
    gf_format format;
    uint64_t offset; /* bytes before the first sample */
    bool big;        /* samples are big-endian */
} gf_raw;

/* Reads "WIDTHxHEIGHT[xCHANNELS]:TYPE[+OFFSET]": TYPE is u8, u16, u16le, u16be, f32, f32le or f32be
 * (no suffix: little-endian), CHANNELS 1 to 4, 1 if left out, OFFSET in bytes. GF_USAGE for
 * anything else; *raw is then unchanged. */
GF_API gf_status gf_raw_parse(const char *text, gf_raw *raw, gf_error *error);

/* Which outputs are on the disk, safe from a power failure, before a call returns. */
typedef enum gf_sync {
    GF_SYNC_REPLACING, /* the bytes of what replaces a file, before it does: old or new is there */
    GF_SYNC_ALWAYS,    /* all of them, their names included */
    GF_SYNC_NEVER      /* none: the system writes them when it likes */
} gf_sync;

/* How files are read and written. All zero is the default. */
typedef struct gf_file_options {
    const char *format;        /* of the output: "png", "pam", ...; NULL: from the output's name */
    const char *sample_format; /* of extracted samples: "csv", "npy", "json"; NULL: from the name */
    bool force;                /* replace existing outputs; binary data to a terminal */
    gf_sync sync;
    bool dry_run; /* only see whether inputs and outputs can be opened: nothing is computed
                   * or written. For gf_run_file only; else GF_USAGE */
    bool strip;   /* leave the input's metadata out */
    const char *compression; /* of a PNG: one of gf_compressions(); NULL: the first */
    uint64_t max_pixels;     /* 0: GF_DEFAULT_MAX_PIXELS */
    uint64_t max_memory;     /* for each file whose format must be held whole, beside the engine's
                              * own; 0: GF_DEFAULT_MAX_MEMORY */
    uint64_t max_chunk;      /* bytes of one metadata chunk; 0: GF_DEFAULT_MAX_CHUNK */
    uint32_t max_seconds;    /* of CPU time to decode a JPEG, BMP, TGA, PSD, GIF or HDR; 0:
                              * GF_DEFAULT_MAX_SECONDS */
    bool no_sandbox;         /* decode those in this process, for files that are trusted: else in a
                              * child process that can do nothing but compute */
    const gf_raw *raw;       /* inputs are rows of samples without a header: what they hold; NULL:
                              * files say it themselves */
    /* Called when everything is computed and written, before any output appears under its name; a
     * failure keeps them all from appearing. Of an image's file only the name will change, no byte
     * and no time of its last change. The result belongs to the caller of gf_run_file in the end,
     * not to this. NULL for none. */
    gf_status (*ready)(void *context, const gf_ready *ready, gf_error *error);
    void *ready_context;
    /* Called, if the image takes more than a moment, whenever some more rows are through: often, so
     * it must be quick. In the thread that called gf_run_file; of a batch, from several threads at
     * once. NULL for none. */
    void (*progress)(void *context, const gf_progress *progress);
    void *progress_context;
} gf_file_options;

/* NULL-terminated names for gf_file_options.compression, the default first. */
GF_API const char *const *gf_compressions(void);
/* NULL-terminated names for gf_file_options.format. */
GF_API const char *const *gf_output_formats(void);

/* Runs a filter on files; "-" is standard input or output.
 *
 * in_paths: as many as the filter has inputs. out_path: where its image goes; NULL for a filter
 * that measures. Files that parameters name (IMAGE, SAMPLES) are written, too. No two outputs may
 * be one file. They appear under their names when all are complete, together: after that only
 * giving a name can fail, and what has got its own by then is taken back. On failure what was there
 * before is still there. *result is for the caller to free; NULL from a filter that makes an image.
 *
 * GF_USAGE: settings of another filter, or such as contradict each other or do not suit the image;
 * names that are missing, too many, of no known format, or being written by another job. GF_FAILED:
 * a file cannot be read or written, is damaged, over a limit, or there already without `force`; or
 * memory is short. GF_NO_BACKEND: a named device failed. */
GF_API gf_status gf_run_file(gf_engine *engine, const gf_filter *filter,
                             const gf_settings *settings, const char *const *in_paths,
                             const char *out_path, const gf_file_options *options,
                             gf_result **result, gf_report *report, gf_error *error);

/* A file of a batch. The strings must live until the batch has ended. */
typedef struct gf_batch_item {
    const char *in;  /* not NULL; "-" is standard input; not more than one may be */
    const char *out; /* NULL for a filter that measures. No two may be one file */
    bool replace;    /* an existing output, as gf_file_options.force does for all */
} gf_batch_item;

/* What became of one of them. */
typedef struct gf_batch_done {
    uint64_t item; /* its index */
    gf_status status;
    const gf_error *error;   /* why, if status is not GF_OK */
    const gf_report *report; /* as far as it came; seconds of what images did together are shared */
    const gf_result *result; /* NULL from a filter that makes an image, and after a failure */
} gf_batch_done;

/* How a batch is run. All zero is the default. */
typedef struct gf_batch_options {
    gf_engine_options engine; /* threads: how many images are under way at once on the CPU */
    gf_file_options files;    /* ready is called from several threads at once */
    bool in_order;            /* tell of items in their order; otherwise as they end */
    bool fail_fast;           /* begin no others once one has failed, even before it is told */
    /* Told of every item that was begun, when all about it is over; one call at a time, from any
     * thread. What it is given is gone when it returns. False: begin no others; what is under way
     * ends, and is told. NULL for none. */
    bool (*done)(void *context, const gf_batch_done *done);
    void *context;
} gf_batch_options;

/* Runs a filter of one input on many files, each by itself: what fails stops no other, and results
 * are those of gf_run_file. Parameters that name files (IMAGE, SAMPLES) may not be set.
 *
 * On the CPU each thread has an image of its own. On CUDA devices the threads decode and encode;
 * small images of one format that wait go through a device together, larger ones, and all that are
 * verified, each as gf_run_file does it, up to four at a time on each device, and every device
 * takes whatever is next. "auto" decides once for all, by the first image and the count.
 *
 * engine.max_memory is for each image under way; those that are held for a device keep to it
 * together, and to a gigabyte.
 *
 * GF_OK though items failed: `done` was told. Otherwise why none could be run: settings that suit
 * no image (which is all that is found out for a count of 0), a backend that is not there. Of
 * several named devices that were all started, those that are left do what another leaves when it
 * fails; when none is left the batch ends with GF_NO_BACKEND, and what was not told was not done.
 */
GF_API gf_status gf_run_batch(const gf_filter *filter, const gf_settings *settings,
                              const gf_batch_item *items, uint64_t count,
                              const gf_batch_options *options, gf_error *error);

/* Rows in memory, as many as the image is high. They are read until the call returns; nothing that
 * lies between two of them, or behind the last, is. */
typedef struct gf_pixels {
    const void *data;
    size_t stride; /* bytes from one row to the next, at least those of a row; any alignment */
} gf_pixels;

/* Runs a filter on images in memory: in[0], and for a filter of two inputs in[1], of one format.
 * out: where the image of gf_filter_output goes, rows of its own format and out_stride bytes apart;
 * it must not overlap the inputs; NULL if there is none. A parameter that names a file (IMAGE,
 * SAMPLES) need only be set: no file is written; extracted samples are in the result, all of them,
 * as far as max_memory allows. *result is for the caller to free; NULL from a filter that makes an
 * image.
 *
 * GF_USAGE: as gf_run_file, or data that is NULL. GF_FAILED: a format that no image has, a stride
 * shorter than a row, too little memory. GF_NO_BACKEND: a named device failed. After any of these
 * some rows of out may have been written. */
GF_API gf_status gf_run_memory(gf_engine *engine, const gf_filter *filter,
                               const gf_settings *settings, const gf_format *format,
                               const gf_pixels *in, void *out, size_t out_stride,
                               gf_result **result, gf_report *report, gf_error *error);

/* Where an image goes: rows in memory. What lies between two of them stays as it is. */
typedef struct gf_out_pixels {
    void *data;
    size_t stride; /* as in gf_pixels */
} gf_out_pixels;

/* Runs a filter on `count` images in memory, all of one format, with the same results as
 * gf_run_memory on one after the other. Image i is in[i * inputs], for a filter of two together
 * with the one that follows; the image made of it goes to out[i] (out: NULL if none is), and its
 * result to results[i], to be freed one by one (results: NULL if not wanted). Fails as
 * gf_run_memory does: one image that fails fails them all, and all results are then NULL.
 *
 * Where each row that the filter makes follows from the same row of its input alone, the images
 * share strips: thousands of small ones cost a few uploads, launches and downloads. Other filters
 * take them one by one. max_memory is for one image's result, and for the strips of all. The report
 * is about all images together, but for its formats. */
GF_API gf_status gf_run_memory_batch(gf_engine *engine, const gf_filter *filter,
                                     const gf_settings *settings, const gf_format *format,
                                     uint64_t count, const gf_pixels *in, const gf_out_pixels *out,
                                     gf_result **results, gf_report *report, gf_error *error);

/* ---- looking around ---------------------------------------------------------------------------
 */

/* What a file holds, from its beginning alone. */
typedef struct gf_file_info {
    gf_format format;   /* as filters get it */
    char kind[8];       /* "png", "pgm", "jpg", "raw", ... */
    char stored[96];    /* how the file holds it: "8-bit palette, interlaced" */
    char metadata[256]; /* names of the metadata chunks before the pixels, a space between them */
} gf_file_info;

/* "-" is standard input. Of options, only the limits (max_pixels, max_memory, max_chunk,
 * max_seconds, no_sandbox) and raw count. GF_FAILED if it is no image that can be read. */
GF_API gf_status gf_inspect_file(const char *path, const gf_file_options *options,
                                 gf_file_info *info, gf_error *error);

/* Reads a whole image, which takes at most options->max_memory bytes. Its rows, without gaps, are
 * the caller's to free(). "-" is standard input. Of options, the same count. */
GF_API gf_status gf_load_file(const char *path, const gf_file_options *options, gf_format *format,
                              void **pixels, gf_error *error);

/* A CUDA device as the driver describes it. */
typedef struct gf_device {
    uint32_t index; /* for gf_engine_options.devices */
    char name[128];
    char bus[32];        /* its PCI address */
    uint32_t capability; /* 90 for compute capability 9.0 */
    uint32_t processors; /* multiprocessors */
    uint64_t memory_bytes, free_bytes;
    bool usable; /* new enough for the cuda backend, and it can be started now */
} gf_device;

/* Fills in up to capacity devices and sets *count to how many there are, which may be more.
 * GF_NO_BACKEND with the reason where there is no CUDA; *count is then 0. */
GF_API gf_status gf_devices(gf_device *devices, size_t capacity, size_t *count, gf_error *error);

/* Cores that this process may use: the cpu backend's threads, unless it is told otherwise. */
GF_API uint32_t gf_cores(void);

#ifdef __cplusplus
}
#endif

#endif
