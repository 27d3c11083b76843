/* Functions of libgpufilter for the gpufilter program only. They may change in every version. The
 * static library has them; the installed shared one does not export them. */
#ifndef GPUFILTER_TOOLS_H
#define GPUFILTER_TOOLS_H

#include <time.h>

#include "gpufilter.h"

#define GF_TOOL GF_API

#ifdef __cplusplus
extern "C" {
#endif

/* ---- parameters ------------------------------------------------------------------------------ */

/* Initialisers of a gf_param. letter 0: no short form. fallback: the default; NULL: none. */
#define GF_FLAG_PARAM(name, letter, help)                                                          \
    { name, letter, GF_PARAM_FLAG, NULL, help, NULL, 0, 0, NULL, NULL }
/* type: TEXT, IMAGE or SAMPLES */
#define GF_TEXT_PARAM(type, name, letter, metavar, help, fallback)                                 \
    { name, letter, GF_PARAM_##type, metavar, help, fallback, 0, 0, NULL, NULL }
/* type: CHOICE, LIST or RANGE */
#define GF_CHOICE_PARAM(type, name, letter, metavar, help, fallback, choices)                      \
    { name, letter, GF_PARAM_##type, metavar, help, fallback, 0, 0, choices, NULL }
/* type: INT, FLOAT, SIZE, PAIR or INT_PAIR */
#define GF_NUMBER_PARAM(type, name, letter, metavar, help, fallback, min, max)                     \
    { name, letter, GF_PARAM_##type, metavar, help, fallback, min, max, NULL, NULL }

/* Find a parameter by its letter or, if letter is 0, by the first `length` bytes of a name. NULL:
 * there is none. */
GF_TOOL const gf_param *gf_param_find(const gf_param *params, size_t count, const char *name,
                                      size_t length, char letter);

/* ---- typed access to settings ---------------------------------------------------------------- */

/* Each function returns the value of a parameter of its type: the value set, or the default. It
 * returns zero for an unknown name, another type, or a parameter with neither value nor default. */

/* Return whether a flag is set. */
GF_TOOL bool gf_settings_flag(const gf_settings *settings, const char *name);
/* Return an integer. */
GF_TOOL int64_t gf_settings_int(const gf_settings *settings, const char *name);
/* Return a size in bytes. */
GF_TOOL uint64_t gf_settings_size(const gf_settings *settings, const char *name);
/* Return a number as binary32. */
GF_TOOL float gf_settings_float(const gf_settings *settings, const char *name);
/* Return the index of a choice. */
GF_TOOL size_t gf_settings_choice(const gf_settings *settings, const char *name);
/* Return the choices of a list: bit i is choice i. */
GF_TOOL uint64_t gf_settings_list(const gf_settings *settings, const char *name);
/* Store both bounds of a range. If there are none, store zeros and return false. */
GF_TOOL bool gf_settings_range(const gf_settings *settings, const char *name, double *lo,
                               double *hi);
/* Store both numbers of a PAIR or INT_PAIR; of one number, store it twice. */
GF_TOOL void gf_settings_pair(const gf_settings *settings, const char *name, double pair[2]);
/* Return a number as binary64, or V of a choice NAME:V. */
GF_TOOL double gf_settings_number(const gf_settings *settings, const char *name);
/* Round the edge of a bin to the fewest decimals, by at most 1/10000 of the width of the bin. */
GF_TOOL double gf_round_edge(double x, double width);
/* Set parameters from one entry of gf_filter_info.cases: "name=value" items and flag names,
 * separated by spaces. Stop at the first failure of gf_settings_set. */
GF_TOOL gf_status gf_settings_apply_case(gf_settings *settings, const char *text, gf_error *error);

/* Return the word of a step in a pipeline: the name of its filter, "write", "depth" or "linear". */
GF_TOOL const char *gf_step_name(const gf_step *step);

enum { GF_WRITE_PARAMS = 6 };

/* Fill in the parameters of an output image. */
GF_TOOL void gf_write_params(gf_param params[GF_WRITE_PARAMS]);
/* Set the members whose parameters were given. The texts are those of the settings. */
GF_TOOL void gf_write_set(const gf_settings *settings, gf_write_options *write);

enum { GF_STEP_NAMES = 64 };

/* Fill in the words that begin a step of a pipeline: the filters come first. Return their number.
 */
GF_TOOL size_t gf_step_names(const char *names[GF_STEP_NAMES]);

/* Write "; did you mean --bins or --min?" with the names most similar to a word, or "". */
GF_TOOL void gf_guess_names(const char *word, size_t length, const char *const *names, size_t count,
                            const char *prefix, char text[256]);

/* ---- image formats --------------------------------------------------------------------------- */

static inline size_t gf_type_bytes(gf_type type) {
    return type == GF_U8 ? 1 : type == GF_U16 ? 2 : 4;
}

/* Return "u8", "u16" or "f32". */
GF_TOOL const char *gf_type_name(gf_type type);

/* Return the samples (not bytes) per row. */
static inline uint64_t gf_row_samples(const gf_format *format) {
    return format->width * format->channels;
}

/* Return the bytes per row of a format that the library has accepted. */
static inline size_t gf_row_bytes(const gf_format *format) {
    return (size_t)(gf_row_samples(format) * gf_type_bytes(format->type));
}

/* Write a format as "768x512 RGB u8"; the channels are "RGB+data" for four without alpha. */
GF_TOOL void gf_format_text(const gf_format *format, char *text, size_t size);

enum { GF_CODEC_EXTENSIONS = 3 };

/* A format of image files. */
typedef struct gf_codec_info {
    const char *label;             /* "PNG" */
    const char *const *extensions; /* NULL-terminated, without a dot; that of outputs comes first */
    const char *notes;             /* sample types and limitations, as sentences */
    bool read;                     /* recognised as an input, without --raw */
    bool written;
    bool headerless; /* read with --raw only */
} gf_codec_info;

/* Describe a format, in the order of the help. Return false after the last one. */
GF_TOOL bool gf_codec_describe(size_t index, gf_codec_info *info);

/* ---- this machine and this build ------------------------------------------------------------- */

/* Return a monotonic time in seconds. */
static inline double gf_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Return the compute capabilities of the build, times ten: "75/80/90"; "" without CUDA. */
GF_TOOL const char *gf_cuda_architectures(void);

/* Describe the CPU as the cpu backend uses it: "64 cores, avx512". Truncate to size bytes. */
GF_TOOL void gf_processor(char *text, size_t size);

/* Return the default of max_memory: GF_DEFAULT_MAX_MEMORY, or half of the memory limit of the
 * control groups of this process if that is less. */
GF_TOOL uint64_t gf_default_memory(void);

/* ---- output files of the program ------------------------------------------------------------- */

/* An output file that appears complete or not at all. */
typedef struct gf_output gf_output_file;

/* Open an output file. It appears complete or not at all, like the outputs of a filter. "-" is
 * standard output. Close it with gf_output_file_close. Return GF_FAILED if the path cannot be
 * written, or exists and `force` is not set. Only force and sync are used from options. */
GF_TOOL gf_status gf_output_file_open(const char *path, const gf_file_options *options,
                                      gf_output_file **file, gf_error *error);
/* Write the whole content, once. The file then lacks only its final name: gf_ready_add renames it
 * together with the outputs of a job. */
GF_TOOL gf_status gf_output_file_write(gf_output_file *file, const void *data, size_t size,
                                       gf_error *error);
/* Rename a written file together with the outputs of the job. Call it from gf_file_options.ready,
 * at most once per job. The file must live until the job ends. */
GF_TOOL void gf_ready_add(const gf_ready *ready, gf_output_file *file);
/* Free an output file. Delete it if it has not been renamed to its final name. */
GF_TOOL void gf_output_file_close(gf_output_file *file);

/* Unlink the temporary files of all running jobs of this process. Async-signal-safe: for signal
 * handlers that end the process. From then on, a thread that is about to create a temporary file,
 * or that also calls this function, blocks until the process ends. Wait for threads that are
 * creating a file at that time, about 10 s at most. */
GF_TOOL void gf_remove_temporaries(void);

/* ---- several processes on one machine, or on one batch --------------------------------------- */

/* Declare this process as number `index`, from 0, of `count` processes on this machine. Engines
 * opened later divide the CUDA devices, listed or all, among these processes. */
GF_TOOL void gf_set_local_process(uint32_t index, uint32_t count);

/* Return value of gf_work_source.take. */
typedef enum gf_take {
    GF_TAKEN,      /* *item is set */
    GF_TAKE_LATER, /* no item now; call again later */
    GF_TAKE_NONE   /* no more items; not called again */
} gf_take;

/* Distributor of the items of a list that several processes share (gf_batch_options.source). Not
 * with in_order. */
typedef struct gf_work_source {
    /* Choose the next item and store its index in *item. No other process may have started it.
     * Called when a thread is free to process it. Calls are serialized but come from any thread,
     * and may overlap with calls of `done` for other items. It may block while it waits for an
     * item, for about 0.1 s at most, because a stopped batch does not end before it returns. An
     * item returned after the batch was stopped is neither processed nor reported. */
    gf_take (*take)(void *context, uint64_t *item);
    void *context;
    uint64_t expected; /* number of items to expect, used to choose the backend and to divide
                        * threads; 0: all */
} gf_work_source;

/* ---- ranges of rows of one image ----------------------------------------------------------------
 *
 * Several processes can process one image together if its files store rows of samples at fixed
 * offsets (PNM, PAM, PFM, NPY, farbfeld, raw), or for inputs in strips or tiles (TIFF). Each
 * process runs a range of rows, writes its rows of the output, and obtains a partial result. The
 * partial results, merged in row order, equal the result of a single process. */

/* Output of a range of rows: the filter's state, one record per row, and extracted samples. */
typedef struct gf_partial gf_partial;

/* Image file that ranges of rows write concurrently, with a temporary name until it is complete. */
typedef struct gf_sink gf_rows_file;

/* Check whether the image can be processed in ranges of rows, and store the answer in *possible.
 * Inputs must be regular files. They and the output image must store rows at fixed offsets. The
 * measurements of ranges must be mergeable. *format is the format of the inputs if possible. Fail
 * like gf_run for inputs that cannot be read. */
GF_TOOL gf_status gf_rows_possible(const gf_engine *engine, const gf_job *job, gf_format *format,
                                   bool *possible, gf_error *error);

/* Create the output file of an image with its header, on a file system that all processes share.
 * Ranges write its rows. Pass it to gf_finish_rows or gf_rows_file_close. *file is NULL without an
 * output image. format: of the inputs. Fail like gf_run. */
GF_TOOL gf_status gf_rows_file_open(const gf_job *job, const gf_format *format, gf_rows_file **file,
                                    gf_error *error);
/* Return the temporary name of the file. Valid as long as the file object. */
GF_TOOL const char *gf_rows_file_name(const gf_rows_file *file);
/* Delete the file and free its object. NULL is allowed. */
GF_TOOL void gf_rows_file_close(gf_rows_file *file);

/* A range of rows of one image. */
typedef struct gf_rows_range {
    uint64_t first, end;      /* rows [first, end) of the output; may be empty */
    const char *file;         /* result of gf_rows_file_name; NULL if no image is produced */
    const gf_partial *before; /* partial result of gf_step_info.measures_first for the whole image;
                               * NULL without such a filter */
} gf_rows_range;

/* Run a range of rows. The caller frees *partial. The limits, raw, compression and progress are
 * used from options. outcome receives the report and the steps. Return GF_USAGE for images that
 * gf_rows_possible rejects, and for rows outside the image; otherwise fail like gf_run. */
GF_TOOL gf_status gf_run_rows(gf_engine *engine, const gf_job *job, const gf_rows_range *range,
                              gf_partial **partial, gf_outcome *outcome, gf_error *error);

/* Append the partial result of the following rows to *partial. next is not modified. Return
 * GF_USAGE if it is from another job or does not follow. */
GF_TOOL gf_status gf_partial_merge(gf_partial *partial, const gf_partial *next, gf_error *error);
/* Return the number of bytes that gf_partial_write writes. */
GF_TOOL size_t gf_partial_size(const gf_partial *partial);
/* Serialize a partial result for a process of the same version and architecture. */
GF_TOOL void gf_partial_write(const gf_partial *partial, void *bytes);
/* Deserialize the output of gf_partial_write into *partial; the caller frees it. Return GF_USAGE
 * for another filter or other settings, GF_FAILED for corrupt data. */
GF_TOOL gf_status gf_partial_read(const gf_job *job, const void *bytes, size_t size,
                                  gf_partial **partial, gf_error *error);
/* Free a partial result. NULL is allowed. */
GF_TOOL void gf_partial_free(gf_partial *partial);

/* Compute the result from the merged partial results of all rows, write extracted samples, call
 * options->ready, and rename all outputs, file (NULL: none) included. Always free file. On entry,
 * outcome holds the merged report of all ranges, and the steps of one. Fail like gf_run. */
GF_TOOL gf_status gf_finish_rows(gf_engine *engine, const gf_job *job, const gf_partial *partial,
                                 gf_rows_file *file, gf_outcome *outcome, gf_error *error);

#ifdef __cplusplus
}
#endif

#endif
