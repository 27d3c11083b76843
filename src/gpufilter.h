/* gpufilter: image filters that produce the same bits on every backend.
 *
 * This header is the complete public interface of libgpufilter. docs/library.md starts with a
 * complete program and covers threads, memory and versions in detail.
 *
 * Images are H rows x W columns x C interleaved channels (1 grey, 3 RGB; 2 or 4 with an alpha or
 * another data channel) of u8, u16 or f32 samples in native byte order. u8 ranges from 0 to 255,
 * u16 from 0 to 65535. f32 is unrestricted: 0 is black, 1 is white. A row occupies W * C * (1, 2 or
 * 4) bytes. The stride is the distance in bytes between the starts of two rows. Rows need no
 * alignment. docs/numerics.md defines the result of every filter to the bit.
 *
 * Sizes, offsets and counts are 64-bit. Memory and file sizes are in bytes, times in seconds of
 * wall time. Text is NUL-terminated. Paths are byte strings, as the system stores them.
 *
 * These pointers may always be NULL: error, options, the result and report that a call fills in,
 * and the argument of a function that frees or closes. Other pointers may be NULL only where
 * documented. A call that creates an object stores NULL on failure; its other outputs are then
 * undefined.
 *
 * Thread safety: a gf_engine runs one job at a time; different threads may use different engines.
 * Several threads may read the same gf_settings or gf_result while no thread modifies or frees it.
 * Calls without an engine may run concurrently on separate objects. Two resources are shared by the
 * whole process: the standard streams, and the table of named temporary files. The table holds 1088
 * entries, which limits the number of open outputs that need a temporary name.
 *
 * The caller's floating-point environment (rounding mode, flush-to-zero, traps) does not affect
 * results. Every call that computes sets the default environment and restores the caller's on
 * return, exception flags included. Callbacks run in the default environment and must not change
 * it.
 *
 * A callback must return: leaving it by longjmp, a C++ exception, exit or pthread_exit would leave
 * threads, locks and temporary files of the library behind.
 *
 * The interface is not stable before version 1.0: see gf_version_fits. */
#ifndef GPUFILTER_H
#define GPUFILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GF_VERSION_MAJOR 0
#define GF_VERSION_MINOR 1
#define GF_VERSION_PATCH 0

/* Version as one number for #if: `#if GF_VERSION >= GF_VERSION_NUMBER(0, 2, 0)`. */
#define GF_VERSION_NUMBER(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define GF_VERSION GF_VERSION_NUMBER(GF_VERSION_MAJOR, GF_VERSION_MINOR, GF_VERSION_PATCH)

/* Version of this header as text, "MAJOR.MINOR.PATCH". */
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

/* Return the version of the loaded library, "MAJOR.MINOR.PATCH". It may differ from
 * GF_VERSION_STRING. */
GF_API const char *gf_version(void);
/* Return whether the loaded library is compatible with this version of the header. Call it with
 * GF_VERSION before any call that takes a struct. Before 1.0, structs and functions are compatible
 * within one MAJOR.MINOR. From 1.0, they are compatible within one MAJOR if the library is not
 * older than the header. */
GF_API bool gf_version_fits(int header);

/* ---- errors ---------------------------------------------------------------------------------- */

/* Return value of a call, equal to the exit code of the program. */
typedef enum gf_status {
    GF_OK = 0,
    GF_FAILED = 1,    /* a file, an image, memory or the system failed */
    GF_USAGE = 2,     /* a parameter, an option or another argument is invalid */
    GF_NO_BACKEND = 3 /* the requested backend or device is not available */
} gf_status;

/* Reason for a failure. Filled in when a call returns anything but GF_OK; undefined otherwise. */
typedef struct gf_error {
    gf_status status; /* status that the call returned */
    /* One line without a newline: file or option, cause, remedy. Options have the program's names
     * ("--radius"). The middle of a long path is omitted; bytes that gf_printable rejects become
     * '?'. */
    char message[1024];
    int cause;     /* errno if an input cannot be opened, or an output cannot be created, written or
                    * renamed (EEXIST: it exists without `force`); else 0 */
    uint32_t step; /* step of the job that failed, from 1; 0: no single step */
} gf_error;

/* Return the size in bytes, 1 to 4, of the character at the start of a NUL-terminated text. Return
 * 0 for invalid UTF-8 and for control characters (below U+0020, U+007F to U+009F), which a terminal
 * would interpret: print '?' and continue with the next byte. */
GF_API size_t gf_printable(const char *text);

/* Fill in an error in the library's format, for callbacks that fail: one printable line; the middle
 * of a text that is too long is omitted. Return status. error may be NULL. */
GF_API gf_status gf_set_error(gf_error *error, gf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- images ---------------------------------------------------------------------------------- */

/* Sample type: 1, 2 or 4 bytes. */
typedef enum gf_type { GF_U8, GF_U16, GF_F32 } gf_type;

/* Size, channels and sample type of an image of at most 2^60 bytes. Every call returns GF_FAILED
 * for a larger or empty image and for any other channel count or type. */
typedef struct gf_format {
    uint64_t width;    /* pixels per row, at least 1 */
    uint64_t height;   /* rows, at least 1 */
    uint32_t channels; /* 1 to 4 */
    gf_type type;
    /* The last of 2 or 4 channels is alpha: filters copy it, measurements leave it out unless it is
     * requested. false: all channels are data. */
    bool alpha;
} gf_format;

/* Rows of an input image in memory. The bytes between two rows and after the last one are not read.
 */
typedef struct gf_pixels {
    const void *data;
    size_t stride; /* bytes from one row to the next, at least the size of a row; any alignment */
} gf_pixels;

/* Rows of an output image in memory. The bytes between two rows are not written. */
typedef struct gf_out_pixels {
    void *data;
    size_t stride; /* as in gf_pixels */
} gf_out_pixels;

/* ---- parameters ------------------------------------------------------------------------------ */

/* Syntax of a parameter's text. */
typedef enum gf_param_type {
    GF_PARAM_FLAG,   /* no value; default: false */
    GF_PARAM_INT,    /* decimal integer in [min, max] */
    GF_PARAM_FLOAT,  /* number in [min, max], parsed as binary32 */
    GF_PARAM_CHOICE, /* one of choices; NAME:V stands for NAME, a colon and a binary64 number */
    GF_PARAM_LIST,   /* comma-separated subset of choices, in their order */
    GF_PARAM_SIZE,   /* bytes in [min, max]; suffixes K, M, G and T are powers of 1024 */
    GF_PARAM_RANGE,  /* two binary64 numbers LO,HI with LO < HI and HI - LO <= 1e303; or a choice */
    GF_PARAM_TEXT,   /* any text */
    GF_PARAM_IMAGE,  /* path of an image that the filter draws in addition to its result */
    GF_PARAM_SAMPLES, /* path of the file that receives the extracted samples */
    GF_PARAM_PAIR,    /* one binary64 number in [min, max], or two as X,Y: one may be 0 */
    GF_PARAM_INT_PAIR /* the same with integers */
} gf_param_type;

/* One parameter of a filter, or one option of a program with its own tables. */
typedef struct gf_param {
    const char *name; /* long name without dashes: "keep-brightness" */
    char letter;      /* short option, or 0 */
    gf_param_type type;
    const char *metavar;        /* placeholder for the value in help; NULL for flags */
    const char *help;           /* one sentence without a full stop */
    const char *fallback;       /* default value as text; NULL for none */
    double min, max;            /* numbers and SIZE: valid range, both inclusive */
    const char *const *choices; /* CHOICE, LIST, RANGE: NULL-terminated, at most 64; else NULL */
    const char *group;          /* heading in help; NULL: the filter's own options */
} gf_param;

/* Values for a table of parameters. */
typedef struct gf_settings gf_settings;

/* Create settings with the defaults of a table. For a filter, pass `params` and `param_count` of
 * its gf_filter_info. The table must outlive the settings. Free them with gf_settings_free. Return
 * NULL if out of memory. */
GF_API gf_settings *gf_settings_new(const gf_param *params, size_t count);
/* Free settings. NULL is allowed. */
GF_API void gf_settings_free(gf_settings *settings);
/* Set one parameter from text (NULL or "" for a flag) and copy the text. The decimal separator is a
 * point in every locale. Return GF_USAGE for an unknown name or invalid text, GF_FAILED if out of
 * memory; the settings are then unchanged. Conflicts between parameters, or with an image, are
 * reported when the settings are used. */
GF_API gf_status gf_settings_set(gf_settings *settings, const char *name, const char *text,
                                 gf_error *error);
/* Return whether the caller has set this parameter. */
GF_API bool gf_settings_given(const gf_settings *settings, const char *name);
/* Return the text last set, the default, or NULL, for a parameter of any type. Valid until the
 * parameter is set again or the settings are freed. */
GF_API const char *gf_settings_text(const gf_settings *settings, const char *name);

/* ---- filters --------------------------------------------------------------------------------- */

/* A built-in filter. Constant; valid as long as the library is loaded. */
typedef struct gf_filter gf_filter;

/* Description of a filter for help and parsing. Constant, with everything it points to. */
typedef struct gf_filter_info {
    const char *name;     /* command name: "smooth" */
    const char *summary;  /* one line */
    const char *operands; /* operands in the usage line: "IN OUT" */
    const char *details;  /* paragraphs for --help; lines have at most 78 characters */
    const char *examples; /* command lines, one per line */
    const gf_param *params;
    size_t param_count;
    uint32_t inputs;  /* number of images read: 1, or 2 of the same format */
    bool makes_image; /* true: produces an image. false: produces a gf_result, and an image if a
                       * parameter of type IMAGE is set */
    bool has_chart;   /* a table of its result can be drawn */
    bool is_test;     /* its result is yes or no: exit code 0 or 1, and 2 for failures */
    /* Parameter sets to test, such as "radius=3 axis=xy keep-brightness"; NULL-terminated. The
     * golden digests, the equality tests and verify run all of them. The first one is "", unless
     * the filter requires a parameter. */
    const char *const *cases;
} gf_filter_info;

/* Return a built-in filter by its index, from 0; NULL past the end. */
GF_API const gf_filter *gf_filter_at(size_t index);
/* Return the filter with this name ("smooth"); NULL if there is none. */
GF_API const gf_filter *gf_filter_find(const char *name);
/* Return the description of a filter. filter must not be NULL. */
GF_API const gf_filter_info *gf_filter_describe(const gf_filter *filter);
/* ---- results --------------------------------------------------------------------------------- */

/* Tables that a filter measured. The first one is the main table; docs/results.md lists the tables
 * of each filter. A result stays valid after its engine and settings are freed. */
typedef struct gf_result gf_result;

/* Type of a cell. */
typedef enum gf_value_type {
    GF_VALUE_UINT,   /* unsigned integer of up to 128 bits */
    GF_VALUE_FLOAT,  /* binary32 */
    GF_VALUE_DOUBLE, /* binary64 */
    GF_VALUE_TEXT,
    GF_VALUE_NONE /* no value: an empty field, null in JSON */
} gf_value_type;

/* One cell of a table. */
typedef struct gf_value {
    gf_value_type type; /* selects the valid members; the others are zero */
    uint64_t low, high; /* UINT: high * 2^64 + low */
    double real;        /* FLOAT and DOUBLE */
    const char *text;   /* TEXT: valid as long as the result */
} gf_value;

/* Kind of chart for a table. The first column is the x axis. The curves are the columns from
 * gf_table.curves to the last. */
typedef enum gf_chart {
    GF_CHART_NONE,
    GF_CHART_BARS, /* bins from column "from" to column "to"; integer bounds are inclusive */
    GF_CHART_LINES
} gf_chart;

#define GF_MAX_COLUMNS 12

/* One column of a table. */
typedef struct gf_column {
    const char *name;   /* key: "from" */
    gf_value_type type; /* type of its cells; a cell without a value is NONE */
} gf_column;

/* Layout of a table. gf_result_cell returns its contents. */
typedef struct gf_table {
    const char *name;                  /* key: "bins" */
    gf_column columns[GF_MAX_COLUMNS]; /* the first column_count entries are valid */
    size_t column_count;
    uint64_t row_count;
    uint64_t brief; /* default number of rows on a terminal if the caller did not choose the number
                     * of bins; 0: all */
    bool single;    /* one row: a set of named values */
    bool in_text;   /* text output prints the table; otherwise gf_result_text covers it */
    gf_chart chart;
    size_t curves;                 /* index of the first column drawn, up to the last */
    const char *x_label, *y_label; /* axis labels with units; NULL without a chart */
} gf_table;

/* Return the number of tables, at least 1. */
GF_API size_t gf_result_table_count(const gf_result *result);
/* Return a table by its index, from 0; NULL past the end. Valid as long as the result. */
GF_API const gf_table *gf_result_table(const gf_result *result, size_t table);
/* Return a cell. All indexes start at 0. Outside the table, return the text "". */
GF_API gf_value gf_result_cell(const gf_result *result, size_t table, uint64_t row, size_t column);
/* Copy the cells of a column to an array of row_count elements: uint64_t for a column of UINT,
 * double for FLOAT and DOUBLE, const char * for TEXT, valid as long as the result. A cell without a
 * value becomes 0, a NaN or NULL. Return false, with the array undefined, for an index outside the
 * tables and for integers of more than 64 bits. */
GF_API bool gf_result_column(const gf_result *result, size_t table, size_t column, void *values);
/* Return lines of text, each with its newline, that complement the tables. May be "". Valid as long
 * as the result. */
GF_API const char *gf_result_text(const gf_result *result);
/* Return whether a filter that is a test passed; true for other filters. */
GF_API bool gf_result_passed(const gf_result *result);
/* Free a result with its tables and texts. NULL is allowed. */
GF_API void gf_result_free(gf_result *result);
/* Format a value as text: integers exactly, real numbers with the fewest digits that parse to the
 * same binary32 or binary64, "nan", "inf", "-inf", and "" for NONE. Truncate to size bytes
 * including the NUL, as snprintf does. 40 bytes hold any number. */
GF_API void gf_value_format(const gf_value *value, char *text, size_t size);

/* ---- names ----------------------------------------------------------------------------------- */

/* Lists of names. */
typedef enum gf_name_list {
    GF_NAMES_BACKEND, /* gf_engine_options.backend, "auto" first. "cuda" is always listed: if CUDA
                       * is not built in, opening the engine reports the reason */
    GF_NAMES_SIMD,    /* gf_engine_options.simd, "auto" first */
    GF_NAMES_STAGE,   /* stages, by gf_stage: "decoding" */
    GF_NAMES_FORMAT,  /* gf_write_options.format */
    GF_NAMES_COMPRESSION,     /* gf_write_options.compression, the default first */
    GF_NAMES_TIFF_COMPRESSION /* gf_write_options.tiff_compression, the default first */
} gf_name_list;

/* Return a NULL-terminated list of names. */
GF_API const char *const *gf_names(gf_name_list list);

/* ---- engine ---------------------------------------------------------------------------------- */

/* Resources shared by many images: threads, devices, buffers. */
typedef struct gf_engine gf_engine;

/* Options of an engine. All zero selects the defaults. The strings must outlive the engine. */
typedef struct gf_engine_options {
    const char *backend; /* "auto" (NULL), "golden", "cpu" or "cuda" */
    /* CUDA devices: "0", "0,2", "all"; NULL: device 0 if CUDA runs. A list with backend "auto"
     * selects CUDA; with "golden" or "cpu" it is GF_USAGE. */
    const char *devices;
    const char *simd; /* "auto" (NULL) or one of gf_names(GF_NAMES_SIMD) */
    uint32_t threads; /* CPU worker threads, at most 1024; 0: gf_cores() */
    /* Start no threads: read, compute on the CPU and write in the calling thread. For callers that
     * run many engines in parallel; `threads` is then 1. */
    bool unthreaded;
    uint64_t rows_per_strip; /* rows per strip; 0: chosen from the row size */
    /* Compute every strip with the golden backend, too. A difference in any bit is GF_FAILED, and
     * no output file appears. Outputs in lossless formats are read back and compared before they
     * appear. */
    bool verify;
    /* Maximum bytes for one image: the result, an input from a pipe that is read twice, samples
     * buffered until the end, and the strips in flight. Buffered samples get half of the memory
     * that result and image leave, the strips get the rest. 0: GF_DEFAULT_MAX_MEMORY, or half of
     * the memory limit of the control groups of this process, if that is less. */
    uint64_t max_memory;
} gf_engine_options;

#define GF_DEFAULT_MAX_MEMORY (UINT64_C(4) << 30)
#define GF_DEFAULT_MAX_PIXELS (UINT64_C(1) << 35)
#define GF_DEFAULT_MAX_CHUNK (UINT64_C(16) << 20)
#define GF_DEFAULT_MAX_SECONDS UINT32_C(60)
#define GF_DEFAULT_QUALITY UINT32_C(95)

/* gf_file_options.page: all pages of the input. */
#define GF_ALL_PAGES UINT32_MAX
#define GF_MAX_PAGE UINT32_C(1048576)

/* Return whether the CUDA backend is built in. */
GF_API bool gf_has_cuda(void);
/* Open an engine. Close it with gf_engine_close. An explicitly requested backend starts at once.
 * With "auto", a backend starts when the first image needs it. Return GF_NO_BACKEND if the backend
 * cannot start or the CPU lacks the requested SIMD level, GF_USAGE for unknown names and too many
 * threads, GF_FAILED if memory or threads cannot be allocated. */
GF_API gf_status gf_engine_open(const gf_engine_options *options, gf_engine **engine,
                                gf_error *error);
/* End the threads of an engine and release its devices and buffers. Do not call it while the engine
 * runs a job. NULL is allowed. */
GF_API void gf_engine_close(gf_engine *engine);

/* ---- running --------------------------------------------------------------------------------- */

/* Stages of the pipeline, which run concurrently. */
typedef enum gf_stage {
    GF_DECODING,
    GF_UPLOADING, /* uploading and downloading: only on a backend with a device */
    GF_COMPUTING,
    GF_DOWNLOADING,
    GF_ENCODING,
    GF_STAGE_COUNT
} gf_stage;

/* Busy time of a stage: seconds of wall time during which each of its workers (threads or devices)
 * had work, summed over the workers. The stage was busy for seconds / workers. */
typedef struct gf_busy {
    double seconds;
    uint32_t workers; /* 0: the stage did not exist */
} gf_busy;

/* Bits for input data that the output lacks although `strip` was not set: metadata, and bits of the
 * samples. */
typedef enum gf_dropped {
    GF_DROPPED_ICC = 1,         /* colour profile: colours look different without it */
    GF_DROPPED_EXIF = 2,        /* camera settings, time, location */
    GF_DROPPED_ORIENTATION = 4, /* EXIF orientation: the picture must be rotated or mirrored */
    GF_DROPPED_XMP = 8,
    GF_DROPPED_IPTC = 16,       /* IPTC and other Photoshop resources */
    GF_DROPPED_RESOLUTION = 32, /* pixels per inch or per centimetre */
    GF_DROPPED_TEXT = 64,       /* texts and comments */
    GF_DROPPED_COLOUR = 128,    /* other colour data: gamma, chromaticities, light levels */
    GF_DROPPED_OTHER = 256,
    GF_DROPPED_DEPTH = 512 /* `depth` reduced the samples to fewer bits */
} gf_dropped;

/* Remarks about the files of a job. Those about one of two inputs begin with "first image: " or
 * "second image: ". */
typedef struct gf_remarks {
    /* Damage in the pixels of an input that was read all the same, such as rows of a fax that were
     * repaired. One line; empty: none. */
    char damage[192];
    char notes[512];  /* other remarks about inputs and outputs, one per line; empty: none */
    uint64_t outside; /* f32 samples outside 0..1 that `depth` clipped, of all pages; also a note */
    uint64_t nodata;  /* samples with the nodata value of the file, of all pages; also a note */
} gf_remarks;

/* Statistics of a job: backend, device, input and busy times. After a failure, the fields cover the
 * work done so far; the others are zero. */
typedef struct gf_report {
    char backend[16];
    char device[192]; /* "2 threads, avx2"; "NVIDIA H200 (sm_90)" */
    char reason[192]; /* why "auto" chose this backend; empty if it was requested explicitly */
    /* A device failed, during this image or earlier, and the run continued without it; `reason`
     * holds the cause. Backend "cuda+cpu": the cpu backend computed the rows that were missing when
     * CUDA failed. */
    bool device_failed;
    bool verified;     /* golden computed the whole image, too, without a difference */
    gf_format in;      /* as the first filter received it. With several pages, the first one */
    uint64_t pixels;   /* pixels of `in`, or of all pages with GF_ALL_PAGES */
    uint64_t in_bytes; /* size of the input files; 0 for memory */
    uint32_t pages;    /* pages of the input file; 0: its format has none */
    uint64_t rows_per_strip, strips; /* rows per strip, and number of strips */
    uint64_t strip_bytes;            /* of the strips of all steps in memory at once */
    gf_busy busy[GF_STAGE_COUNT];
    uint32_t processes;   /* number of processes that shared the work; 0 for a single process */
    double start_seconds; /* start of the backend; 0 if it was already running */
    double total_seconds; /* wall time of the whole job, start included */
    gf_remarks remarks;
} gf_report;

/* Statistics of one step of a job. The fields of outputs are those of the image that it wrote: by a
 * writer, or drawn by a filter that measures. */
typedef struct gf_step_report {
    gf_format in;       /* as the step received the image */
    gf_format out;      /* as it passed the image on or wrote it; all zero: no image */
    double seconds;     /* of computing, summed over threads, or on the device; 0: not computed */
    uint64_t out_bytes; /* size of the image and sample files written; 0 for memory */
    /* Samples written with the maximum value (255, 65535), alpha excluded, whether clipped or
     * exact. Counted where integer rows are encoded (PNG, JPEG, BMP, TGA). The count is exact and
     * the same on every backend. */
    uint64_t clipped;
    uint64_t counted;  /* samples that were counted for `clipped`, alpha excluded; 0: none */
    uint32_t dropped;  /* bits of gf_dropped: metadata that was not copied */
    double brightness; /* factor applied to a flat area, such as 1.452; 0: none */
    char advice[64];   /* option that avoids this clipping; empty: none */
    /* During gf_file_options.ready: path at which this process can open the image until it gets its
     * name. The file may have no name of its own ("/proc/self/fd/7"). NULL: not a file. */
    const char *file;
} gf_step_report;

/* Outcome of a job. The caller provides the arrays; NULL discards their contents. */
typedef struct gf_outcome {
    gf_report report;
    gf_step_report *steps; /* one per step */
    gf_result **results; /* [step * count + image]: NULL without a result, and after a failure. The
                          * caller frees them */
} gf_outcome;

/* Argument of gf_file_options.ready: complete outputs without their final names. */
typedef struct gf_ready {
    uint64_t item;             /* index in the batch */
    const gf_outcome *outcome; /* complete except for the time that renaming the outputs takes */
    void *outputs;             /* internal */
} gf_ready;

/* Progress of one image. */
typedef struct gf_progress {
    uint64_t item;        /* index in the batch */
    gf_format in;         /* format of the image, or of the first of two */
    uint64_t done, total; /* done: rows filtered and passed to the output; total: all rows, or twice
                           * the rows for a filter that reads its image twice */
} gf_progress;

/* Layout of a headerless file of sample rows. */
typedef struct gf_raw {
    gf_format format;
    uint64_t offset; /* bytes before the first sample */
    bool big_endian; /* samples are big-endian */
} gf_raw;

/* Parse "WIDTHxHEIGHT[xCHANNELS]:TYPE[+OFFSET]". TYPE is u8, u16, u16le, u16be, f32, f32le or f32be
 * (default byte order: little-endian), CHANNELS is 1 to 4 (default: 1), OFFSET is in bytes. Return
 * GF_USAGE for any other text; *raw is then unchanged. */
GF_API gf_status gf_raw_parse(const char *text, gf_raw *raw, gf_error *error);

/* Which outputs are flushed to disk with fsync before a call returns. */
typedef enum gf_sync {
    GF_SYNC_REPLACING, /* the data of an output that replaces a file, before the rename: after a
                        * power failure the file is either old or new */
    GF_SYNC_ALWAYS,    /* every output, its directory entry included */
    GF_SYNC_NEVER      /* none: the system writes them back later */
} gf_sync;

/* Rectangle of an image, in pixels. */
typedef struct gf_crop {
    uint64_t x, y;          /* column and row of its first pixel, from 0 */
    uint64_t width, height; /* at least 1; the rectangle must lie inside the image */
} gf_crop;

/* Parse "X,Y,WIDTH,HEIGHT". Return GF_USAGE for any other text and for an empty rectangle; *crop is
 * then unchanged. */
GF_API gf_status gf_crop_parse(const char *text, gf_crop *crop, gf_error *error);

/* Sample type of an image that is written. */
typedef enum gf_depth {
    GF_DEPTH_INPUT, /* that of the input; of an image drawn in addition, that of the drawing */
    GF_DEPTH_8,
    GF_DEPTH_16,
    GF_DEPTH_F32
} gf_depth;

/* Which channel of an input is alpha. */
typedef enum gf_alpha {
    GF_ALPHA_FILE, /* the one that the file declares; none in NPY and raw files */
    GF_ALPHA_LAST, /* the last of 2 or 4 channels */
    GF_ALPHA_NONE  /* none: all channels are data */
} gf_alpha;

/* Whether colours are weighed by alpha: see gf_file_options. */
typedef enum gf_premultiply {
    GF_PREMULTIPLY_AUTO, /* by resize; other filters copy alpha */
    GF_PREMULTIPLY_ON,
    GF_PREMULTIPLY_OFF
} gf_premultiply;

/* How an image is written. All zero selects the defaults. */
typedef struct gf_write_options {
    const char *format;           /* "png", "pam", ...; NULL: from the extension */
    const char *compression;      /* of PNG; NULL: the first of GF_NAMES_COMPRESSION */
    const char *tiff_compression; /* NULL: the first of GF_NAMES_TIFF_COMPRESSION */
    uint32_t quality;             /* of JPEG, 1 to 100; 0: GF_DEFAULT_QUALITY */
    /* Sample type. A filter that produces an image computes in this type if it is larger than that
     * of the input: the input is converted. Otherwise the image is converted when it is written.
     * docs/numerics.md defines both conversions. */
    gf_depth depth;
    bool strip; /* omit the input's metadata */
} gf_write_options;

/* Options for reading and writing files. All zero selects the defaults. */
typedef struct gf_file_options {
    gf_write_options write;    /* of writers without options of their own, and of drawings */
    const char *sample_format; /* sample format: "csv", "npy", "json"; NULL: from the extension */
    bool force;                /* replace existing outputs; write binary data to a terminal */
    gf_sync sync;
    bool dry_run; /* only check that inputs and outputs can be opened, and choose a backend and
                   * strips; compute and write nothing. For gf_run on files only; else GF_USAGE */
    /* Convert sRGB samples to linear light, f32, for a filter that produces an image, and back when
     * it is written. f32 images are linear already, and stay so. GF_FAILED if the metadata says
     * that the image is not sRGB. GF_USAGE for a filter that measures. */
    bool linear;
    uint64_t max_pixels; /* maximum pixels per image; 0: GF_DEFAULT_MAX_PIXELS */
    /* Maximum bytes for each file whose format must be held in memory as a whole, in addition to
     * the engine's memory; 0: as gf_engine_options.max_memory. */
    uint64_t max_memory;
    uint64_t max_chunk;   /* maximum bytes of one metadata chunk; 0: GF_DEFAULT_MAX_CHUNK */
    uint32_t max_seconds; /* maximum seconds of CPU time to decode a progressive JPEG, BMP, TGA,
                           * PSD, GIF, HDR, or a TIFF besides 0.1 us per sample; 0: 60 */
    bool no_sandbox;      /* decode BMP, TGA, PSD, GIF, HDR and rare codecs of TIFF in this process,
                           * for trusted files only. By default a child decodes them, or nothing */
    const gf_raw *raw;    /* layout of headerless input files; NULL: inputs have headers */
    /* Page of a TIFF, NPY, PNM, MPO or GIF, 1 to GF_MAX_PAGE; 0: 1. GF_ALL_PAGES: a filter that
     * produces an image filters each page, and one that measures measures all pages as one image,
     * one below the other. GF_USAGE with two inputs, or if there are several pages and the output
     * is not a TIFF; GF_FAILED if they come from a pipe, or if measured pages differ in format. */
    uint32_t page;
    bool autorotate; /* turn the pixels of inputs as their EXIF orientation says, and set it to 1 */
    /* Part of each input to read, after that, as if it were the image; NULL: all. Rows below it are
     * not read, and neither is what follows them: late metadata, checksums. */
    const gf_crop *crop;
    /* Called after all outputs are written and before any of them is renamed to its final name. If
     * it fails, no output appears. Only the names of image files change afterwards: their bytes
     * and modification times do not. The caller of gf_run owns the results, not this callback.
     * NULL for none. */
    gf_status (*ready)(void *context, const gf_ready *ready, gf_error *error);
    void *ready_context;
    /* Called after each strip of an image, therefore often: it must be fast. gf_run calls it in the
     * calling thread; a batch calls it from several threads concurrently. Return false to cancel
     * the image: the call fails with GF_FAILED, and no output appears. NULL for none. */
    bool (*progress)(void *context, const gf_progress *progress);
    void *progress_context;
    gf_alpha alpha; /* of the inputs */
    /* Weigh colours by alpha: multiply them by it, filter all channels in f32, alpha included, and
     * divide them by the filtered alpha. Otherwise filters copy alpha, or, if they change the size
     * of the image, treat it as a colour, and the colours of transparent pixels spread to their
     * neighbours. GF_USAGE if no filter mixes pixels. Without effect for images without alpha. */
    gf_premultiply premultiply;
    bool strict; /* fail for damage that is otherwise read and reported (gf_remarks) */
    /* Treat samples with the nodata value of a GDAL TIFF as others. By default, hist, axis-sum and
     * dot leave them out. */
    bool keep_nodata;
    /* GF_DEPTH_16 or GF_DEPTH_F32: read the samples of inputs as this type and keep their values;
     * files of other sample types (int16, float64, ...) are read only in this way. As u16,
     * GF_FAILED for an image with a value that is not an integer from 0 to 65535. As f32, values
     * are rounded once. GF_DEPTH_8 is GF_USAGE. */
    gf_depth as;
    /* Channels of inputs to read, in this order: 1 to 4 numbers from 1 on, such as "4,2,1". They
     * are data, not alpha. NULL: all; files with more channels than a gf_format can have need it.
     */
    const char *channels;
} gf_file_options;

/* ---- jobs ------------------------------------------------------------------------------------
 *
 * A job is a list of steps that an image passes through. A filter that produces an image passes it
 * on to the next step. A filter that measures passes on the image that it received. A step without
 * a filter is a writer: it writes the image, and passes it on. All steps run in one pass, with the
 * bits of jobs of single steps, one after the other.
 *
 * The filter "convert", which gf_filter_at does not list, changes the samples from its step on:
 * `depth`, and `light=decode depth=f32` for linear light, which a writer of integers stores as sRGB
 * in the type that the image had before. */

/* Where the images of a job are. */
typedef enum gf_memory {
    GF_FILES,
    GF_HOST,  /* memory of the process */
    GF_DEVICE /* memory of a CUDA device */
} gf_memory;

#define GF_FROM_INPUT UINT32_MAX

/* A step of a job. */
typedef struct gf_step {
    const gf_filter *filter;     /* NULL: a writer */
    const gf_settings *settings; /* of the filter; NULL: its defaults */
    uint32_t from; /* 0: the image after the step before; GF_FROM_INPUT: that of the job */
    /* Second input of a filter with two: a path for GF_FILES, otherwise one image for each of the
     * job, of the format of the first one. */
    const char *in_path;
    const gf_pixels *in;
    /* Output of a writer: a path for GF_FILES, otherwise one image for each of the job. A filter
     * that measures takes the paths of its outputs from its parameters (IMAGE, SAMPLES); in memory,
     * `out` receives the image that it draws if that parameter is set. */
    const char *out_path;
    const gf_out_pixels *out;
    const gf_write_options *write; /* of this writer; NULL: those of the job */
} gf_step;

/* Work for gf_run. Zero members are defaults. The caller owns everything that it points to. */
typedef struct gf_job {
    const gf_step *steps;
    uint32_t step_count;
    gf_memory memory;
    const char *in_path; /* GF_FILES: the input; "-" is standard input */
    const gf_pixels *in; /* otherwise `count` images of this format; 0 counts as 1 */
    uint64_t count;
    gf_format format;
    void *stream;                   /* GF_DEVICE: a cudaStream_t; NULL: the default stream */
    const gf_file_options *options; /* GF_FILES: NULL: the defaults; otherwise unused */
} gf_job;

/* Description of a step for images of a format. */
typedef struct gf_step_info {
    gf_format in, out;      /* out: all zero if the step produces no image */
    gf_settings *effective; /* settings with the values that the filter derives for this format:
                             * parameters without a default (smooth: gain; hist: range, channel).
                             * The caller frees them with gf_settings_free. NULL for a writer */
    uint64_t before, after; /* rows read above and below an output row */
    uint64_t result_bytes;  /* memory of the result without extracted samples, which
                             * gf_engine_options.max_memory must allow */
    /* Filter that measures the whole image first, with its default settings; NULL: none. */
    const gf_filter *measures_first;
} gf_step_info;

/* Describe the steps of a job for images of job->format. info has one entry per step. Read no image
 * and start no backend; images and paths may be missing. Return GF_USAGE if settings conflict with
 * each other or with the format. */
GF_API gf_status gf_job_inspect(const gf_job *job, gf_step_info *info, gf_error *error);

/* Steps of a job that were parsed from text, with their settings and paths. */
typedef struct gf_pipeline gf_pipeline;

#define GF_PIPELINE_STEPS 32

/* Parse the steps of a job, such as "median radius=2 ! gaussian sigma=1.5 ! write out.png ! hist".
 *
 * A step is a word and its options, separated by blanks. `!` as a word of its own, or a newline,
 * separates steps; empty ones are skipped. '#' before a word begins a comment, up to the end of the
 * line. Single or double quotes keep blanks and these characters in a word.
 *
 *   FILTER          a filter, by its name. "compare" and "dot" are followed by a FILE
 *   write OUT       a writer; its options are the members of gf_write_options
 *   depth TYPE      convert the samples to 8 or 16 bits, or f32
 *   linear          decode sRGB to linear light, f32
 *   open, close     erode, then dilate; dilate, then erode: two steps with the same options
 *   input           the next step reads the first image
 *
 * Options are written "--sigma 2", "--sigma=2", "-s 2" or "sigma=2"; flags "--strip" or "strip".
 *
 * out: path of a writer that is added as the last step; NULL: none. write: options of writers with
 * options of their own, which replace these; they must be those of the job; NULL: the defaults.
 * Both must outlive the pipeline. Free it with gf_pipeline_free.
 *
 * GF_USAGE: an unknown step or option, an invalid value, a missing or superfluous word, more than
 * GF_PIPELINE_STEPS steps, no filter, two writers with one path. error->step is the step.
 * GF_FAILED: out of memory. */
GF_API gf_status gf_pipeline_parse(const char *text, const char *out, const gf_write_options *write,
                                   gf_pipeline **pipeline, gf_error *error);
/* Parse `count` words in the same way. Quotes and '#' have no meaning in them. They must outlive
 * the pipeline. */
GF_API gf_status gf_pipeline_parse_words(const char *const *words, size_t count, const char *out,
                                         const gf_write_options *write, gf_pipeline **pipeline,
                                         gf_error *error);
/* Return the steps, valid as long as the pipeline, and their number. */
GF_API const gf_step *gf_pipeline_steps(const gf_pipeline *pipeline, uint32_t *count);
/* Return text that parses to the same steps: each with the options that were given, separated by
 * " ! ", or by newlines. Release it with free(). Return NULL if out of memory. */
GF_API char *gf_pipeline_text(const gf_pipeline *pipeline, bool lines);
/* Free a pipeline. NULL is allowed. */
GF_API void gf_pipeline_free(gf_pipeline *pipeline);

/* Run a job.
 *
 * Files: all outputs must be different files. They get their final names together, after all of
 * them are complete. From then on only a rename can fail, and outputs already renamed are then
 * removed. After a failure, files that existed before are unchanged.
 *
 * Host memory: results are the same as those of single images. If each output row depends on the
 * input row at the same position only, images share strips: thousands of small images cost a few
 * uploads, launches and downloads. Other filters run the images one after the other. An output must
 * not share bytes with the inputs of its image; sharing with those of others is not detected. A
 * parameter that names a file (IMAGE, SAMPLES) enables its output, but no file is written; the
 * result holds all extracted samples. max_memory limits the result of one image, and the strips of
 * all images. The report covers all images together; its formats are those of one image.
 *
 * Device memory: see below. The report is not filled in.
 *
 * GF_USAGE: settings of another filter, settings that conflict with each other or with the image,
 * a number or name in options outside its range, a path or pointer that is missing or superfluous,
 * an unknown format of a path, a path in use as the output of another job, an overlap, a stride
 * smaller than a row, an unsupported list of steps. GF_FAILED: a file cannot be read or written, is
 * damaged, exceeds a limit, or exists without `force`; an invalid format; or memory is short.
 * GF_NO_BACKEND: a requested device failed. After a failure, some rows of outputs in memory may
 * have been written. If one image fails, the call fails, and all results are NULL. */
GF_API gf_status gf_run(gf_engine *engine, const gf_job *job, gf_outcome *outcome, gf_error *error);

/* ---- batches of files ------------------------------------------------------------------------ */

/* One file of a batch. The strings must outlive the batch. */
typedef struct gf_batch_item {
    const char *in;         /* not NULL; "-" is standard input, allowed for at most one item */
    const char *const *out; /* a path per writer of the job; NULL without one. All outputs must be
                             * different files */
    bool replace; /* replace an existing output, as gf_file_options.force does for all items */
} gf_batch_item;

/* Outcome of one item. */
typedef struct gf_batch_done {
    uint64_t item; /* index of the item */
    gf_status status;
    const gf_error *error; /* cause of the failure; NULL if status is GF_OK */
    /* Statistics up to the end or the failure; times of images computed together are divided among
     * them. Results are NULL after a failure. */
    const gf_outcome *outcome;
} gf_batch_done;

/* Options of a batch. All zero selects the defaults. */
typedef struct gf_batch_options {
    gf_engine_options engine; /* threads: number of images processed at once on the CPU */
    bool in_order;            /* report items in their order; otherwise in order of completion */
    bool fail_fast;           /* start no more items after a failure, reported or not */
    /* Called once for each started item, after it has finished. Calls are serialized, but come from
     * any thread. The argument is valid during the call only. Return false to start no more items;
     * items already started finish and are reported. NULL for none. */
    bool (*done)(void *context, const gf_batch_done *done);
    void *context;
    const struct gf_work_source *source; /* internal; NULL */
} gf_batch_options;

/* Run the steps of a job with one input on many files, each independently. The job has neither
 * inputs nor paths of writers: the items have them. job->options.ready is called from several
 * threads concurrently. A failed item does not stop the others. Results are the same as those of
 * gf_run. Parameters that name files (IMAGE, SAMPLES) must not be set.
 *
 * On the CPU, each thread processes its own image. With CUDA devices, PNG files of the same format
 * are decoded, computed and encoded together on the device. Other files, and all files with
 * `verify`, are run individually, like gf_run, up to four at once per device. Each device runs the
 * next waiting image. "auto" decides once for the whole batch, from the first image and the count.
 *
 * engine.max_memory applies to each image in progress.
 *
 * Return GF_OK even if items failed: `done` reports them. Otherwise return the reason why no item
 * could run: settings that are invalid for every image (the only check for a count of 0), or a
 * backend that is not available. If one of several requested devices fails after all have started,
 * the others finish its work. If none is left, the batch returns GF_NO_BACKEND, and items that were
 * not reported were not processed. */
GF_API gf_status gf_run_batch(const gf_job *job, const gf_batch_item *items, uint64_t count,
                              const gf_batch_options *options, gf_error *error);

/* ---- device memory ---------------------------------------------------------------------------
 *
 * Run a job on images in the memory of a CUDA device. Nothing crosses the bus except the results of
 * measurements. Pixels, strides and results are those of host memory, with the same bits, but
 * `data` points to device memory: from cudaMalloc, cudaMallocAsync, a virtual mapping or
 * cudaMallocManaged. The work is queued on a stream of the caller, a cudaStream_t of the engine's
 * first device (NULL: the default stream). gf_run keeps the prepared jobs of the last 16
 * combinations of steps, settings and format in the engine; a later call takes the existing one, so
 * that it does not allocate. A job that measures waits for its results. Do not capture gf_run into
 * a CUDA graph: the engine may free the job while the graph needs it. Calls that make only images
 * return before it is done; as with any kernel, the memory must stay valid until then.
 *
 * Strides may have any alignment. Rows and strides that are multiples of 16 bytes are read and
 * written in place; others are copied inside the device, which takes about three times as long. */

/* Images of a run. */
typedef struct gf_device_images {
    uint64_t count;
    const gf_pixels *in;             /* `count` images */
    const gf_pixels *const *second;  /* a list for each step with a second input, in their order */
    const gf_out_pixels *const *out; /* a list for each step with an output image */
} gf_device_images;

/* A job, prepared for images of one format. It holds device memory: for each
 * stream that it has run on, what the filter needs in addition to the images. Destroy a stream only
 * after its work is complete: a new one with the same handle would share this memory. */
typedef struct gf_device_job gf_device_job;

/* Results of measurements that were queued on a stream. */
typedef struct gf_device_results gf_device_results;

/* Prepare a job for images of job->format. It copies steps, settings and format; images, paths and
 * options are not used. The engine may be "cuda" or
 * "auto", which starts the device now, and must outlive the job. Free it with gf_device_job_free.
 *
 * GF_USAGE: as for gf_run; an engine of another backend or with `verify`. GF_FAILED: an
 * invalid format, or not enough memory. GF_NO_BACKEND: CUDA is not available. */
GF_API gf_status gf_device_job_new(gf_engine *engine, const gf_job *job, gf_device_job **prepared,
                                   gf_error *error);

/* Queue a job for a number of images. If rows are independent, one launch computes all images that
 * follow each other in memory without a gap, or up to 64 images anywhere with the same strides. A
 * filter that measures stores a handle in *results, which the caller passes to
 * gf_device_results_wait or gf_device_results_free; if results is NULL, the call waits and discards
 * the measurements. For a filter that produces only an image, results may be NULL, and *results is
 * set to NULL.
 *
 * A job of a filter without a result does not wait for the device, and allocates memory only in its
 * first run on each further stream, and in its first run on unaligned rows. After such a run, the
 * call may be captured into a CUDA graph, which needs the job as long as it is replayed. The graph
 * uses the job's memory for the captured stream: do not replay it while that stream runs the job.
 * An engine and its jobs are used by one thread at a time.
 *
 * GF_USAGE: a pointer that is NULL, host memory or memory of another device; a stride smaller than
 * a row; an image larger than its memory block; an output that overlaps its input; a stream of
 * another device; a stream that is being captured, if the call measures or must allocate.
 * GF_FAILED: not enough memory. GF_NO_BACKEND: the device failed. After an error, some of the work
 * may have been queued. */
GF_API gf_status gf_device_job_run(gf_device_job *job, const gf_device_images *images, void *stream,
                                   gf_device_results **results, gf_error *error);

/* Wait until the measurements of a run are complete, and store the results in list, ordered as in
 * gf_outcome. Free the handle, also on failure; all results are then NULL. */
GF_API gf_status gf_device_results_wait(gf_device_results *results, gf_result **list,
                                        gf_error *error);
/* Free a handle without its results. Waits for its work. NULL is allowed. */
GF_API void gf_device_results_free(gf_device_results *results);
/* Wait for the work of a job and free its memory. Free its results first. NULL is allowed. */
GF_API void gf_device_job_free(gf_device_job *job);
/* Wait until the work of a stream of the engine's first device is complete, as
 * cudaStreamSynchronize, for callers without the CUDA runtime. GF_USAGE and GF_NO_BACKEND: as for
 * gf_device_job_new, or the work failed. */
GF_API gf_status gf_device_wait(gf_engine *engine, void *stream, gf_error *error);

/* ---- PNG in device memory -------------------------------------------------------------------- */

/* A file in memory. */
typedef struct gf_buffer {
    void *data;  /* NULL: receives a pointer to pinned host memory of the engine, which is valid
                  * until the next call on the engine */
    size_t size; /* bytes: before a call the capacity of data, after it the size of the file */
} gf_buffer;

/* Return a capacity that is sufficient for the PNG of any image of this format; 0 if there is no
 * such PNG. The memory is rarely used up: photographs take about half of it. */
GF_API size_t gf_png_bound(const gf_format *format);

/* Encode `count` images of one format, u8 or u16, in device memory as PNG files. File i is written
 * to out[i], in host or device memory, and out[i].size is set. It has the bytes that gf_save_file
 * writes with compression "fast". The work is queued on `stream`, as in gf_device_job_run; the call
 * returns when the files are complete. Parts of an image in which LZ77 matches pay, such as text,
 * are encoded on the CPU by the threads of the engine.
 *
 * The engine keeps about 2 bytes of device memory per byte of the images, up to 600 MiB.
 *
 * GF_USAGE: as for gf_device_job_run, a format that PNG cannot store, or a capacity that is too
 * small. GF_FAILED: an invalid format, or not enough memory. GF_NO_BACKEND: CUDA is not available
 * or failed. After an error, the outputs are undefined. */
GF_API gf_status gf_encode_png_device(gf_engine *engine, const gf_format *format, uint64_t count,
                                      const gf_pixels *in, gf_buffer *out, void *stream,
                                      gf_error *error);

/* Read the header of a PNG file in memory, and return the format of its image. Return GF_FAILED if
 * the file cannot be read. */
GF_API gf_status gf_png_format(const void *file, size_t size, gf_format *format, gf_error *error);

/* Decode `count` PNG files in host memory to images in device memory. Image i has the format
 * formats[i], which gf_png_format has returned, and the pixels of gf_load_file; it is written to
 * out[i]. Every kind of PNG is read: files with a palette, a transparent colour, interlacing or
 * fewer than 8 bits per sample are decoded by the threads of the engine and uploaded, and so are
 * files of other encoders if there are too few to occupy the device (below about 500). The work is
 * queued on `stream`, as in gf_device_job_run; the call returns when it is complete.
 *
 * A file that fails, for example because it is damaged, does not affect the others: errors[i]
 * receives its status and message, and the content of its image is undefined. Without errors
 * (NULL), the call returns the first one. The engine keeps memory on the device: up to a quarter of
 * what is free at the first large call.
 *
 * GF_USAGE: as for gf_device_job_run. GF_FAILED: not enough memory, or without errors a file.
 * GF_NO_BACKEND: CUDA is not available or failed. */
GF_API gf_status gf_decode_png_device(gf_engine *engine, uint64_t count, const gf_buffer *files,
                                      const gf_format *formats, const gf_out_pixels *out,
                                      void *stream, gf_error *errors, gf_error *error);

/* ---- inspection ------------------------------------------------------------------------------ */

/* Description of a file, read from its header. */
typedef struct gf_file_info {
    gf_format format;   /* format that filters receive */
    char kind[8];       /* file format: "png", "pgm", "jpg", "raw", ... */
    char stored[96];    /* encoding in the file: "8-bit palette, interlaced" */
    char metadata[256]; /* names of the metadata before the pixels, separated by spaces: PNG chunks,
                         * or "ICC", "EXIF", "XMP", "IPTC", "resolution", "comment" */
    uint32_t orientation;              /* EXIF orientation, 1 to 8; 0: none */
    double resolution_x, resolution_y; /* pixels per inch; 0: unknown */
} gf_file_info;

/* Read the header of an image file. "-" is standard input. Only the limits (max_pixels, max_memory,
 * max_chunk, max_seconds, no_sandbox), raw and page are used from options. Return GF_FAILED if the
 * file is not a readable image. */
GF_API gf_status gf_inspect_file(const char *path, const gf_file_options *options,
                                 gf_file_info *info, gf_error *error);

/* Read a whole image of at most options->max_memory bytes. The rows are contiguous; release *pixels
 * with free(). "-" is standard input. autorotate, crop, depth, strict and the options of
 * gf_inspect_file are used. The report describes the file: in, in_bytes, pages, remarks. */
GF_API gf_status gf_load_file(const char *path, const gf_file_options *options, gf_format *format,
                              void **pixels, gf_report *report, gf_error *error);

/* Write an image in memory to a file; the counterpart of gf_load_file. The bytes are those that
 * gf_run writes for these pixels. `write`, force and sync are used. Return GF_USAGE for an unknown
 * format, GF_FAILED if the file exists without `force` or cannot be written. */
GF_API gf_status gf_save_file(const char *path, const gf_format *format, const gf_pixels *pixels,
                              const gf_file_options *options, gf_error *error);

/* Properties of a CUDA device, as reported by the driver. */
typedef struct gf_device {
    uint32_t index; /* for gf_engine_options.devices */
    char name[128];
    char bus[32];             /* PCI address */
    uint32_t capability;      /* 90 for compute capability 9.0 */
    uint32_t multiprocessors; /* number of SMs */
    uint64_t memory_bytes, free_bytes;
    bool usable; /* supported by the cuda backend and available now */
} gf_device;

/* Fill in up to capacity devices and set *count to the number of devices, which may be larger.
 * Return GF_NO_BACKEND with the reason if CUDA is not available; *count is then 0. */
GF_API gf_status gf_devices(gf_device *devices, size_t capacity, size_t *count, gf_error *error);

/* Return the number of cores that this process may use, the default for threads: those of its CPU
 * affinity, at most the CPU quota of its control groups, rounded up, and 1024. */
GF_API uint32_t gf_cores(void);

#ifdef __cplusplus
}
#endif

#endif
