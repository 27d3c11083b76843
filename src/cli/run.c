/* `gpufilter run`: the steps of a pipeline on one or many files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "ranks.h"

/* Read a file of steps. "-" is standard input. The caller frees *text. */
static gf_status pipeline_read(const char *path, char **text, gf_error *error) {
    static const char mark[] = "\xef\xbb\xbf"; /* editors of Windows put it before UTF-8 */
    const bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "re");
    size_t capacity = 0;
    *text = NULL;
    if (!file)
        return gf_set_error(error, GF_FAILED, "--pipeline '%s': cannot open: %s", path,
                            strerror(errno));
    const ssize_t size = getdelim(text, &capacity, 0, file); /* up to the end of the file */
    const int cause = errno;
    const bool failed = ferror(file) || (size < 0 && !feof(file)); /* also without memory */
    if (!standard)
        fclose(file);
    if (failed)
        return gf_set_error(error, GF_FAILED, "--pipeline '%s': cannot read: %s", path,
                            strerror(cause));
    if (size <= 0)
        return gf_set_error(error, GF_USAGE, "--pipeline '%s': is empty; write one step per line",
                            path);
    if (!(*text)[size - 1])
        return gf_set_error(error, GF_USAGE,
                            "--pipeline '%s': contains a NUL byte; name a file of UTF-8 text with "
                            "one step per line",
                            path);
    if (strncmp(*text, mark, strlen(mark)) == 0)
        memset(*text, ' ', strlen(mark));
    return GF_OK;
}

/* Check what the words of steps do not allow: --name, and an operand that was meant as a step. */
static gf_status pipeline_check_words(const gf_cli_line *line, gf_error *error) {
    const char *names[GF_STEP_NAMES];
    const size_t count = gf_step_names(names);
    if (gf_settings_given(line->common, "name"))
        return gf_set_error(error, GF_USAGE,
                            "--name: requires --steps or --pipeline; give the template to write, "
                            "as in ! write '%s'",
                            line->options.name);
    for (size_t i = 1; i < line->operand_count; i++)
        for (size_t j = 0; j < count; j++) {
            const char *operand = line->operands[i];
            if (strcmp(operand + (*operand == '!'), names[j]) == 0 && access(operand, F_OK) != 0)
                return gf_set_error(error, GF_USAGE,
                                    "run: '%s' is a step; write a ! before it, as a word of its "
                                    "own",
                                    names[j]);
        }
    return GF_OK;
}

/* Check the operands. *out: the path or template of a last writer; NULL: none. *many: a batch. */
static gf_status pipeline_ends(const gf_cli_line *line, const char *text, const char *file,
                               const char **out, bool *many, gf_error *error) {
    const gf_cli_options *options = &line->options;
    const bool words = line->steps;
    const size_t count = line->operand_count;
    if ((text != NULL) + (file != NULL) + words != 1)
        return gf_set_error(error, GF_USAGE,
                            text || file
                                ? "run: expected steps once: after the first !, in --steps "
                                  "or in --pipeline"
                                : "run: expected steps, as in 'gpufilter run IN ! median ! "
                                  "write OUT'; see 'gpufilter run --help'");
    if (words && pipeline_check_words(line, error))
        return GF_USAGE;
    *many = options->out_dir || options->files_from || options->recursive || options->shard ||
            (words && count > 1);
    *out = words       ? NULL
           : *many     ? (options->out_dir ? options->name : NULL)
           : count > 1 ? line->operands[1]
                       : NULL;
    if (file && strcmp(file, "-") == 0 && count && strcmp(line->operands[0], "-") == 0)
        return gf_set_error(
            error, GF_USAGE,
            "run: standard input can be read only once; name the file of the steps");
    if (!*many && (count < 1 || count > 2))
        return gf_set_error(
            error, GF_USAGE,
            "run: expected IN%s, got %zu operands; for several inputs use --out-dir",
            words ? "" : " [OUT]", count);
    return GF_OK;
}

/* Take the steps, and reject what does not fit them. */
static gf_status pipeline_take(gf_cli_work *work, const gf_pipeline *pipeline, bool many,
                               gf_error *error) {
    const gf_cli_options *options = &work->line->options;
    const gf_step *steps = gf_pipeline_steps(pipeline, &work->step_count);
    size_t results = 0;
    memcpy(work->steps, steps, work->step_count * sizeof *steps);
    for (uint32_t i = 0; i < work->step_count; i++) {
        const gf_filter *filter = steps[i].filter;
        work->writers += !filter;
        results += filter && !gf_filter_describe(filter)->makes_image;
    }
    if (many && work->writers && !options->out_dir)
        return gf_set_error(error, GF_USAGE,
                            "run: expected --out-dir for the outputs of several inputs");
    if (many && !work->writers && options->out_dir)
        return gf_set_error(error, GF_USAGE,
                            "--out-dir: no step writes an image; add ! write '{stem}{ext}'");
    if (options->csv && results != 1)
        return gf_set_error(error, GF_USAGE,
                            "--csv: prints the table of one step, and %zu steps measure; --json "
                            "prints all results",
                            results);
    return GF_OK;
}

static gf_status pipeline_run(const gf_cli_line *line, gf_error *error) {
    const gf_write_options *write = &line->options.files.write;
    const char *text = gf_settings_text(line->filter, "steps"),
               *file = gf_settings_text(line->filter, "pipeline");
    gf_cli_work work = {.info = &gf_run_command.info, .line = line};
    gf_pipeline *pipeline = NULL;
    char *read = NULL;
    const char *out = NULL;
    bool many = false;
    size_t words = 0;
    while (line->steps && line->steps[words])
        words++;
    gf_status status = pipeline_ends(line, text, file, &out, &many, error);
    if (!status && file)
        status = pipeline_read(file, &read, error);
    if (!status && line->steps)
        status = gf_pipeline_parse_words((const char *const *)line->steps, words, out, write,
                                         &pipeline, error);
    else if (!status)
        status = gf_pipeline_parse(read ? read : text, out, write, &pipeline, error);
    if (!status)
        status = pipeline_take(&work, pipeline, many, error);
    status = gf_cli_agree(status, error); /* a rank may lack the file */
    if (!status)
        status = many ? gf_cli_batch(&work, error) : gf_cli_run_one(&work, error);
    gf_pipeline_free(pipeline);
    free(read);
    return status;
}

static const gf_param run_params[] = {
    GF_TEXT_PARAM(TEXT, "steps", 'p', "STEPS", "steps as one text, separated by !", NULL),
    GF_TEXT_PARAM(TEXT, "pipeline", 0, "FILE",
                  "read steps from a file, one per line; # begins a comment; -: standard input",
                  NULL),
};

const gf_command gf_run_command = {
    .info = {.name = "run",
             .summary = "run several filters in one pass",
             .operands = "IN ! STEP...",
             .details =
                 "Reads an image once, and passes it through steps. No intermediate image is\n"
                 "stored. The pixels are those of single commands that pass files of the same\n"
                 "sample type on. A ! as a word of its own separates steps:\n"
                 "\n"
                 "  FILTER  A filter and its options. One that measures prints its result, and\n"
                 "          passes the image on. compare and dot are followed by a FILE.\n"
                 "  write   Write the image to OUT, the next word; options: format, compression,\n"
                 "          quality, tiff-compression, strip, depth.\n"
                 "  depth   Convert the samples to 8, 16 or f32, the next word.\n"
                 "  linear  Decode sRGB to linear light, f32. write encodes it again.\n"
                 "  input   Continue with the first image.\n"
                 "  open    Erode, then dilate, with the same options.\n"
                 "  close   Dilate, then erode.\n"
                 "\n"
                 "Options of a step are written --sigma 2 or sigma=2. Options before IN apply to\n"
                 "the whole run. Outputs appear together, when all are complete.\n"
                 "--dry-run prints the steps with types, sizes and rows, the backend and the\n"
                 "memory of the strips. The exit status is 1 if compare finds a difference;\n"
                 "outputs are written nevertheless. At most one output may be standard output.\n"
                 "\n"
                 "With --steps and --pipeline, the operands are IN and, for the last image, OUT.\n"
                 "With --out-dir, all operands are inputs. Names of outputs are then templates,\n"
                 "such as {stem}-2{ext}; --name is that of the last image of --steps and\n"
                 "--pipeline.\n",
             .examples = "gpufilter run in.png ! median ! write out.png ! hist bins=8\n"
                         "gpufilter run -p 'median radius=2 ! sharpen' scan.png sharp.png\n"
                         "gpufilter run --dry-run scan.png ! linear ! gaussian ! write soft.png\n"
                         "gpufilter run --pipeline steps.txt --out-dir out -R photos\n",
             .params = run_params,
             .param_count = sizeof run_params / sizeof run_params[0],
             .inputs = 1},
    .run = pipeline_run,
};
