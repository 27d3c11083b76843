/* Running a filter command. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "progress.h"
#include "ranks.h"
#include "report.h"

/* One command under way. */
typedef struct gf_cli_job {
    const gf_filter *filter;
    const gf_cli_line *line;
    gf_cli_run done;   /* its result and report: once it is ready */
    bool data_out;     /* standard output is taken by an image, samples or a plot */
    gf_cli_plot *plot; /* NULL: none */
} gf_cli_job;

static bool filter_is_standard(const char *name) {
    return name && strcmp(name, "-") == 0;
}

/* ---- before any work ------------------------------------------------------------------------- */

/* The next file that the filter's own parameters name, from parameter *i on; NULL: no more. */
static const char *next_own_output(const gf_cli_job *job, size_t *i) {
    const gf_filter_info *info = job->done.info;
    while (*i < info->param_count) {
        const gf_param *param = &info->params[(*i)++];
        const char *name = gf_settings_text(job->line->filter, param->name);
        if (name && (param->type == GF_PARAM_IMAGE || param->type == GF_PARAM_SAMPLES))
            return name;
    }
    return NULL;
}

static bool is_data_out(const gf_cli_job *job) {
    bool standard = filter_is_standard(job->done.output);
    const char *name;
    for (size_t i = 0; (name = next_own_output(job, &i));)
        standard = standard || filter_is_standard(name);
    return standard;
}

/* What is printed would be written over the input, or behind it, while it is read. */
static gf_status filter_check_inputs(const gf_filter_info *info, const gf_cli_line *line,
                                     gf_error *error) {
    struct stat out, in;
    const bool file = fstat(STDOUT_FILENO, &out) == 0 && S_ISREG(out.st_mode);
    for (size_t i = 0; i < info->inputs && file; i++) {
        const char *name = line->operands[i];
        const bool there =
            filter_is_standard(name) ? fstat(STDIN_FILENO, &in) == 0 : stat(name, &in) == 0;
        if (there && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return gf_set_error(error, GF_USAGE,
                                "%s: is where standard output goes, too; redirect that to another "
                                "file",
                                filter_is_standard(name) ? "standard input" : name);
    }
    return GF_OK;
}

/* ImageMagick's users may name a folder for all that is in it. */
static gf_status check_folder(const gf_filter_info *info, const gf_cli_line *line,
                              gf_error *error) {
    struct stat what;
    const char *name = line->operand_count ? line->operands[0] : "-";
    if (info->inputs != 1 || info->is_test || filter_is_standard(name) || stat(name, &what) != 0 ||
        !S_ISDIR(what.st_mode))
        return GF_OK;
    return gf_set_error(error, GF_FAILED,
                        "%s: is a folder; for the images in it use 'gpufilter %s -R %s%s'", name,
                        info->name, name, info->makes_image ? " --out-dir OUT" : "");
}

/* Find contradictions before anything is done. Sets job->done.output and job->data_out. */
static gf_status check_job(gf_cli_job *job, gf_error *error) {
    const gf_cli_line *line = job->line;
    const gf_filter_info *info = job->done.info;
    const size_t operands = info->inputs + (info->makes_image ? 1u : 0u);
    const gf_status status = check_folder(info, line, error);
    if (status)
        return status;
    if (line->operand_count != operands)
        return gf_set_error(
            error, GF_USAGE, "%s: takes %s, got %zu file%s; %ssee 'gpufilter %s --help'",
            info->name, info->operands, line->operand_count, line->operand_count == 1 ? "" : "s",
            line->operand_count > operands && info->makes_image ? "for many inputs add --out-dir, "
                                                                : "",
            info->name);
    if (info->makes_image)
        job->done.output = line->operands[info->inputs];
    const bool plot_out = filter_is_standard(line->options.plot);
    const bool data_out = is_data_out(job);
    job->data_out = data_out || plot_out;
    const char *second = data_out && plot_out ? "plot"
                         : !job->data_out     ? NULL
                         : line->options.json ? "json"
                         : line->options.csv  ? "csv"
                                              : NULL;
    if (second)
        return gf_set_error(error, GF_USAGE,
                            "--%s: standard output takes the data already; give that a file name",
                            second);
    return filter_check_inputs(info, line, error);
}

/* ---- reports --------------------------------------------------------------------------------- */

/* Print the report to its last byte. */
static gf_status print_report(const gf_cli_job *job, const gf_cli_run *run, gf_error *error) {
    const gf_cli_options *options = &job->line->options;
    FILE *file = job->data_out ? stderr : stdout;
    gf_status status = GF_OK;
    if (options->json) {
        status = gf_cli_report_json(file, run, error);
    } else if (options->csv) {
        gf_cli_report_csv(file, run->result, NULL, false);
    } else if (run->result && !options->quiet) {
        gf_cli_report_text(file, run);
    }
    if (!status && (fflush(file) != 0 || ferror(file)))
        status = gf_set_error(error, GF_FAILED, "standard output: %s", strerror(errno));
    return status;
}

/* gf_file_options.ready: draw the plot, which appears together with the other outputs, and print
 * the report. A report that cannot be printed keeps them all from appearing. */
static gf_status filter_on_ready(void *context, const gf_ready *ready, gf_error *error) {
    const gf_cli_job *job = context;
    gf_cli_run run = job->done;
    run.result = ready->result;
    run.report = ready->report;
    gf_cli_progress_hide();
    const gf_status status = job->plot ? gf_cli_plot_draw(job->plot, ready, error) : GF_OK;
    return status ? status : print_report(job, &run, error);
}

/* Print the summary on standard error, once the outputs are in place. */
static void print_summary(const gf_cli_run *run, const gf_cli_options *options) {
    gf_cli_report_failure(run);
    if (options->quiet)
        return;
    gf_cli_report_dropped(run->inputs[0], 1, run->report->dropped);
    if (options->verbose || (run->output && !options->json && isatty(STDERR_FILENO)))
        gf_cli_report_run(run, options->verbose);
}

/* Print the names of what a run would write. */
static void filter_list_outputs(const gf_cli_job *job) {
    const char *name;
    if (job->done.output)
        gf_cli_list_output(job->done.output);
    for (size_t i = 0; (name = next_own_output(job, &i));)
        gf_cli_list_output(name);
    if (job->line->options.plot)
        gf_cli_list_output(job->line->options.plot);
}

/* ---- running --------------------------------------------------------------------------------- */

/* gf_file_options.progress, in this thread. */
static void filter_on_progress(void *context, const gf_progress *now) {
    gf_cli_progress *progress = context;
    progress->of = (double)now->total;
    progress->under_way = (double)now->done;
    progress->pixels_under_way =
        (double)now->in.width * (double)now->in.height * progress->under_way / progress->of;
    gf_cli_progress_draw(progress);
}

static gf_status filter_compute(gf_cli_job *job, gf_result **result, gf_report *report,
                                gf_error *error) {
    const gf_cli_options *options = &job->line->options;
    gf_file_options files = options->files;
    files.ready = filter_on_ready;
    files.ready_context = job;
    gf_cli_progress progress = {0};
    if (gf_cli_ranks_first()) {
        gf_cli_progress_begin(&progress,
                              gf_cli_progress_choose(options->progress, options->quiet, false));
        gf_cli_event_begin(&progress, job->done.info->name);
        files.progress = filter_on_progress;
        files.progress_context = &progress;
    }
    gf_engine *engine = NULL;
    gf_status status = gf_engine_open(&options->engine, &engine, error);
    status = gf_cli_ranks()->agree(status, error);
    if (!status)
        status = (gf_cli_ranks()->launched ? gf_mpi_run_file : gf_run_file)(
            engine, job->filter, job->line->filter, job->line->operands, job->done.output, &files,
            result, report, error);
    gf_engine_close(engine);
    gf_cli_progress_hide();
    if (status && error->message[0])
        gf_cli_event_failed(&progress, job->line->operands[0], error->message);
    gf_cli_event_end(&progress, !status, status != GF_OK, 0);
    return status;
}

gf_status gf_cli_filter(const gf_filter *filter, const gf_cli_line *line, gf_error *error) {
    const gf_filter_info *info = gf_filter_describe(filter);
    if (gf_cli_is_batch(info, line))
        return gf_cli_batch(filter, line, error);
    gf_result *result = NULL;
    gf_report report;
    gf_cli_job job = {
        .filter = filter,
        .line = line,
        .done = {
            .info = info, .settings = line->filter, .inputs = line->operands, .report = &report}};
    gf_status status = check_job(&job, error);
    if (!status && line->options.plot && !gf_cli_plot_open)
        status = gf_set_error(error, GF_FAILED,
                              "--plot: this gpufilter was built without cairo and draws no plots; "
                              "install the package libcairo2-dev and build it again");
    else if (!status && line->options.plot && gf_cli_ranks_first())
        status = gf_cli_plot_open(&line->options, &job.plot, error);
    status = gf_cli_ranks()->agree(status, error);
    if (!status)
        status = filter_compute(&job, &result, &report, error);
    if (!status && gf_cli_ranks_first())
        line->options.files.dry_run ? filter_list_outputs(&job)
                                    : print_summary(&job.done, &line->options);
    if (info->is_test && status == GF_FAILED)
        status = GF_USAGE;
    else if (!status && result && !gf_result_passed(result))
        status = GF_FAILED;
    if (job.plot)
        gf_cli_plot_close(job.plot);
    gf_result_free(result);
    return status;
}
