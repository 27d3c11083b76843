/* Running a filter command. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "batch.h"
#include "plot.h"
#include "ranks.h"
#include "report.h"

/* What is printed beside data that may go to standard output. */
typedef struct gf_cli_tell {
    bool json, csv, quiet, verbose;
    bool data_out; /* standard output is taken */
} gf_cli_tell;

static bool is_standard(const char *name) {
    return name && strcmp(name, "-") == 0;
}

static bool is_data_out(const gf_filter_info *info, const gf_cli_line *line) {
    if (info->makes_image && is_standard(line->operands[info->inputs]))
        return true;
    for (size_t i = 0; i < info->param_count; i++) {
        const gf_param *param = &info->params[i];
        if ((param->type == GF_PARAM_IMAGE || param->type == GF_PARAM_SAMPLES) &&
            is_standard(gf_settings_text(line->filter, param->name)))
            return true;
    }
    return false;
}

/* What is printed would be written over the input, or behind it, while it is read. */
static gf_status check_inputs(const gf_filter_info *info, const gf_cli_line *line,
                              gf_error *error) {
    struct stat out, in;
    const bool file = fstat(STDOUT_FILENO, &out) == 0 && S_ISREG(out.st_mode);
    for (size_t i = 0; i < info->inputs && file; i++) {
        const char *name = line->operands[i];
        const bool there = is_standard(name) ? fstat(STDIN_FILENO, &in) == 0 : stat(name, &in) == 0;
        if (there && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return gf_set_error(error, GF_USAGE,
                                "%s: is where standard output goes, too; redirect that to another "
                                "file",
                                is_standard(name) ? "standard input" : name);
    }
    return GF_OK;
}

/* A habit of those who know ImageMagick: a folder for all that is in it. */
static gf_status check_folder(const gf_filter_info *info, const gf_cli_line *line,
                              gf_error *error) {
    struct stat what;
    const char *name = line->operand_count ? line->operands[0] : "-";
    if (info->inputs != 1 || info->is_test || is_standard(name) || stat(name, &what) != 0 ||
        !S_ISDIR(what.st_mode))
        return GF_OK;
    return gf_set_error(error, GF_FAILED,
                        "%s: is a folder; for the images in it use 'gpufilter %s -R %s%s'", name,
                        info->name, name, info->makes_image ? " --out-dir OUT" : "");
}

/* Finds what contradicts each other before anything is done. */
static gf_status check(const gf_filter_info *info, const gf_cli_line *line, gf_cli_tell *tell,
                       gf_error *error) {
    const size_t operands = info->inputs + (info->makes_image ? 1u : 0u);
    gf_status status = gf_cli_check_common(info, line, error);
    if (!status)
        status = check_folder(info, line, error);
    if (status)
        return status;
    if (line->operand_count > operands && info->makes_image)
        return gf_set_error(
            error, GF_USAGE,
            "%s: takes %s, got %zu files; for many inputs add --out-dir, see 'gpufilter %s --help'",
            info->name, info->operands, line->operand_count, info->name);
    if (line->operand_count != operands)
        return gf_set_error(
            error, GF_USAGE, "%s: takes %s, got %zu file%s; see 'gpufilter %s --help'", info->name,
            info->operands, line->operand_count, line->operand_count == 1 ? "" : "s", info->name);
    const bool plot_out = is_standard(gf_settings_text(line->common, "plot"));
    const bool data_out = is_data_out(info, line);
    *tell = (gf_cli_tell){.json = gf_settings_flag(line->common, "json"),
                          .csv = gf_settings_flag(line->common, "csv"),
                          .quiet = gf_settings_flag(line->common, "quiet"),
                          .verbose = gf_settings_flag(line->common, "verbose"),
                          .data_out = data_out || plot_out};
    const char *second = data_out && plot_out ? "plot"
                         : !tell->data_out    ? NULL
                         : tell->json         ? "json"
                         : tell->csv          ? "csv"
                                              : NULL;
    if (second)
        return gf_set_error(error, GF_USAGE,
                            "--%s: standard output takes the data already; give that a file name",
                            second);
    return check_inputs(info, line, error);
}

/* One command under way. */
typedef struct gf_cli_job {
    gf_cli_run done; /* its result and report: once it is ready */
    gf_cli_tell tell;
    gf_cli_plot *plot; /* NULL: none */
} gf_cli_job;

/* Print the report to its last byte. */
static gf_status print_report(const gf_cli_run *run, const gf_cli_tell *tell, gf_error *error) {
    FILE *file = tell->data_out ? stderr : stdout;
    gf_status status = GF_OK;
    if (tell->json) {
        status = gf_cli_report_json(file, run, error);
    } else if (tell->csv) {
        gf_cli_report_csv_header(file, run->result, NULL);
        gf_cli_report_csv(file, run->result, NULL, false);
    } else if (run->result && !tell->quiet) {
        gf_cli_report_text(file, run);
    }
    if (!status && (fflush(file) != 0 || ferror(file)))
        status = gf_set_error(error, GF_FAILED, "standard output: %s", strerror(errno));
    return status;
}

/* gf_file_options.ready: draw the plot, which appears together with the other outputs, and print
 * the report. A report that cannot be printed keeps them all from appearing. */
static gf_status on_ready(void *context, const gf_ready *ready, gf_error *error) {
    gf_cli_job *job = context;
    gf_cli_run run = job->done;
    run.result = ready->result;
    run.report = ready->report;
    gf_cli_progress_hide();
    const gf_status status = job->plot ? gf_cli_plot_draw(job->plot, ready->result, error) : GF_OK;
    return status ? status : print_report(&run, &job->tell, error);
}

/* Print the summary on standard error, once the outputs are in place. */
static void print_summary(const gf_cli_run *run, const gf_cli_tell *tell) {
    gf_cli_report_failure(run);
    if (!tell->quiet)
        gf_cli_report_dropped(run->inputs[0], 1, run->report->dropped);
    const bool line = tell->verbose || (run->output && !tell->json && isatty(STDERR_FILENO));
    if (line && !tell->quiet)
        gf_cli_report_run(run, tell->verbose);
}

/* Print the names of what a run would write. */
static void list_outputs(const gf_filter_info *info, const gf_cli_line *line) {
    if (info->makes_image)
        gf_cli_list_output(line->operands[info->inputs]);
    for (size_t i = 0; i < info->param_count; i++) {
        const gf_param *param = &info->params[i];
        if ((param->type == GF_PARAM_IMAGE || param->type == GF_PARAM_SAMPLES) &&
            gf_settings_given(line->filter, param->name))
            gf_cli_list_output(gf_settings_text(line->filter, param->name));
    }
    if (gf_settings_given(line->common, "plot"))
        gf_cli_list_output(gf_settings_text(line->common, "plot"));
}

/* gf_file_options.progress, in this thread. */
static void watch(void *context, const gf_progress *now) {
    gf_cli_progress *progress = context;
    progress->of = (double)now->of;
    progress->under_way = (double)now->done;
    progress->pixels_under_way =
        (double)now->in.width * (double)now->in.height * progress->under_way / progress->of;
    gf_cli_progress_draw(progress);
}

static gf_status compute(const gf_filter *filter, const gf_cli_line *line, gf_cli_job *job,
                         gf_result **result, gf_report *report, gf_error *error) {
    const gf_ranks *ranks = &gf_cli_this_rank()->job;
    const gf_engine_options engine_options = gf_cli_engine_options(line->common);
    gf_file_options file_options = gf_cli_file_options(line);
    file_options.ready = on_ready;
    file_options.ready_context = job;
    file_options.beside = job->plot ? gf_cli_plot_file(job->plot) : NULL;
    file_options.ranks = ranks;
    gf_cli_progress progress = {0};
    if (gf_cli_ranks_first()) {
        gf_cli_progress_begin(&progress, gf_cli_show_of(line->common, false));
        gf_cli_event_begin(&progress, gf_filter_describe(filter)->name);
        file_options.progress = watch;
        file_options.progress_context = &progress;
    }
    gf_engine *engine = NULL;
    gf_status status =
        gf_ranks_agree(ranks, gf_engine_open(&engine_options, &engine, error), error);
    if (!status)
        status = gf_run_file(engine, filter, line->filter, line->operands, job->done.output,
                             &file_options, result, report, error);
    gf_engine_close(engine);
    gf_cli_progress_hide();
    if (status && error->message[0])
        gf_cli_event_failed(&progress, line->operands[0], error->message);
    gf_cli_event_end(&progress, !status, status != GF_OK, 0);
    return status;
}

static gf_status run(const gf_filter *filter, const gf_cli_line *line, bool *passed,
                     gf_error *error) {
    const gf_filter_info *info = gf_filter_describe(filter);
    gf_result *result = NULL;
    gf_report report;
    gf_cli_job job = {
        .done = {
            .info = info, .settings = line->filter, .inputs = line->operands, .report = &report}};
    gf_status status = check(info, line, &job.tell, error);
    if (!status && info->makes_image)
        job.done.output = line->operands[info->inputs];
    if (!status && gf_cli_ranks_first() && gf_settings_text(line->common, "plot"))
        status = gf_cli_plot_open(line, &job.plot, error);
    status = gf_ranks_agree(&gf_cli_this_rank()->job, status, error);
    if (!status)
        status = compute(filter, line, &job, &result, &report, error);
    if (!status && gf_cli_ranks_first() && gf_settings_flag(line->common, "dry-run"))
        list_outputs(info, line);
    else if (!status && gf_cli_ranks_first())
        print_summary(&job.done, &job.tell);
    *passed = status || !result || gf_result_passed(result);
    gf_cli_plot_close(job.plot);
    gf_result_free(result);
    return status;
}

gf_status gf_cli_filter(const gf_filter *filter, int argc, char **argv, gf_error *error) {
    const gf_filter_info *info = gf_filter_describe(filter);
    gf_cli_line line;
    gf_param common[GF_CLI_MAX_COMMON];
    const size_t common_count = gf_cli_common(info, common);
    gf_status status = gf_cli_parse(argc, argv, info, common, common_count, &line, error);
    bool passed = true;
    status = gf_ranks_agree(&gf_cli_this_rank()->job, status, error);
    if (status)
        goto done;
    const bool help = gf_settings_flag(line.common, "help");
    if (help || gf_settings_flag(line.common, "version")) {
        if (gf_cli_ranks_first())
            help ? gf_cli_help_filter(info) : gf_cli_version();
    } else if (gf_cli_is_batch(info, &line))
        status = gf_cli_batch(filter, &line, error);
    else
        status = run(filter, &line, &passed, error);
done:
    gf_cli_line_free(&line);
    if (info->is_test && status == GF_FAILED)
        return GF_USAGE;
    return passed ? status : GF_FAILED;
}
