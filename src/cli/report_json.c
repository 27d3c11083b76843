/* The record of a run. */
#include <inttypes.h>

#include "json.h"
#include "report.h"

#define SCHEMA_VERSION 2 /* grows when a member goes or changes its meaning */

static void print_range(FILE *file, const char *name, const gf_settings *settings) {
    gf_value lo = {.type = GF_VALUE_DOUBLE}, hi = lo;
    gf_settings_range(settings, name, &lo.real, &hi.real);
    putc('[', file);
    gf_json_value(file, &lo);
    fputs(", ", file);
    gf_json_value(file, &hi);
    putc(']', file);
}

static void print_list(FILE *file, const gf_param *param, const gf_settings *settings) {
    const uint64_t chosen = gf_settings_list(settings, param->name);
    const char *gap = "";
    putc('[', file);
    for (size_t i = 0; param->choices[i]; i++) {
        if (!(chosen >> i & 1))
            continue;
        fputs(gap, file);
        gf_json_text(file, param->choices[i]);
        gap = ", ";
    }
    putc(']', file);
}

static void print_setting(FILE *file, const gf_param *param, const gf_settings *settings) {
    const char *text = gf_settings_text(settings, param->name);
    if (param->type == GF_PARAM_FLAG)
        fputs(gf_settings_flag(settings, param->name) ? "true" : "false", file);
    else if (!text)
        fputs("null", file);
    else if (param->type == GF_PARAM_INT)
        fprintf(file, "%" PRId64, gf_settings_int(settings, param->name));
    else if (param->type == GF_PARAM_FLOAT)
        gf_json_value(file, &(gf_value){.type = GF_VALUE_FLOAT,
                                        .real = (double)gf_settings_float(settings, param->name)});
    else if (param->type == GF_PARAM_SIZE)
        gf_json_value(file, &(gf_value){.type = GF_VALUE_UINT,
                                        .low = gf_settings_size(settings, param->name)});
    else if (param->type == GF_PARAM_RANGE)
        print_range(file, param->name, settings);
    else if (param->type == GF_PARAM_LIST)
        print_list(file, param, settings);
    else
        gf_json_text(file, text);
}

void gf_cli_report_settings(FILE *file, const gf_filter_info *info, const gf_settings *settings) {
    putc('{', file);
    for (size_t i = 0; i < info->param_count; i++) {
        const gf_param *param = &info->params[i];
        const char *text = gf_settings_text(settings, param->name);
        fputs(i ? ", " : "", file);
        if (text && (param->type == GF_PARAM_IMAGE || param->type == GF_PARAM_SAMPLES)) {
            gf_json_name(file, param->name, text);
            continue;
        }
        gf_json_text(file, param->name);
        fputs(": ", file);
        print_setting(file, param, settings);
    }
    putc('}', file);
}

/* Columns as arrays; of a single row, their values. */
static void print_table(FILE *file, const gf_result *result, size_t index) {
    const gf_table *table = gf_result_table(result, index);
    putc('{', file);
    for (size_t c = 0; c < table->column_count; c++) {
        fputs(c ? ", " : "", file);
        gf_json_text(file, table->columns[c].name);
        fputs(table->single ? ": " : ": [", file);
        for (uint64_t row = 0; row < table->row_count; row++) {
            gf_value value = gf_result_cell(result, index, row, c);
            fputs(row ? ", " : "", file);
            gf_json_value(file, &value);
        }
        fputs(table->single ? "" : "]", file);
    }
    putc('}', file);
}

static void print_dropped(FILE *file, uint32_t dropped) {
    static const char *const names[] = {"icc", "exif", "orientation"};
    const char *gap = ", \"dropped\": [";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!(dropped >> i & 1))
            continue;
        fprintf(file, "%s\"%s\"", gap, names[i]);
        gap = ", ";
    }
    fputs(dropped ? "]" : "", file);
}

static void print_record(FILE *file, const gf_cli_run *run, const gf_settings *effective) {
    const gf_report *report = run->report;
    fprintf(file, "{\"schema\": \"gpufilter\", \"version\": %d, \"program\": \"%s\", \"command\": ",
            SCHEMA_VERSION, gf_version());
    gf_json_text(file, run->info->name);
    fputs(", ", file);
    gf_json_names(file, "files", run->inputs, run->info->inputs);
    if (run->output) {
        fputs(", ", file);
        gf_json_name(file, "output", run->output);
    }
    fputs(", \"image\": ", file);
    gf_json_format(file, &report->in);
    fputs(", \"backend\": ", file);
    gf_json_text(file, report->backend);
    fputs(", \"device\": ", file);
    gf_json_text(file, report->device);
    if (report->device_failed) {
        fputs(", \"device_failed\": true, \"reason\": ", file);
        gf_json_text(file, report->reason);
    }
    if (report->brightness > 0) {
        fputs(", \"brightness\": ", file);
        gf_json_value(
            file, &(gf_value){.type = GF_VALUE_FLOAT, .real = (double)(float)report->brightness});
    }
    if (run->output && report->counts_clipped)
        fprintf(file, ", \"clipped\": %" PRIu64, report->clipped);
    else if (run->output)
        fputs(", \"clipped\": null", file);
    print_dropped(file, report->dropped);
    if (report->verified)
        fputs(", \"verified\": true", file);
    if (report->ranks)
        fprintf(file, ", \"ranks\": %u", report->ranks);
    if (run->ranks > 1)
        fprintf(file, ", \"rank\": %" PRIu32, run->rank);
    fprintf(file, ", \"bytes_in\": %" PRIu64 ", \"bytes_out\": %" PRIu64 ", \"seconds\": %.6f, ",
            report->in_bytes, report->out_bytes, report->total_seconds);
    gf_cli_report_busy_json(file, report);
    fputs(", \"parameters\": ", file);
    gf_cli_report_settings(file, run->info, effective);
    if (run->info->is_test && run->result)
        fprintf(file, ", \"passed\": %s", gf_result_passed(run->result) ? "true" : "false");
    if (run->result) {
        fputs(", \"result\": {", file);
        for (size_t t = 0; t < gf_result_table_count(run->result); t++) {
            fputs(t ? ", " : "", file);
            gf_json_text(file, gf_result_table(run->result, t)->name);
            fputs(": ", file);
            print_table(file, run->result, t);
        }
        putc('}', file);
    }
    fputs("}\n", file);
}

gf_status gf_cli_report_json(FILE *file, const gf_cli_run *run, gf_error *error) {
    gf_settings *effective; /* the values that were used, given or derived */
    gf_status status = gf_settings_effective(gf_filter_find(run->info->name), run->settings,
                                             &run->report->in, &effective, error);
    if (status)
        return status;
    print_record(file, run, effective);
    gf_settings_free(effective);
    return GF_OK;
}
