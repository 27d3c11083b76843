/* Which outputs of a batch are ours, and finished: what must be in the record of them. */
#define _GNU_SOURCE /* SEEK_HOLE */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batch_run.h"
#include "hash.h"
#include "report.h"

/* ---- digests --------------------------------------------------------------------------------- */

gf_status gf_cli_batch_digest(gf_cli_batch_run *run, gf_error *error) {
    static const char *const names[] = {"format", "compression", "raw"};
    const gf_cli_options *options = &run->line->options;
    const char *const values[] = {options->files.format, options->files.compression,
                                  options->raw_text};
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return gf_set_error(error, GF_FAILED, "%s: out of memory", run->info->name);
    fprintf(file, "%s ", run->info->name);
    gf_cli_report_settings(file, run->info, run->line->filter);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        fprintf(file, " %s=%s", names[i], values[i] ? values[i] : "");
    fprintf(file, " strip=%d", options->files.strip);
    const bool whole = !ferror(file);
    if (fclose(file) != 0 || !whole) {
        free(text);
        return gf_set_error(error, GF_FAILED, "%s: out of memory", run->info->name);
    }
    run->settings = gf_cli_hash_text(GF_CLI_HASH_START, text);
    free(text);
    return GF_OK;
}

/* By where it is, its size and time: another file may get the same output in the next run. Not by
 * its inode: some file systems make up new ones. */
static uint64_t digest_input(const gf_cli_input *input) {
    char *path = realpath(input->path, NULL);
    uint64_t hash = gf_cli_hash_text(GF_CLI_HASH_START, path ? path : input->path);
    free(path);
    hash = gf_cli_hash(hash, &input->bytes, sizeof input->bytes);
    return gf_cli_hash(hash, &input->time, sizeof input->time);
}

/* ---- what is there --------------------------------------------------------------------------- */

static const char *name_of(const gf_cli_output *output) {
    return output->path + output->below;
}

/* A power failure may leave a file at its full size, with gaps where bytes had not reached the
 * disk. We leave none. (A file system that makes gaps of zeros has such images made again.) */
static bool is_whole(const char *path, uint64_t size) {
    bool whole = true;
#ifdef SEEK_HOLE
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const off_t gap = fd < 0 ? -1 : lseek(fd, 0, SEEK_HOLE);
    whole = gap < 0 || (uint64_t)gap >= size;
    if (fd >= 0)
        close(fd);
#endif
    return whole;
}

bool gf_cli_batch_is_ours(const gf_cli_batch_run *run, size_t i, const gf_cli_look *look) {
    bool sure;
    return gf_cli_journal_find(run->journal, name_of(&run->outputs[i]), look->time, &sure);
}

bool gf_cli_batch_is_finished(const gf_cli_batch_run *run, size_t i, const gf_cli_look *look) {
    const gf_cli_input *input = &run->inputs.list[i];
    bool sure;
    const gf_cli_made *made =
        gf_cli_journal_find(run->journal, name_of(&run->outputs[i]), look->time, &sure);
    if (!made || !sure || made->settings != run->settings || made->size != look->size)
        return false;
    /* An image that replaced itself has no input any more. */
    if (input->there && input->device == look->device && input->inode == look->inode)
        return true;
    return made->input == digest_input(input) && look->time >= input->time &&
           is_whole(run->outputs[i].path, look->size);
}

static bool is_changed(const gf_cli_look *now, const gf_cli_look *before) {
    return now->taken &&
           (!before->there || !now->there || now->device != before->device ||
            now->inode != before->inode || now->size != before->size || now->time != before->time);
}

bool gf_cli_batch_is_made_elsewhere(const gf_cli_batch_run *run, size_t i) {
    const gf_cli_output *output = &run->outputs[i];
    gf_error unread;
    if (!run->line->options.resume)
        return false;
    const gf_cli_look now = gf_cli_look_at(output->path);
    if (!now.there || !is_changed(&now, &output->look))
        return false;
    /* The folder may be large: it is listed only for what no record tells that is known. */
    return (gf_cli_journal_read_on(run->journal, &unread) == GF_OK &&
            gf_cli_batch_is_finished(run, i, &now)) ||
           (gf_cli_journal_read(run->journal, &unread) == GF_OK &&
            gf_cli_batch_is_finished(run, i, &now));
}

/* ---- what is made ---------------------------------------------------------------------------- */

gf_status gf_cli_batch_note(const gf_cli_batch_run *run, uint64_t item, uint64_t size, int64_t time,
                            gf_error *error) {
    const size_t i = run->which[item];
    const gf_cli_output *output = &run->outputs[i];
    /* It was ours when the run began, which may be long ago. */
    if (run->items[item].replace && !run->line->options.files.force) {
        const gf_cli_look now = gf_cli_look_at(output->path);
        if (is_changed(&now, &output->look))
            return gf_set_error(error, GF_FAILED,
                                "%s: was changed while this run was under way; use --force to "
                                "replace it",
                                output->path);
    }
    const gf_cli_made made = {.settings = run->settings,
                              .input = digest_input(&run->inputs.list[i]),
                              .size = size,
                              .time = time,
                              .name = name_of(output)};
    gf_cli_journal_add(run->journal, &made);
    return GF_OK;
}

gf_status gf_cli_batch_see(const gf_cli_batch_run *run, const gf_ready *ready, uint64_t *size,
                           int64_t *time, gf_error *error) {
    struct stat info;
    if (stat(ready->file, &info) != 0)
        return gf_set_error(error, GF_FAILED, "%s: cannot look at it: %s",
                            run->items[ready->item].out, strerror(errno));
    *size = (uint64_t)info.st_size;
    *time = gf_cli_time(&info);
    return GF_OK;
}

gf_status gf_cli_batch_ready(void *run, const gf_ready *ready, gf_error *error) {
    uint64_t size = 0;
    int64_t time = 0;
    if (!ready->file)
        return GF_OK;
    const gf_status status = gf_cli_batch_see(run, ready, &size, &time, error);
    return status ? status : gf_cli_batch_note(run, ready->item, size, time, error);
}
