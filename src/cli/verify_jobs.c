/* Which filter, case and image come next. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "verify.h"

void gf_verify_note(gf_verify_track *track, uint64_t job, const char *text) {
    gf_verify_finding *findings = track->findings;
    size_t at = track->finding_count;
    while (at > 0 && findings[at - 1].job > job)
        at--;
    if (at == GF_VERIFY_FINDINGS)
        return;
    if (track->finding_count < GF_VERIFY_FINDINGS)
        track->finding_count++;
    memmove(&findings[at + 1], &findings[at], (track->finding_count - at - 1) * sizeof findings[0]);
    findings[at].job = job;
    snprintf(findings[at].text, sizeof findings[at].text, "%s", text);
    /* File names may hold newlines and escape sequences. */
    for (char *c = findings[at].text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

/* Every worker holds two results at a time: of what would take more than this, an image gets only
 * so many rows. */
#define MAX_RESULT (UINT64_C(64) << 20)

static gf_status cut(gf_verify_job *job, gf_error *error) {
    uint64_t bytes;
    gf_status status =
        gf_filter_result_bytes(job->track->filter, job->settings, &job->in, &bytes, error);
    if (!status && bytes > MAX_RESULT)
        job->in.height = 1 + (uint64_t)((double)job->in.height * MAX_RESULT / (double)bytes);
    return status;
}

/* Settings of the job's case, and what they make of its image. GF_USAGE: they do not suit it. */
static gf_status prepare(gf_verify_job *job, gf_error *error) {
    const gf_filter *filter = job->track->filter;
    const gf_filter_info *info = gf_filter_describe(filter);
    gf_status status;
    job->settings = gf_settings_new(info->params, info->param_count);
    if (!job->settings)
        return gf_set_error(error, GF_FAILED, "%s: out of memory", info->name);
    status = gf_settings_apply_case(job->settings, job->text, error);
    if (status == GF_USAGE)
        error->status = status = GF_FAILED; /* a case that is wrong for every image */
    if (!status)
        status = cut(job, error);
    if (!status)
        status = gf_filter_output(filter, job->settings, &job->in, &job->out, error);
    if (status) {
        gf_settings_free(job->settings);
        job->settings = NULL;
    }
    return status;
}

/* Hands a prepared job out, or tells why it cannot be. */
static bool hand_out(gf_verify *verify, gf_verify_job *job, size_t which) {
    gf_verify_track *track = job->track;
    gf_error error = {0};
    job->number = verify->jobs++;
    const gf_status status = prepare(job, &error);
    if (status == GF_USAGE) {
        track->idle++;
        return false;
    }
    track->idle = 0;
    if (status) {
        verify->failures++;
        gf_verify_note(track, job->number, error.message);
        return false;
    }
    track->seen[which] = true;
    return true;
}

static bool next_of_file(gf_verify *verify, gf_verify_job *job) {
    while (verify->file_track < verify->track_count) {
        gf_verify_track *track = &verify->tracks[verify->file_track];
        const size_t which = verify->file_case++;
        if (which == track->case_count) {
            verify->file_track++;
            verify->file_case = 0;
            continue;
        }
        *job = (gf_verify_job){.track = track,
                               .text = gf_filter_describe(track->filter)->cases[which],
                               .file = verify->file,
                               .in = verify->file->format,
                               .random = gf_random_start(verify->seed, verify->file_track, which)};
        if (hand_out(verify, job, which))
            return true;
    }
    return false;
}

/* The filter that has got the least of those that have not got enough. */
static gf_verify_track *choose_track(gf_verify *verify) {
    const uint64_t share = verify->goal / verify->track_count + 1;
    gf_verify_track *chosen = NULL;
    for (size_t i = 0; i < verify->track_count; i++) {
        gf_verify_track *track = &verify->tracks[i];
        const bool enough =
            track->next >= track->small && (track->planned >= share || track->idle >= track->small);
        if (!enough && (!chosen || track->planned < chosen->planned))
            chosen = track;
    }
    return chosen;
}

static bool next_generated(gf_verify *verify, gf_verify_job *job) {
    gf_verify_track *track;
    while ((track = choose_track(verify))) {
        const uint64_t image = track->next++, which = image % track->case_count;
        *job = (gf_verify_job){
            .image = image,
            .track = track,
            .text = gf_filter_describe(track->filter)->cases[which],
            .random = gf_random_start(verify->seed, (uint64_t)(track - verify->tracks), image)};
        job->in = gf_verify_format(&job->random, image / track->case_count, image < track->small);
        if (!hand_out(verify, job, which))
            continue;
        track->planned += job->in.width * job->in.height * job->in.channels * verify->target_count;
        return true;
    }
    return false;
}

bool gf_verify_next(gf_verify *verify, gf_verify_job *job) {
    return verify->file ? next_of_file(verify, job) : next_generated(verify, job);
}
