/* Pipelines: the steps of a job as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/settings.h"
#include "engine/run/task.h"

/* ---- options of a writer --------------------------------------------------------------------- */

/* In the order of gf_depth. */
static const char *const depths[] = {"input", "8", "16", "f32", NULL};

void gf_write_params(gf_param params[GF_WRITE_PARAMS]) {
    const gf_param all[GF_WRITE_PARAMS] = {
        GF_CHOICE_PARAM(CHOICE, "format", 0, "FORMAT",
                        "image format of the output; without it, the extension selects the format",
                        NULL, gf_names(GF_NAMES_FORMAT)),
        GF_CHOICE_PARAM(CHOICE, "compression", 'c', "EFFORT", "PNG compression effort", "fast",
                        gf_names(GF_NAMES_COMPRESSION)),
        GF_NUMBER_PARAM(INT, "quality", 'Q', "N", "JPEG quality; chroma is not subsampled", "95", 1,
                        100),
        GF_CHOICE_PARAM(CHOICE, "tiff-compression", 0, "NAME", "compression of TIFF outputs",
                        "deflate", gf_names(GF_NAMES_TIFF_COMPRESSION)),
        GF_FLAG_PARAM("strip", 0, "omit the metadata of the input from the output"),
        GF_CHOICE_PARAM(CHOICE, "depth", 0, "DEPTH",
                        "sample type of the output: bits of integers, or f32; filters that change "
                        "the image also compute in a type larger than that of the input",
                        "input", depths)};
    memcpy(params, all, sizeof all);
}

void gf_write_set(const gf_settings *settings, gf_write_options *write) {
    const char **const texts[] = {&write->format, &write->compression, &write->tiff_compression};
    static const char *const names[] = {"format", "compression", "tiff-compression"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (gf_settings_given(settings, names[i]))
            *texts[i] = gf_settings_text(settings, names[i]);
    if (gf_settings_given(settings, "quality"))
        write->quality = (uint32_t)gf_settings_int(settings, "quality");
    if (gf_settings_given(settings, "depth"))
        write->depth = (gf_depth)gf_settings_choice(settings, "depth");
    write->strip = write->strip || gf_settings_flag(settings, "strip");
}

/* ---- words ----------------------------------------------------------------------------------- */

struct gf_pipeline {
    uint32_t count;
    gf_step steps[GF_PIPELINE_STEPS];
    gf_settings *settings[GF_PIPELINE_STEPS]; /* of filters and writers */
    gf_write_options write[GF_PIPELINE_STEPS];
    gf_write_options common; /* of writers without an option of their own */
    gf_param write_params[GF_WRITE_PARAMS];
    uint32_t from; /* of the next step */
    char *text;    /* the parsed text, cut into words */
};

/* A word that begins a step, besides the names of filters. */
typedef struct parse_word {
    const char *name;
    const char *filters[2]; /* one per step; none: a writer */
    const char *preset;     /* settings of its steps, which then have no options; else NULL */
    const char *operand;    /* NULL: none */
} parse_word;

static const parse_word parse_words[] = {
    {"write", {NULL}, NULL, "OUT"},
    {"depth", {"convert"}, "", "TYPE"},
    {"linear", {"convert"}, "depth=f32 light=decode", NULL},
    {"open", {"erode", "dilate"}, NULL, NULL},
    {"close", {"dilate", "erode"}, NULL, NULL},
};
enum { PARSE_WORDS = sizeof parse_words / sizeof *parse_words };

static const char parse_input[] = "input"; /* the next step reads the first image */

/* The step that is being parsed. */
typedef struct parse_target {
    const parse_word *kind;
    const gf_filter_info *info; /* NULL: a writer */
    const gf_param *params;     /* `count` options */
    size_t count;
    gf_settings *settings;
    const char *operand; /* NULL: none yet */
} parse_target;

static gf_status parse_unknown_option(const parse_target *target, const char *word, size_t length,
                                      gf_error *error) {
    const char *names[64];
    char text[256];
    const size_t dashes = strspn(word, "-");
    const int size = (int)(length ? length : strlen(word)); /* =2 */
    for (size_t i = 0; i < target->count && i < 64; i++)
        names[i] = target->params[i].name;
    gf_guess_names(word + dashes, length - dashes, names, target->count, "--", text);
    if (text[0])
        return gf_fail(error, GF_USAGE, "%.*s: unknown option%s", size, word, text);
    if (!target->info || !target->count)
        return gf_fail(error, GF_USAGE, "%.*s: unknown option; see 'gpufilter run --help'", size,
                       word);
    return gf_fail(error, GF_USAGE,
                   "%.*s: unknown option of a step; see 'gpufilter %s --help'; options of the "
                   "whole run are given before the input",
                   size, word, target->info->name);
}

/* Parse a word, and consume the value of --name or -r behind it. */
static gf_status parse_option(parse_target *target, const char *word, const char *const **next,
                              gf_error *error) {
    const bool dashed = word[0] == '-' && word[1], is_long = dashed && word[1] == '-';
    const char letter = dashed && !is_long ? word[1] : 0;
    const char *name = word + (is_long ? 2 : dashed);
    const size_t length = letter ? 1 : strcspn(name, "=");
    const char *value = name[length] ? name + length + !letter : NULL;
    const gf_param *param = gf_param_find(target->params, target->count, name, length, letter);
    if (!dashed && target->kind->operand && !target->operand && !(param && value)) {
        target->operand = word;
        return GF_OK;
    }
    if (!param && !dashed && !value)
        return gf_fail(error, GF_USAGE,
                       "'%s' is superfluous; write options as --NAME VALUE or NAME=VALUE, and ! "
                       "between steps",
                       word);
    if (!param)
        return parse_unknown_option(target, word, (size_t)(name - word) + length, error);
    const bool flag = param->type == GF_PARAM_FLAG;
    if (!flag && !value && dashed && **next)
        value = *(*next)++;
    if (!flag && !value)
        return gf_fail(error, GF_USAGE, "--%s: requires a value (%s)", param->name, param->metavar);
    return gf_settings_set(target->settings, param->name, value, error);
}

/* Parse the words after the name of a step into the settings and the operand of its target. */
static gf_status parse_options(parse_target *target, const char *const *words, gf_error *error) {
    const parse_word *kind = target->kind;
    gf_status status = GF_OK;
    while (*words && !status) {
        const char *word = *words++;
        status = parse_option(target, word, &words, error);
    }
    if (!status && kind->operand && !(target->operand && *target->operand))
        status = gf_fail(error, GF_USAGE, "expected %s %s", kind->name, kind->operand);
    if (status || !kind->preset)
        return status;
    return target->operand ? gf_settings_set(target->settings, "depth", target->operand, error)
                           : gf_settings_apply_case(target->settings, kind->preset, error);
}

/* Add a step of a filter; NULL: a writer. */
static gf_status parse_add(gf_pipeline *pipeline, const parse_word *kind, const gf_filter *filter,
                           const char *const *words, gf_error *error) {
    const uint32_t i = pipeline->count;
    if (i == GF_PIPELINE_STEPS)
        return gf_fail(error, GF_USAGE,
                       "a pipeline has at most %d steps; write the image, and continue in a second "
                       "pipeline",
                       GF_PIPELINE_STEPS);
    parse_target target = {.kind = kind,
                           .info = filter ? &filter->info : NULL,
                           .params = filter ? filter->info.params : pipeline->write_params,
                           .count = filter ? filter->info.param_count : GF_WRITE_PARAMS};
    target.settings = pipeline->settings[i] = gf_settings_new(target.params, target.count);
    if (!target.settings)
        return gf_fail_memory(error, kind->name, target.count, "settings");
    pipeline->count++;
    if (kind->preset)
        target.count = 0;
    const gf_status status = parse_options(&target, words, error);
    if (status)
        return status;
    gf_step *step = &pipeline->steps[i];
    *step = (gf_step){.filter = filter, .from = pipeline->from};
    pipeline->from = 0;
    if (filter) {
        step->settings = target.settings;
        step->in_path = filter->info.inputs > 1 ? target.operand : NULL;
        return GF_OK;
    }
    step->out_path = target.operand;
    for (uint32_t j = 0; j < i; j++)
        if (!pipeline->steps[j].filter && strcmp(pipeline->steps[j].out_path, step->out_path) == 0)
            return gf_fail(error, GF_USAGE, "%s: step %u writes it, too; use another name",
                           step->out_path, j + 1);
    pipeline->write[i] = pipeline->common;
    gf_write_set(target.settings, &pipeline->write[i]);
    step->write = words[0] && words[1] ? &pipeline->write[i] : NULL; /* options of its own */
    return GF_OK;
}

size_t gf_step_names(const char *names[GF_STEP_NAMES]) {
    size_t count = 0;
    for (; count + PARSE_WORDS + 1 < GF_STEP_NAMES && gf_filter_at(count); count++)
        names[count] = gf_filter_at(count)->info.name;
    for (size_t i = 0; i < PARSE_WORDS; i++)
        names[count++] = parse_words[i].name;
    names[count++] = parse_input;
    return count;
}

static gf_status parse_unknown_step(const char *name, gf_error *error) {
    const char *names[GF_STEP_NAMES];
    char text[256];
    const size_t count = gf_step_names(names);
    gf_guess_names(name, strlen(name), names, count, "", text);
    return gf_fail(error, GF_USAGE, "no such step%s",
                   text[0] ? text
                           : "; a step is a filter, write, depth, linear, input, open or close");
}

/* Add the steps of the words from the name of a step to the next NULL. */
static gf_status parse_step(gf_pipeline *pipeline, const char *const *words, gf_error *error) {
    const uint32_t first = pipeline->count;
    const char *name = words[0];
    const gf_filter *filter = gf_filter_find(name);
    const parse_word *kind = NULL;
    gf_status status = GF_OK;
    gf_error cause = {0};
    for (size_t i = 0; i < PARSE_WORDS && !filter && !kind; i++)
        kind = strcmp(parse_words[i].name, name) == 0 ? &parse_words[i] : NULL;
    const parse_word one = {name, {name}, NULL, filter && filter->info.inputs > 1 ? "FILE" : NULL};
    if (filter)
        kind = &one;
    if (kind) {
        for (size_t i = 0; i < 2 && (i == 0 || kind->filters[i]) && !status; i++) {
            filter = kind->filters[i] ? gf_filter_find(kind->filters[i]) : NULL;
            status = parse_add(pipeline, kind, filter, words + 1, &cause);
        }
    } else if (strcmp(name, parse_input) == 0) {
        pipeline->from = GF_FROM_INPUT;
        if (words[1])
            status =
                gf_fail(&cause, GF_USAGE, "'%s' is superfluous; write ! between steps", words[1]);
    } else {
        status = parse_unknown_step(name, &cause);
    }
    if (!status)
        return GF_OK;
    gf_fail(error, status, "step %u, %s: %s", first + 1, name, cause.message);
    if (error)
        error->step = first + 1;
    return status;
}

/* Reject a pipeline without a filter, and an input that no step reads. */
static gf_status parse_check(const gf_pipeline *pipeline, gf_error *error) {
    uint32_t i = 0;
    while (i < pipeline->count && !pipeline->steps[i].filter)
        i++;
    if (pipeline->from)
        return gf_fail(error, GF_USAGE, "input: no step follows; add a filter or write OUT");
    return i < pipeline->count
               ? GF_OK
               : gf_fail(error, GF_USAGE,
                         "pipeline: no filter; add one, such as median, or depth keep to change "
                         "the file only");
}

enum { PARSE_MORE = 4 }; /* words for a writer, and a NULL before and after it */

/* Parse `count` words, with NULL between steps, of a list with PARSE_MORE further entries. */
static gf_status parse_list(const char **list, size_t count, const char *out,
                            const gf_write_options *write, gf_pipeline **pipeline,
                            gf_error *error) {
    gf_pipeline *made = *pipeline = calloc(1, sizeof *made);
    if (!made)
        return gf_fail_memory(error, "pipeline", sizeof *made, "steps");
    gf_status status = GF_OK;
    gf_write_params(made->write_params);
    if (write)
        made->common = *write;
    const char *const more[PARSE_MORE] = {NULL, out ? "write" : NULL, out, NULL};
    memcpy(list + count, more, sizeof more);
    for (size_t i = 0; i < count + PARSE_MORE && !status; i++)
        if (list[i] && (i == 0 || !list[i - 1]))
            status = parse_step(made, &list[i], error);
    if (!status)
        status = parse_check(made, error);
    if (status) {
        gf_pipeline_free(made);
        *pipeline = NULL;
    }
    return status;
}

gf_status gf_pipeline_parse_words(const char *const *words, size_t count, const char *out,
                                  const gf_write_options *write, gf_pipeline **pipeline,
                                  gf_error *error) {
    const char **list = calloc(count + PARSE_MORE, sizeof *list);
    *pipeline = NULL;
    if (!list)
        return gf_fail_memory(error, "pipeline", count * sizeof *list, "words");
    for (size_t i = 0; i < count; i++)
        list[i] = strcmp(words[i], "!") == 0 ? NULL : words[i];
    const gf_status status = parse_list(list, count, out, write, pipeline, error);
    free(list);
    return status;
}

/* Cut text into words, in place: "!" unquoted and a newline become NULL. Return their number, or
 * SIZE_MAX for a quote without its end. words: at most one per byte of the text. */
static size_t parse_cut(char *text, const char **words) {
    size_t count = 0;
    for (char *at = text; *at;) {
        char *word = at, *end = at, quote = 0, next;
        bool quoted = false;
        if (*at == ' ' || *at == '\t' || *at == '\r') {
            at++;
            continue;
        }
        if (*at == '#') {
            at += strcspn(at, "\n");
            continue;
        }
        for (; *at && (quote || !strchr(" \t\r\n", *at)); at++) {
            if (*at == quote || (!quote && (*at == '\'' || *at == '"'))) {
                quote = quote ? 0 : *at;
                quoted = true;
            } else {
                *end++ = *at;
            }
        }
        if (quote)
            return SIZE_MAX;
        next = *at;
        at += next != 0;
        *end = 0;
        if (end > word || quoted)
            words[count++] = !quoted && strcmp(word, "!") == 0 ? NULL : word;
        if (next == '\n')
            words[count++] = NULL;
    }
    return count;
}

gf_status gf_pipeline_parse(const char *text, const char *out, const gf_write_options *write,
                            gf_pipeline **pipeline, gf_error *error) {
    char *copy = strdup(text);
    const char **words = calloc(strlen(text) + PARSE_MORE, sizeof *words);
    gf_status status = GF_OK;
    *pipeline = NULL;
    if (!copy || !words)
        status = gf_fail_memory(error, "pipeline", strlen(text), "words");
    const size_t count = status ? 0 : parse_cut(copy, words);
    if (count == SIZE_MAX)
        status = gf_fail(
            error, GF_USAGE,
            "pipeline: a quote has no end; close it, or quote the word with the other kind");
    if (!status)
        status = parse_list(words, count, out, write, pipeline, error);
    if (!status)
        (*pipeline)->text = copy;
    else
        free(copy);
    free(words);
    return status;
}

void gf_pipeline_free(gf_pipeline *pipeline) {
    for (uint32_t i = 0; pipeline && i < GF_PIPELINE_STEPS; i++)
        gf_settings_free(pipeline->settings[i]);
    if (pipeline)
        free(pipeline->text);
    free(pipeline);
}

const gf_step *gf_pipeline_steps(const gf_pipeline *pipeline, uint32_t *count) {
    *count = pipeline->count;
    return pipeline->steps;
}

/* ---- printing -------------------------------------------------------------------------------- */

/* Print a word, quoted if it would be cut, or mean something else. */
static void print_word(FILE *file, const char *word) {
    const bool plain =
        *word && !word[strcspn(word, " \t\r\n'\"")] && *word != '#' && strcmp(word, "!") != 0;
    fputs(plain ? "" : "'", file);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\"'\"'", file);
        else
            putc(*word, file);
    fputs(plain ? "" : "'", file);
}

static void print_step(FILE *file, const gf_pipeline *pipeline, uint32_t i) {
    const gf_step *step = &pipeline->steps[i];
    const gf_settings *settings = pipeline->settings[i];
    const gf_filter_info *info = step->filter ? &step->filter->info : NULL;
    const gf_param *params = info ? info->params : pipeline->write_params;
    const size_t count = info ? info->param_count : GF_WRITE_PARAMS;
    if (info && gf_filter_find("convert") == step->filter) {
        const bool linear = gf_settings_given(settings, "light");
        fprintf(file, linear ? "linear" : "depth %s", gf_settings_text(settings, "depth"));
        return;
    }
    fputs(info ? info->name : "write", file);
    const char *operand = info ? step->in_path : step->out_path;
    if (operand) {
        putc(' ', file);
        print_word(file, operand);
    }
    for (size_t j = 0; j < count; j++) {
        if (!gf_settings_given(settings, params[j].name))
            continue;
        fprintf(file, " %s", params[j].name);
        if (params[j].type != GF_PARAM_FLAG) {
            putc('=', file);
            print_word(file, gf_settings_text(settings, params[j].name));
        }
    }
}

char *gf_pipeline_text(const gf_pipeline *pipeline, bool lines) {
    const char *gap = lines ? "\n" : " ! ";
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return NULL;
    for (uint32_t i = 0; i < pipeline->count; i++) {
        if (pipeline->steps[i].from)
            fprintf(file, "%s%s", i ? gap : "", parse_input);
        fputs(i || pipeline->steps[i].from ? gap : "", file);
        print_step(file, pipeline, i);
    }
    const bool failed = ferror(file);
    if (fclose(file) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}
