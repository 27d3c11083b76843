/* JSON output: values, file names, settings, and the record of a run. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report.h"

/* Return the bytes of the UTF-8 character, or control character, at s; 0 if it is invalid. */
static size_t json_character(const unsigned char *s) {
    const size_t size = gf_printable((const char *)s);
    if (size)
        return size;
    if (*s < 0x20 || *s == 0x7f)
        return 1;
    return *s == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0 ? 2 : 0;
}

void gf_json_text(FILE *file, const char *text) {
    putc('"', file);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        const size_t size = json_character(s);
        if (!size)
            fputs("\\ufffd", file);
        else if (*s == '"' || *s == '\\')
            fprintf(file, "\\%c", *s);
        else if (!gf_printable((const char *)s))
            fprintf(file, "\\u%04x", s[size - 1]);
        else
            fwrite(s, 1, size, file);
        s += size ? size : 1;
    }
    putc('"', file);
}

/* Print a value. Quote what JSON numbers cannot hold: integers above 2^53, nan, inf and -inf. */
static void json_value(FILE *file, gf_value value) {
    if (value.type == GF_VALUE_TEXT) {
        gf_json_text(file, value.text);
        return;
    }
    if (value.type == GF_VALUE_NONE) {
        fputs("null", file);
        return;
    }
    char text[40];
    gf_value_format(&value, text, sizeof text);
    const bool exact = value.type == GF_VALUE_UINT
                           ? value.high == 0 && value.low <= UINT64_C(1) << 53
                           : isfinite(value.real);
    /* Without a point or an exponent, readers parse an integer, which has no -0. */
    const bool minus_zero = value.type != GF_VALUE_UINT && value.real == 0 && text[0] == '-';
    fprintf(file, exact ? "%s%s" : "\"%s%s\"", text, minus_zero ? ".0" : "");
}

void gf_json_format(FILE *file, const gf_format *format) {
    fprintf(file,
            ", \"image\": {\"width\": %" PRIu64 ", \"height\": %" PRIu64 ", \"channels\": %" PRIu32
            ", \"type\": \"%s\", \"alpha\": %s}",
            format->width, format->height, format->channels, gf_type_name(format->type),
            format->alpha ? "true" : "false");
}

void gf_json_string(FILE *file, const char *key, const char *text) {
    fprintf(file, ", \"%s\": %s", key, text ? "" : "null");
    if (text)
        gf_json_text(file, text);
}

void gf_json_parts(FILE *file, const char *key, const char *text, const char *separator) {
    fprintf(file, ", \"%s\": [", key);
    for (const char *at = text; *at; at += *at != 0) {
        const size_t length = strcspn(at, separator);
        char part[512];
        snprintf(part, sizeof part, "%.*s", (int)length, at);
        fputs(at == text ? "" : ", ", file);
        gf_json_text(file, part);
        at += length;
    }
    putc(']', file);
}

void gf_json_count(FILE *file, const char *key, uint64_t count) {
    fprintf(file, ", \"%s\": ", key);
    json_value(file, (gf_value){.type = GF_VALUE_UINT, .low = count});
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_utf8(const char *text) {
    size_t size = 1;
    for (; *text && size; text += size)
        size = json_character((const unsigned char *)text);
    return size;
}

/* Print a name, percent-encoded (RFC 3986) except for unreserved ASCII characters and '/'. */
static void print_encoded(FILE *file, const char *name) {
    putc('"', file);
    for (const unsigned char *s = (const unsigned char *)name; *s; s++)
        fprintf(file, *s < 0x80 && (isalnum(*s) || strchr("-._~/", *s)) ? "%c" : "%%%02X", *s);
    putc('"', file);
}

/* Append the exact bytes of a name that is not valid UTF-8. */
static void json_exact_name(FILE *file, const char *key, const char *name) {
    if (is_utf8(name))
        return;
    fprintf(file, ", \"%s_encoded\": ", key);
    print_encoded(file, name);
}

void gf_json_name(FILE *file, const char *key, const char *name) {
    gf_json_string(file, key, name);
    json_exact_name(file, key, name);
}

void gf_json_names(FILE *file, const char *key, const char *const *names, size_t count) {
    bool exact = true;
    for (size_t i = 0; i < count; i++)
        exact = exact && is_utf8(names[i]);
    for (int encoded = 0; encoded < (exact ? 1 : 2); encoded++) {
        fprintf(file, ", \"%s%s\": [", key, encoded ? "_encoded" : "");
        for (size_t i = 0; i < count; i++) {
            fputs(i ? ", " : "", file);
            (encoded ? print_encoded : gf_json_text)(file, names[i]);
        }
        putc(']', file);
    }
}

/* ---- parameters ------------------------------------------------------------------------------ */

static void print_real(FILE *file, gf_value_type type, double real) {
    json_value(file, (gf_value){.type = type, .real = real});
}

static void print_bits(FILE *file, const char *const *names, uint64_t bits) {
    const char *gap = "[";
    for (size_t i = 0; names[i]; i++)
        if (bits >> i & 1) {
            fputs(gap, file);
            gf_json_text(file, names[i]);
            gap = ", ";
        }
    fputs(bits ? "]" : "[]", file);
}

static void print_two(FILE *file, double a, double b) {
    putc('[', file);
    print_real(file, GF_VALUE_DOUBLE, a);
    fputs(", ", file);
    print_real(file, GF_VALUE_DOUBLE, b);
    putc(']', file);
}

static void print_setting(FILE *file, const gf_param *param, const gf_settings *settings) {
    const char *name = param->name, *text = gf_settings_text(settings, name);
    double lo, hi, pair[2];
    if (!text && param->type != GF_PARAM_FLAG) {
        fputs("null", file);
        return;
    }
    switch (param->type) {
    case GF_PARAM_FLAG:
        fputs(gf_settings_flag(settings, name) ? "true" : "false", file);
        break;
    case GF_PARAM_INT:
        fprintf(file, "%" PRId64, gf_settings_int(settings, name));
        break;
    case GF_PARAM_FLOAT:
        print_real(file, GF_VALUE_FLOAT, (double)gf_settings_float(settings, name));
        break;
    case GF_PARAM_SIZE:
        json_value(file,
                   (gf_value){.type = GF_VALUE_UINT, .low = gf_settings_size(settings, name)});
        break;
    case GF_PARAM_RANGE:
        if (!gf_settings_range(settings, name, &lo, &hi)) {
            gf_json_text(file, text);
            break;
        }
        print_two(file, lo, hi);
        break;
    case GF_PARAM_PAIR:
    case GF_PARAM_INT_PAIR:
        gf_settings_pair(settings, name, pair);
        print_two(file, pair[0], pair[1]);
        break;
    case GF_PARAM_LIST:
        print_bits(file, param->choices, gf_settings_list(settings, name));
        break;
    default:
        gf_json_text(file, text);
        if (param->type == GF_PARAM_IMAGE || param->type == GF_PARAM_SAMPLES)
            json_exact_name(file, name, text);
    }
}

void gf_json_settings(FILE *file, const char *key, const gf_filter_info *info,
                      const gf_settings *settings) {
    fprintf(file, ", \"%s\": {", key);
    for (size_t i = 0; i < info->param_count; i++) {
        fprintf(file, "%s\"%s\": ", i ? ", " : "", info->params[i].name);
        print_setting(file, &info->params[i], settings);
    }
    putc('}', file);
}

/* ---- the record of a run --------------------------------------------------------------------- */

/* Print each table as an object with an array per column, or a value per column of a single row. */
static void print_result(FILE *file, const gf_filter_info *info, const gf_result *result) {
    const gf_table *table;
    if (!result || info->makes_image)
        return;
    if (info->is_test)
        fprintf(file, ", \"passed\": %s", gf_result_passed(result) ? "true" : "false");
    fputs(", \"result\": {", file);
    for (size_t t = 0; (table = gf_result_table(result, t)); t++) {
        fputs(t ? ", " : "", file);
        gf_json_text(file, table->name);
        fputs(": {", file);
        for (size_t c = 0; c < table->column_count; c++) {
            fputs(c ? ", " : "", file);
            gf_json_text(file, table->columns[c].name);
            fputs(table->single ? ": " : ": [", file);
            for (uint64_t row = 0; row < table->row_count; row++) {
                fputs(row ? ", " : "", file);
                json_value(file, gf_result_cell(result, t, row, c));
            }
            fputs(table->single ? "" : "]", file);
        }
        putc('}', file);
    }
    putc('}', file);
}

static void print_busy(FILE *file, const gf_report *report) {
    fprintf(file, ", \"busy_seconds\": {\"starting\": %.6f", report->start_seconds);
    for (int i = 0; i < GF_STAGE_COUNT; i++)
        if (report->busy[i].workers)
            fprintf(file, ", \"%s\": %.6f", gf_names(GF_NAMES_STAGE)[i], report->busy[i].seconds);
    fputs("}, \"workers\": {\"starting\": 1", file);
    for (int i = 0; i < GF_STAGE_COUNT; i++)
        if (report->busy[i].workers)
            fprintf(file, ", \"%s\": %u", gf_names(GF_NAMES_STAGE)[i], report->busy[i].workers);
    putc('}', file);
}

/* Print the first members of a record: schema, command and names of files. */
static void json_begin(FILE *file, const gf_filter_info *info, const char *const *inputs,
                       const char *output) {
    /* Increase schema_version when a member is removed or changes its meaning. */
    fprintf(file, "{\"schema\": \"gpufilter\", \"schema_version\": 4, \"program\": \"%s\"",
            gf_version());
    gf_json_string(file, "command", info->name);
    gf_json_names(file, "files", inputs, info->inputs);
    if (output)
        gf_json_name(file, "output", output);
}

void gf_cli_report_json_failure(FILE *file, const gf_filter_info *info, const char *input,
                                const char *output, const gf_error *error) {
    json_begin(file, info, &input, output);
    gf_json_count(file, "status", error->status);
    gf_json_string(file, "error", error->message);
    fputs("}\n", file);
}

const struct gf_cli_dropped gf_cli_dropped_kinds[GF_CLI_DROPPED] = {
    {"icc", "ICC profile"},
    {"exif", "EXIF data"},
    {"orientation", "orientation"},
    {"xmp", "XMP data"},
    {"iptc", "IPTC data"},
    {"resolution", "resolution"},
    {"text", "text"},
    {"colour", "gamma or other colour data"},
    {"other", "other metadata"},
    {"depth", "bits per sample"}};

/* Append the number of clipped samples of an output. */
static void print_clipped(FILE *file, const gf_step_report *made) {
    if (made->counted)
        gf_json_count(file, "clipped", made->clipped);
    else
        gf_json_string(file, "clipped", NULL);
}

/* Append "steps" of `run`: an array of objects with the number, filter, settings and result. */
static void print_steps(FILE *file, const gf_cli_run *run, const gf_step_info *steps) {
    const char *const *output = run->outputs;
    fputs(", \"steps\": [", file);
    for (uint32_t i = 0; i < run->work->step_count; i++) {
        const gf_step *step = &run->work->steps[i];
        const gf_step_report *made = &run->outcome->steps[i];
        fprintf(file, "%s{\"step\": %" PRIu32, i ? ", " : "", i + 1);
        gf_json_string(file, "filter", gf_step_name(step));
        if (step->from == GF_FROM_INPUT)
            fputs(", \"from\": \"input\"", file);
        if (step->in_path)
            gf_json_name(file, "file", step->in_path);
        if (step->filter) {
            const gf_filter_info *info = gf_filter_describe(step->filter);
            gf_json_settings(file, "settings", info, steps[i].effective);
            print_result(file, info, run->outcome->results[i]);
        } else {
            gf_json_name(file, "output", *output++);
            gf_json_format(file, &made->out);
            print_clipped(file, made);
            gf_json_count(file, "bytes_out", made->out_bytes);
        }
        putc('}', file);
    }
    putc(']', file);
}

gf_status gf_cli_report_json(FILE *file, const gf_cli_run *run, gf_error *error) {
    const char *dropped[GF_CLI_DROPPED + 1] = {NULL}, *output = gf_cli_run_output(run);
    const gf_report *report = &run->outcome->report;
    const gf_step_report made = gf_cli_outputs_of(run);
    const gf_filter_info *info = run->work->info;
    gf_step_info steps[GF_CLI_MAX_STEPS];
    const gf_status status = gf_cli_inspect_steps(run, steps, error);
    if (status)
        return status;
    json_begin(file, info, run->inputs, output);
    gf_json_format(file, &report->in);
    gf_json_string(file, "backend", report->backend);
    gf_json_string(file, "device", report->device);
    if (report->device_failed) {
        fputs(", \"device_failed\": true", file);
        gf_json_string(file, "reason", report->reason);
    }
    if (made.brightness > 0) {
        fputs(", \"brightness\": ", file);
        print_real(file, GF_VALUE_FLOAT, (double)(float)made.brightness);
    }
    if (output)
        print_clipped(file, &made);
    if (made.dropped) {
        for (size_t i = 0; i < GF_CLI_DROPPED; i++)
            dropped[i] = gf_cli_dropped_kinds[i].name;
        fputs(", \"dropped_metadata\": ", file);
        print_bits(file, dropped, made.dropped);
    }
    if (report->pages > 1)
        gf_json_count(file, "pages", report->pages);
    if (run->page)
        fprintf(file, *run->page == 'a' ? ", \"page\": \"%s\"" : ", \"page\": %s", run->page);
    if (report->remarks.damage[0])
        gf_json_string(file, "damage", report->remarks.damage);
    if (report->remarks.notes[0])
        gf_json_parts(file, "notes", report->remarks.notes, "\n");
    if (report->verified)
        fputs(", \"verified\": true", file);
    if (report->processes)
        gf_json_count(file, "ranks", report->processes);
    if (run->ranks > 1)
        gf_json_count(file, "rank", run->rank);
    gf_json_count(file, "bytes_in", report->in_bytes);
    gf_json_count(file, "bytes_out", made.out_bytes);
    fprintf(file, ", \"seconds\": %.6f", report->total_seconds);
    print_busy(file, report);
    if (run->work->filter) {
        gf_json_settings(file, "parameters", info, steps[0].effective);
        print_result(file, info, run->outcome->results[0]);
    } else {
        print_steps(file, run, steps);
    }
    gf_cli_free_steps(steps);
    fputs("}\n", file);
    return GF_OK;
}

gf_step_report gf_cli_outputs_of(const gf_cli_run *run) {
    const gf_step_report *steps = run->outcome->steps;
    gf_step_report all = {.out_bytes = 0};
    for (uint32_t i = 0; i < run->work->step_count; i++) {
        if (steps[i].out.width)
            all.out = steps[i].out;
        all.out_bytes += steps[i].out_bytes;
        all.clipped += steps[i].clipped;
        all.counted += steps[i].counted;
        all.dropped |= steps[i].dropped;
        if (steps[i].brightness > all.brightness) {
            all.brightness = steps[i].brightness;
            memcpy(all.advice, steps[i].advice, sizeof all.advice);
        }
    }
    return all;
}

gf_status gf_cli_inspect(const gf_filter *filter, const gf_settings *settings,
                         const gf_format *format, gf_step_info *info, gf_error *error) {
    gf_step steps[GF_CLI_MAX_STEPS];
    gf_step_info all[GF_CLI_MAX_STEPS] = {{.effective = NULL}};
    gf_job job = gf_cli_job_of(filter, settings, steps);
    job.format = *format;
    const gf_status status = gf_job_inspect(&job, all, error);
    *info = all[0];
    return status;
}

gf_status gf_cli_inspect_steps(const gf_cli_run *run, gf_step_info info[GF_CLI_MAX_STEPS],
                               gf_error *error) {
    gf_job job = gf_cli_job_of_work(run->work);
    job.format = run->outcome->report.in;
    memset(info, 0, GF_CLI_MAX_STEPS * sizeof *info);
    return gf_job_inspect(&job, info, error);
}

void gf_cli_free_steps(gf_step_info info[GF_CLI_MAX_STEPS]) {
    for (int i = 0; i < GF_CLI_MAX_STEPS; i++)
        gf_settings_free(info[i].effective);
}
