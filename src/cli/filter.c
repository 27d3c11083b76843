/* Filter command on one input: checks, run, report and summary. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "ranks.h"
#include "report.h"

/* A running command. */
typedef struct gf_cli_job {
    gf_cli_work *work;
    gf_cli_run run; /* result and report, once available */
    const char *outputs[GF_CLI_MAX_STEPS];
    bool data_out; /* standard output receives an image, samples or a plot */
    bool silent;   /* do not print the report */
    uint32_t page; /* of --page all; 0: as the options say */
    gf_cli_progress progress;
    gf_cli_plot *plot; /* NULL: no plot */
} gf_cli_job;

static bool filter_is_standard(const char *name) {
    return name && strcmp(name, "-") == 0;
}

/* A position among the output files of the steps. All zero: before the first one. */
typedef struct filter_output {
    uint32_t step;
    size_t param; /* of its filter */
} filter_output;

/* Return the next output: of a writer, or named by a parameter of a filter. NULL: no more. */
static const char *next_output(const gf_cli_work *work, filter_output *at) {
    for (; at->step < work->step_count; at->step++, at->param = 0) {
        const gf_step *step = &work->steps[at->step];
        if (!step->filter && !at->param++)
            return step->out_path;
        const gf_filter_info *info = step->filter ? gf_filter_describe(step->filter) : NULL;
        while (info && at->param < info->param_count) {
            const gf_param *param = &info->params[at->param++];
            const char *name = gf_settings_text(step->settings, param->name);
            if (name && (param->type == GF_PARAM_IMAGE || param->type == GF_PARAM_SAMPLES))
                return name;
        }
    }
    return NULL;
}

/* Check the number of operands of a filter, and take the paths of its steps from them. */
static gf_status take_operands(gf_cli_work *work, gf_error *error) {
    const gf_cli_line *line = work->line;
    const gf_filter_info *info = work->info;
    if (line->operand_count != info->inputs + work->writers)
        return gf_set_error(
            error, GF_USAGE, "%s: expected %s, got %zu operand%s; %ssee 'gpufilter %s --help'",
            info->name, info->operands, line->operand_count, line->operand_count == 1 ? "" : "s",
            line->operand_count > info->inputs + work->writers && info->makes_image
                ? "for several inputs use --out-dir; "
                : "",
            info->name);
    if (info->inputs > 1)
        work->steps[0].in_path = line->operands[1];
    if (work->writers)
        work->steps[1].out_path = line->operands[info->inputs];
    return GF_OK;
}

/* Reject a chain that writes its input. */
static gf_status check_steps(const gf_cli_work *work, gf_error *error) {
    const gf_cli_options *options = &work->line->options;
    const char *in = work->line->operands[0];
    struct stat from, to;
    for (uint32_t i = 0; i < work->step_count; i++) {
        const gf_step *step = &work->steps[i];
        if (step->filter || !step->out_path || options->files.force ||
            filter_is_standard(step->out_path) || stat(in, &from) != 0 ||
            stat(step->out_path, &to) != 0 || from.st_dev != to.st_dev || from.st_ino != to.st_ino)
            continue;
        return gf_set_error(error, GF_USAGE,
                            "step %" PRIu32
                            ", write: %s: is the input; use another name, or "
                            "--force to replace it",
                            i + 1, step->out_path);
    }
    return GF_OK;
}

/* Reject contradictory arguments. Set the outputs and job->data_out. */
static gf_status check_job(gf_cli_job *job, gf_error *error) {
    const gf_cli_line *line = job->work->line;
    const gf_filter_info *info = job->work->info;
    const char *name = line->operand_count ? line->operands[0] : "-";
    struct stat out, in;
    gf_status status = GF_OK;
    if (info->inputs == 1 && !info->is_test && !filter_is_standard(name) && stat(name, &in) == 0 &&
        S_ISDIR(in.st_mode))
        return gf_set_error(error, GF_FAILED,
                            "%s: is a directory; to process its images use 'gpufilter %s -R %s%s'",
                            name, info->name, name, job->work->writers ? " --out-dir OUT" : "");
    status = job->work->filter ? take_operands(job->work, error) : check_steps(job->work, error);
    if (status)
        return status;
    for (uint32_t i = 0, count = 0; i < job->work->step_count; i++)
        if (!job->work->steps[i].filter)
            job->outputs[count++] = job->work->steps[i].out_path;
    const bool plot_out = filter_is_standard(line->options.plot);
    bool data_out = false;
    for (filter_output at = {0}; (name = next_output(job->work, &at));)
        data_out = data_out || filter_is_standard(name);
    job->data_out = data_out || plot_out;
    const char *second = data_out && plot_out ? "plot"
                         : !job->data_out     ? NULL
                         : line->options.json ? "json"
                         : line->options.csv  ? "csv"
                                              : NULL;
    if (second)
        return gf_set_error(
            error, GF_USAGE,
            "--%s: standard output is already used for data; write the data to a file", second);
    /* The report would change an input that is also standard output. */
    const bool file = fstat(STDOUT_FILENO, &out) == 0 && S_ISREG(out.st_mode);
    for (size_t i = 0; i < info->inputs && file; i++) {
        const bool standard = filter_is_standard(line->operands[i]);
        name = standard ? "standard input" : line->operands[i];
        if ((standard ? fstat(STDIN_FILENO, &in) : stat(name, &in)) == 0 &&
            in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return gf_set_error(
                error, GF_USAGE,
                "%s: is also standard output; redirect standard output to another file", name);
    }
    return GF_OK;
}

static gf_status print_report(const gf_cli_job *job, const gf_cli_run *run, gf_error *error) {
    FILE *file = job->data_out ? stderr : stdout;
    gf_status status = gf_cli_report(file, run, &job->work->line->options, error);
    if (!status && (fflush(file) != 0 || ferror(file)))
        status =
            gf_set_error(error, GF_FAILED, "standard output: cannot write: %s", strerror(errno));
    return status;
}

/* Draw the plot and print the report (gf_file_options.ready). The plot is committed together with
 * the other outputs. If this function fails, no output is committed. */
static gf_status filter_on_ready(void *context, const gf_ready *ready, gf_error *error) {
    const gf_cli_job *job = context;
    gf_cli_run run = job->run;
    run.outcome = ready->outcome;
    gf_cli_bar_hide();
    const gf_status status = job->plot ? gf_cli_plot_draw(job->plot, ready, error) : GF_OK;
    return status || job->silent ? status : print_report(job, &run, error);
}

/* Print the summary on standard error, after the outputs are committed. */
static void print_summary(const gf_cli_run *run, const gf_cli_options *options) {
    char name[2 * PATH_MAX + 2];
    snprintf(name, sizeof name, run->work->info->inputs > 1 ? "%s, %s" : "%s", run->inputs[0],
             run->inputs[1]);
    gf_cli_summary summary = {0};
    gf_cli_report_failure(name, &run->outcome->report);
    gf_cli_report_damage(name, &run->outcome->report.remarks);
    if (options->quiet)
        return;
    gf_cli_summary_add(&summary, name, run, !options->page);
    gf_cli_report_notes(&summary);
    if (options->verbose || (run->work->writers && !options->json && isatty(STDERR_FILENO)))
        gf_cli_report_run(run, options->verbose);
    else
        gf_cli_report_brightness(&summary, name);
}

/* Implement gf_file_options.progress, in the main thread. Pages are read twice: together, alone. */
static bool filter_on_progress(void *context, const gf_progress *now) {
    gf_cli_job *job = context;
    gf_cli_progress *progress = &job->progress;
    if (!job->page)
        progress->work = (double)now->total * (job->silent ? 2 : 1);
    progress->running = (double)now->done;
    progress->pixels_running =
        (double)now->in.width * (double)now->in.height * progress->running / (double)now->total;
    gf_cli_progress_draw(progress);
    return true;
}

static gf_status filter_compute(gf_cli_job *job, gf_outcome *outcome, gf_error *error) {
    const gf_cli_options *options = &job->work->line->options;
    gf_file_options files = options->files;
    gf_job work = gf_cli_job_of_work(job->work);
    work.in_path = job->work->line->operands[0];
    work.options = &files;
    files.page = job->page ? job->page : files.page;
    files.ready = filter_on_ready;
    files.ready_context = job;
    if (gf_cli_ranks_root()) {
        files.progress = filter_on_progress;
        files.progress_context = job;
    }
    gf_engine *engine = NULL;
    gf_status status = gf_engine_open(&options->engine, &engine, error);
    status = gf_cli_agree(status, error);
    if (!status)
        status = (gf_cli_ranks()->launched ? gf_mpi_run : gf_run)(engine, &work, outcome, error);
    gf_engine_close(engine);
    gf_cli_bar_hide();
    job->progress.done += job->progress.running;
    job->progress.pixels += job->progress.pixels_running;
    job->progress.running = job->progress.pixels_running = 0;
    return status;
}

static void free_results(gf_result *results[GF_CLI_MAX_STEPS]) {
    for (size_t i = 0; i < GF_CLI_MAX_STEPS; i++) {
        gf_result_free(results[i]);
        results[i] = NULL;
    }
}

/* Measure all pages together, then each one. Report each one, then the total, as in *report. */
static gf_status filter_measure_pages(gf_cli_job *job, gf_outcome *outcome, gf_error *error) {
    gf_step_report steps[GF_CLI_MAX_STEPS];
    gf_result *results[GF_CLI_MAX_STEPS] = {NULL};
    gf_outcome one = {.steps = steps, .results = results};
    char text[16];
    if (next_output(job->work, &(filter_output){0}) || job->plot || gf_cli_ranks()->launched)
        return gf_set_error(
            error, GF_USAGE,
            "--page all: plots, extracted samples and ranks of MPI are those of one "
            "page; choose it with --page N");
    job->silent = true;
    gf_status status = filter_compute(job, outcome, error);
    const uint32_t pages = outcome->report.pages;
    job->silent = false;
    job->run.page = text;
    for (job->page = 1; job->page <= pages && pages > 1 && !status; job->page++) {
        snprintf(text, sizeof text, "%" PRIu32, job->page);
        job->run.later = job->page > 1;
        status = filter_compute(job, &one, error);
        free_results(results);
    }
    job->run.page = pages > 1 ? "all" : "1";
    job->run.later = pages > 1;
    return status ? status : print_report(job, &job->run, error);
}

/* List the outputs of a dry run; of `run`, print the plan. */
static gf_status print_dry_run(const gf_cli_job *job, gf_error *error) {
    const char *name;
    if (!job->work->filter)
        return gf_cli_report_plan(&job->run, error);
    for (filter_output at = {0}; (name = next_output(job->work, &at));)
        gf_cli_list_output(name);
    if (job->work->line->options.plot)
        gf_cli_list_output(job->work->line->options.plot);
    return GF_OK;
}

gf_status gf_cli_run_one(gf_cli_work *work, gf_error *error) {
    const gf_filter_info *info = work->info;
    const gf_cli_options *options = &work->line->options;
    gf_step_report steps[GF_CLI_MAX_STEPS] = {{.out_bytes = 0}};
    gf_result *results[GF_CLI_MAX_STEPS] = {NULL};
    gf_outcome outcome = {.steps = steps, .results = results};
    gf_cli_job job = {.work = work,
                      .run = {.work = work, .inputs = work->line->operands, .outcome = &outcome}};
    job.run.outputs = job.outputs;
    gf_status status = check_job(&job, error);
    if (!status && options->plot && !gf_cli_plot_open)
        status = gf_set_error(error, GF_FAILED,
                              "--plot: not supported: gpufilter was built without cairo; install "
                              "the package libcairo2-dev and rebuild");
    else if (!status && options->plot && gf_cli_ranks_root())
        status = gf_cli_plot_open(options, &job.plot, error);
    status = gf_cli_agree(status, error);
    const bool pages =
        options->files.page == GF_ALL_PAGES && !work->writers && !options->files.dry_run;
    if (!status && gf_cli_ranks_root())
        gf_cli_progress_begin(&job.progress, info->name, options->progress, options->quiet, false);
    if (!status)
        status = pages ? filter_measure_pages(&job, &outcome, error)
                       : filter_compute(&job, &outcome, error);
    if (status && error->message[0])
        gf_cli_event_failed(&job.progress, work->line->operands[0], error->message);
    gf_cli_event_end(&job.progress, !status, status != GF_OK, 0);
    if (!status && gf_cli_ranks_root()) {
        if (options->files.dry_run)
            status = print_dry_run(&job, error);
        else
            print_summary(&job.run, options);
    }
    if (info->is_test && status == GF_FAILED)
        status = GF_USAGE;
    for (uint32_t i = 0; i < work->step_count && !status; i++)
        if (results[i] && !gf_result_passed(results[i]))
            status = GF_FAILED;
    if (job.plot)
        gf_cli_plot_close(job.plot);
    free_results(results);
    return status;
}

gf_status gf_cli_filter(const gf_filter *filter, const gf_cli_line *line, gf_error *error) {
    const gf_filter_info *info = gf_filter_describe(filter);
    const gf_cli_options *options = &line->options;
    const bool many = info->makes_image ? options->out_dir != NULL
                                        : line->operand_count > 1 || options->files_from ||
                                              options->recursive || options->shard;
    gf_cli_work work = {.info = info, .filter = filter, .line = line, .writers = info->makes_image};
    work.step_count = gf_cli_job_of(filter, line->filter, work.steps).step_count;
    work.steps[1].out_path = options->name; /* in a batch */
    return info->inputs == 1 && !info->is_test && many ? gf_cli_batch(&work, error)
                                                       : gf_cli_run_one(&work, error);
}
