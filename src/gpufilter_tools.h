/* What the gpufilter program itself needs of libgpufilter: outside the compatibility promise of
 * gpufilter.h, and free to change in every version. */
#ifndef GPUFILTER_TOOLS_H
#define GPUFILTER_TOOLS_H

#include "gpufilter.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings of one's own options ----------------------------------------------------------- */

/* The value of a parameter of the type that each function is for, set or the default. Zero for a
 * parameter that has neither, an unknown name or another type. */

/* Returns whether a flag was given. */
GF_API bool gf_settings_flag(const gf_settings *settings, const char *name);
/* Returns an integer. */
GF_API int64_t gf_settings_int(const gf_settings *settings, const char *name);
/* Returns a size in bytes. */
GF_API uint64_t gf_settings_size(const gf_settings *settings, const char *name);
/* Returns a number as binary32. */
GF_API float gf_settings_float(const gf_settings *settings, const char *name);
/* Returns the index of a choice. */
GF_API size_t gf_settings_choice(const gf_settings *settings, const char *name);
/* Returns the choices of a list: bit i is choice i. */
GF_API uint64_t gf_settings_list(const gf_settings *settings, const char *name);
/* Gets both bounds of a range. False, and zeros, if it was not given and has no default. */
GF_API bool gf_settings_range(const gf_settings *settings, const char *name, double *lo,
                              double *hi);
/* Sets parameters from one of a filter's cases, one after the other: "name=value" or the name of a
 * flag, a space between them. Stops where gf_settings_set fails. */
GF_API gf_status gf_settings_apply_case(gf_settings *settings, const char *text, gf_error *error);
/* Bytes of memory that the result for such an input takes, extracted samples aside: what
 * gf_engine_options.max_memory must have room for. Fails as gf_filter_output does. */
GF_API gf_status gf_filter_result_bytes(const gf_filter *filter, const gf_settings *settings,
                                        const gf_format *in, uint64_t *bytes, gf_error *error);

/* ---- this machine and this build ------------------------------------------------------------- */

/* For which compute capabilities, as ten times their numbers: "75/80/90"; "" without CUDA. */
GF_API const char *gf_cuda_architectures(void);

/* "64 cores, avx512": the processor as the cpu backend uses it. What does not fit into size bytes
 * is cut off. */
GF_API void gf_processor(char *text, size_t size);

/* ---- files of one's own -----------------------------------------------------------------------
 */

/* A file that appears whole or not at all. */
typedef struct gf_output gf_output_file;

/* Opens a file, to be closed, which appears whole or not at all, by the rules of the
 * filters' outputs; "-" is standard output. GF_FAILED at once for what cannot be written, or is
 * there already without `force`. Of options, only force and sync count. */
GF_API gf_status gf_output_file_open(const char *path, const gf_file_options *options,
                                     gf_output_file **file, gf_error *error);
/* Writes these bytes as the whole file, which then lacks only its name: it gets that together with
 * the outputs of a job (gf_ready_add). Once only. */
GF_API gf_status gf_output_file_write(gf_output_file *file, const void *data, size_t size,
                                      gf_error *error);
/* Called from gf_file_options.ready: the file, which is written, appears together with the outputs
 * of the job. At most one; it must live until the job has ended. */
GF_API void gf_ready_add(const gf_ready *ready, gf_output_file *file);
/* Frees; what was not put in place is gone. */
GF_API void gf_output_file_close(gf_output_file *file);

/* Unlinks the temporary files of all running jobs of this process. Async-signal-safe: for signal
 * handlers that are about to end the process. Other threads create none from then on: they wait for
 * that end, and so does whichever other thread calls this. Waits itself for those that are in the
 * middle of creating one, about ten seconds at most. */
GF_API void gf_remove_temporaries(void);

/* ---- processes that share a machine, or a batch ---------------------------------------------- */

/* Of `turns` processes on this machine this is number `turn`, from 0: the engines that it opens
 * from now on share out the CUDA devices, those that are named, or all, with one for each process.
 */
GF_API void gf_set_local_process(uint32_t turn, uint32_t turns);

/* What gf_work_source.take found. */
typedef enum gf_take {
    GF_TAKEN,      /* an item */
    GF_TAKE_LATER, /* none now, but there may be one when it is called again */
    GF_TAKE_NONE   /* none any more; it is not called again */
} gf_take;

/* Hands out the items of a list that several processes share. */
typedef struct gf_work_source {
    /* Chooses the item that is begun next: *item, the index of one that nothing else has begun.
     * Called when a thread is free to begin it; one call at a time, from any thread, also while
     * `done` is called for others. It may wait for an item, at most about a tenth of a second: a
     * batch that was stopped ends no sooner. What it then still gave is neither begun nor reported.
     */
    gf_take (*take)(void *context, uint64_t *item);
    void *context;
    uint64_t expected; /* how many items it may give, for the choice of "auto" and the sharing out
                        * of threads; 0: all */
} gf_work_source;

/* gf_run_batch of items that source hands out. GF_USAGE together with in_order. */
GF_API gf_status gf_run_shared_batch(const gf_filter *filter, const gf_settings *settings,
                                     const gf_batch_item *items, uint64_t count,
                                     const gf_batch_options *options, const gf_work_source *source,
                                     gf_error *error);

/* ---- one image in ranges of rows -------------------------------------------------------------
 *
 * Several processes can do one image together where its files hold rows of samples at known places
 * (PGM, PPM, PAM, PFM, raw): each runs a range of rows, which yields a partial result, and writes
 * its rows of the output. Merged in the order of the rows, the partial results make the result that
 * a single process gets. */

/* What a range of rows yields: the filter's state, records of rows and extracted samples. */
typedef struct gf_partial gf_partial;

/* A plain image file that is written in ranges of rows, under a temporary name until it is
 * complete. */
typedef struct gf_sink gf_rows_file;

/* The filter that measures the whole image before this one begins, with its default settings; NULL
 * for none. */
GF_API const gf_filter *gf_filter_before(const gf_filter *filter);

/* Reports in *possible whether ranges of rows can be run: inputs are regular files, they and
 * out_path (NULL: none) have rows at known places, and what is measured of ranges can be merged.
 * *format is the inputs' if so. Fails as gf_run_file does for inputs that cannot be read. */
GF_API gf_status gf_rows_possible(const gf_engine *engine, const gf_filter *filter,
                                  const gf_settings *settings, const char *const *in_paths,
                                  const char *out_path, const gf_file_options *options,
                                  gf_format *format, bool *possible, gf_error *error);

/* Creates the file of an image that ranges write, with its header; to be closed, or given to
 * gf_finish_rows. It must be on a file system that all processes share. Fails as gf_run_file does.
 */
GF_API gf_status gf_rows_file_open(const char *path, const gf_format *format,
                                   const gf_file_options *options, gf_rows_file **file,
                                   gf_error *error);
/* Returns its temporary name, which lives as long as the file. */
GF_API const char *gf_rows_file_name(const gf_rows_file *file);
/* Removes the file; nothing for NULL. */
GF_API void gf_rows_file_close(gf_rows_file *file);

/* A range of rows of one image. */
typedef struct gf_rows_job {
    const char *const *in_paths; /* as for gf_run_file */
    const char *out_path;        /* of the image, for its format and for messages; or NULL */
    const char *out_file;        /* gf_rows_file_name; NULL if no image is made */
    uint64_t first, end;         /* rows [first, end); none if they are equal */
    const gf_partial *before;    /* of the whole image, by gf_filter_before; NULL if that is NULL */
} gf_rows_job;

/* Runs a range. *partial is for the caller to free. Of options, limits, raw, compression and
 * progress count. GF_USAGE for images that gf_rows_possible refuses, and for rows that are not in
 * the image; otherwise fails as gf_run_file does. */
GF_API gf_status gf_run_rows(gf_engine *engine, const gf_filter *filter,
                             const gf_settings *settings, const gf_rows_job *job,
                             const gf_file_options *options, gf_partial **partial,
                             gf_report *report, gf_error *error);

/* Appends the partial result of the rows that follow, which stays as it is. GF_USAGE for one of
 * other work or other rows. */
GF_API gf_status gf_partial_merge(gf_partial *partial, const gf_partial *next, gf_error *error);
/* Bytes that gf_partial_write writes. */
GF_API size_t gf_partial_size(const gf_partial *partial);
/* Serialises, for a process of the same version on a machine of the same kind. */
GF_API void gf_partial_write(const gf_partial *partial, void *bytes);
/* Makes a partial result of what gf_partial_write has written, to be freed. GF_USAGE for one of
 * another filter or other settings, GF_FAILED for damaged bytes. */
GF_API gf_status gf_partial_read(const gf_filter *filter, const gf_settings *settings,
                                 const void *bytes, size_t size, gf_partial **partial,
                                 gf_error *error);
/* Frees a partial result; nothing for NULL. */
GF_API void gf_partial_free(gf_partial *partial);

/* Makes the result of the partial results of all rows, writes extracted samples, calls
 * options->ready, and puts all outputs in place, file (NULL: none) among them, which it frees
 * whatever it returns. report is what the runs of all ranges have done; its output fields are
 * filled in here. Fails as gf_run_file does. */
GF_API gf_status gf_finish_rows(gf_engine *engine, const gf_filter *filter,
                                const gf_settings *settings, const gf_partial *partial,
                                gf_rows_file *file, const gf_file_options *options,
                                gf_result **result, gf_report *report, gf_error *error);

#ifdef __cplusplus
}
#endif

#endif
