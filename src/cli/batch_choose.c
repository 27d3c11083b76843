/* Which inputs of a batch are run: not what is finished, and not what would be written over. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "batch_run.h"
#include "commands.h"

typedef enum gf_fate { FATE_RUN, FATE_REPLACE, FATE_SKIP, FATE_FAIL } gf_fate;

/* What does a dry run find in the way of an item, but for an output that is there? */
static gf_status check_item(const char *in, const gf_cli_output *output, gf_error *error) {
    struct stat info;
    if (access(in, R_OK) != 0)
        return gf_set_error(error, GF_FAILED, "%s: cannot open: %s", in, strerror(errno));
    if (!output->look.taken || output->look.there)
        return GF_OK;
    if (stat(output->path, &info) != 0)
        return gf_set_error(error, GF_FAILED, "%s: is a symbolic link to nothing", output->path);
    if (S_ISDIR(info.st_mode))
        return gf_set_error(error, GF_FAILED, "%s: is a folder", output->path);
    return GF_OK;
}

static gf_fate decide(const gf_cli_batch_run *run, size_t i, gf_error *error) {
    const gf_cli_output *output = &run->outputs[i];
    const gf_cli_look *look = &output->look;
    const bool force = run->line->options.files.force, resume = run->line->options.resume;
    if (run->dry_run && check_item(run->inputs.list[i].path, output, error))
        return FATE_FAIL;
    if (resume && look->there && gf_cli_batch_is_finished(run, i, look))
        return FATE_SKIP;
    /* As for a single image: what appears while the batch runs is replaced, too. */
    if (force)
        return FATE_REPLACE;
    if (!look->there)
        return FATE_RUN;
    if (resume && gf_cli_batch_is_ours(run, i, look))
        return FATE_REPLACE;
    gf_set_error(error, GF_FAILED,
                 resume ? "%s: exists already, and is not as a run into this folder left it; use "
                          "--force to replace it"
                        : "%s: exists already; use --force to replace it, or --resume to skip what "
                          "is finished",
                 output->path);
    return FATE_FAIL;
}

/* Make the folder of an output, unless it is that of the one before. A dry run checks that it could
 * be made and written to. */
static gf_fate make_folder(gf_cli_batch_run *run, const gf_cli_output *output, const char **last,
                           size_t *last_length, gf_error *error) {
    const size_t length = output->folder;
    if ((length < output->below && !run->dry_run) ||
        (*last && *last_length == length && memcmp(*last, output->path, length) == 0))
        return FATE_RUN;
    char *folder = strndup(output->path, length);
    if (!folder) {
        gf_set_error(error, GF_FAILED, "%s: out of memory", output->path);
        return FATE_FAIL;
    }
    const gf_status status = run->dry_run ? gf_cli_folders_check(folder, error)
                                          : gf_cli_folders_make(&run->folders, folder, error);
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
    if (!run->items || !run->which)
        return gf_set_error(error, GF_FAILED, "%s: out of memory", run->info->name);
    for (size_t i = 0; i < inputs->count; i++) {
        gf_error one = {0};
        gf_fate fate = run->outputs ? decide(run, i, &one) : FATE_RUN;
        if (run->outputs && (fate == FATE_RUN || fate == FATE_REPLACE) &&
            make_folder(run, &run->outputs[i], &last, &last_length, &one) == FATE_FAIL)
            fate = FATE_FAIL;
        if (fate == FATE_FAIL) {
            gf_cli_batch_complain(run, i, one.cause, &one);
            run->progress.failed++;
            if (run->fail_fast || run->stopped)
                break;
        } else if (fate == FATE_SKIP) {
            run->skipped++;
        } else {
            run->items[run->to_run] =
                (gf_batch_item){.in = inputs->list[i].path,
                                .out = run->outputs ? run->outputs[i].path : NULL,
                                .replace = fate == FATE_REPLACE};
            run->which[run->to_run++] = i;
            run->progress.of += (double)inputs->list[i].bytes;
        }
    }
    return GF_OK;
}
