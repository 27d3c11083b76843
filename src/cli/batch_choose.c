/* Which inputs of a batch are run: not what is finished, and not what would be written over. */
#include <stdlib.h>
#include <string.h>

#include "batch_run.h"
#include "commands.h"
#include "hash.h"
#include "report.h"

gf_status gf_cli_batch_digest(gf_cli_batch_run *run, gf_error *error) {
    static const char *const names[] = {"format", "compression"};
    const gf_settings *common = run->line->common;
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return gf_cli_fail(error, GF_FAILED, "%s: out of memory", run->info->name);
    fprintf(file, "%s ", run->info->name);
    gf_cli_report_settings(file, run->info, run->line->filter);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = gf_settings_text(common, names[i]);
        fprintf(file, " %s=%s", names[i], value ? value : "");
    }
    fprintf(file, " strip=%d", gf_settings_flag(common, "strip"));
    if (fclose(file) != 0) {
        free(text);
        return gf_cli_fail(error, GF_FAILED, "%s: out of memory", run->info->name);
    }
    run->settings = gf_cli_hash_text(GF_CLI_HASH_START, text);
    free(text);
    return GF_OK;
}

/* ---- which are run --------------------------------------------------------------------------- */

/* By its name, size and time: another file may get the same output in the next run. */
static uint64_t digest_input(const gf_cli_input *input) {
    const char *slash = strrchr(input->path, '/');
    uint64_t hash = gf_cli_hash_text(GF_CLI_HASH_START, slash ? slash + 1 : input->path);
    hash = gf_cli_hash(hash, &input->bytes, sizeof input->bytes);
    return gf_cli_hash(hash, &input->time, sizeof input->time);
}

/* The output was made of this input, as it is now, with these settings. An image that replaced
 * itself is as it should be: noted as done, or no longer what it was when it was begun. */
static bool is_finished(const gf_cli_batch_run *run, const gf_cli_input *input,
                        const gf_cli_output *output, const gf_cli_made *made) {
    const bool itself =
        input->there && input->device == output->device && input->inode == output->inode;
    const bool same = made->input == digest_input(input);
    if (made->settings != run->settings)
        return false;
    if (itself)
        return made->kind == GF_CLI_DONE || !same;
    return made->kind == GF_CLI_DONE && same && output->time >= input->time;
}

void gf_cli_batch_note(gf_cli_batch_run *run, size_t i, gf_cli_made_kind kind) {
    const gf_cli_output *output = &run->outputs[i];
    gf_cli_made made = {.kind = kind,
                        .settings = run->settings,
                        .input = digest_input(&run->inputs.list[i]),
                        .name = output->path + output->below};
    struct stat info;
    if (kind == GF_CLI_DONE) {
        if (stat(output->path, &info) != 0)
            return;
        made.size = (uint64_t)info.st_size;
        made.time = gf_cli_time(&info);
    }
    /* What it was before, it still is. */
    const gf_cli_made *before = gf_cli_journal_find(run->journal, made.name);
    if (kind == GF_CLI_FAILED && before)
        made = *before;
    gf_cli_journal_add(run->journal, &made);
}

typedef enum gf_fate { FATE_RUN, FATE_REPLACE, FATE_SKIP, FATE_FAIL } gf_fate;

static gf_fate decide(const gf_cli_batch_run *run, size_t i, gf_error *error) {
    const gf_settings *common = run->line->common;
    const gf_cli_output *output = &run->outputs[i];
    const bool force = gf_settings_flag(common, "force");
    if (!output->there)
        return FATE_RUN;
    if (!gf_settings_flag(common, "resume")) {
        if (force)
            return FATE_RUN;
        gf_cli_fail(error, GF_FAILED,
                    "%s: exists already; use --force to replace it, or --resume to skip what is "
                    "finished",
                    output->path);
        return FATE_FAIL;
    }
    const gf_cli_made *made = gf_cli_journal_find(run->journal, output->path + output->below);
    const bool ours =
        made &&
        (made->kind == GF_CLI_BEGUN ||
         (made->kind == GF_CLI_DONE && made->size == output->size && made->time == output->time));
    if (ours && is_finished(run, &run->inputs.list[i], output, made))
        return FATE_SKIP;
    if (ours || force)
        return FATE_REPLACE;
    gf_cli_fail(error, GF_FAILED,
                "%s: exists already, and is not as a run into this folder left it; use --force to "
                "replace it",
                output->path);
    return FATE_FAIL;
}

/* The folder of an output, unless it is that of the one before. */
static gf_fate make_folder(const gf_cli_output *output, const char **last, size_t *last_length,
                           gf_error *error) {
    const size_t length = (size_t)(strrchr(output->path, '/') - output->path);
    if (length < output->below ||
        (*last && *last_length == length && memcmp(*last, output->path, length) == 0))
        return FATE_RUN;
    char *folder = strndup(output->path, length);
    if (!folder) {
        gf_cli_fail(error, GF_FAILED, "%s: out of memory", output->path);
        return FATE_FAIL;
    }
    const gf_status status = gf_cli_make_folder(folder, error);
    free(folder);
    if (status)
        return FATE_FAIL;
    *last = output->path;
    *last_length = length;
    return FATE_RUN;
}

gf_status gf_cli_batch_choose(gf_cli_batch_run *run, gf_error *error) {
    const gf_cli_inputs *inputs = &run->inputs;
    const char *last = NULL;
    size_t last_length = 0;
    run->items = calloc(inputs->count + 1, sizeof *run->items);
    run->which = calloc(inputs->count + 1, sizeof *run->which);
    run->ended = calloc(inputs->count + 1, sizeof *run->ended);
    if (!run->items || !run->which || !run->ended)
        return gf_cli_fail(error, GF_FAILED, "%s: out of memory", run->info->name);
    for (size_t i = 0; i < inputs->count; i++) {
        gf_error one = {0};
        gf_fate fate = run->outputs ? decide(run, i, &one) : FATE_RUN;
        if (run->outputs && (fate == FATE_RUN || fate == FATE_REPLACE) &&
            make_folder(&run->outputs[i], &last, &last_length, &one) == FATE_FAIL)
            fate = FATE_FAIL;
        if (fate == FATE_FAIL) {
            gf_command_complain(&one);
            run->progress.failed++;
            if (run->fail_fast)
                break;
        } else if (fate == FATE_SKIP) {
            run->skipped++;
        } else {
            run->items[run->to_run] =
                (gf_batch_item){.in = inputs->list[i].path,
                                .out = run->outputs ? run->outputs[i].path : NULL,
                                .replace = fate == FATE_REPLACE};
            run->which[run->to_run++] = i;
            run->progress.total_bytes += inputs->list[i].bytes;
            if (run->outputs)
                gf_cli_batch_note(run, i, GF_CLI_BEGUN);
        }
    }
    if (run->outputs)
        gf_cli_journal_flush(run->journal);
    return GF_OK;
}
