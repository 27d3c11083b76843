/* Who is compared with golden: every filter on whatever runs on this machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "verify.h"

static gf_verify_target *add_target(gf_verify *verify, const char *backend, const char *simd) {
    gf_verify_target *target = &verify->targets[verify->target_count++];
    target->backend = backend;
    target->simd = simd;
    snprintf(target->name, sizeof target->name, "%s%s%s", backend, simd ? " " : "",
             simd ? simd : "");
    return target;
}

static gf_status add_cpu(gf_verify *verify, gf_error *error) {
    for (const char *const *simd = gf_simd_names() + 1; *simd; simd++) {
        const gf_engine_options options = {.backend = "cpu", .simd = *simd, .threads = 1};
        gf_engine *engine = NULL;
        const gf_status status = gf_engine_open(&options, &engine, error);
        gf_engine_close(engine);
        if (status == GF_OK && verify->target_count + 1 < GF_VERIFY_TARGETS)
            add_target(verify, "cpu", *simd);
        else if (status != GF_NO_BACKEND)
            return status;
    }
    return GF_OK;
}

static gf_status add_cuda(gf_verify *verify, gf_error *error) {
    /* 0: chosen from the row size. Images too high for the second half go to the first. */
    static const uint64_t band_rows[GF_VERIFY_LANES] = {0, 0, 16, 256};
    gf_engine_options options = {
        .backend = "cuda", .devices = verify->devices, .max_memory = verify->max_memory};
    gf_engine *engines[GF_VERIFY_LANES] = {0};
    gf_status status = GF_OK;
    for (int i = 0; i < GF_VERIFY_LANES && !status; i++) {
        options.band_rows = band_rows[i];
        status = gf_engine_open(&options, &engines[i], error);
    }
    gf_verify_target *target = status ? NULL : add_target(verify, "cuda", NULL);
    for (int i = 0; i < GF_VERIFY_LANES; i++) {
        if (!target) {
            gf_engine_close(engines[i]);
            continue;
        }
        pthread_mutex_init(&target->lanes[i].lock, NULL);
        target->lanes[i].engine = engines[i];
        target->lanes[i].band_rows = band_rows[i];
    }
    return status;
}

static gf_status open_tracks(gf_verify *verify, gf_error *error) {
    verify->tracks = calloc(gf_filter_count(), sizeof *verify->tracks);
    while (verify->tracks && verify->track_count < gf_filter_count()) {
        gf_verify_track *track = &verify->tracks[verify->track_count];
        track->filter = gf_filter_at(verify->track_count++);
        const gf_filter_info *info = gf_filter_describe(track->filter);
        while (info->cases[track->case_count])
            track->case_count++;
        if (track->case_count == 0)
            return gf_set_error(error, GF_FAILED, "verify: %s has no cases", info->name);
        /* Where there are few cases, they are gone through more often. */
        track->small = (1 + 20 / track->case_count) * GF_VERIFY_ROUNDS * track->case_count;
        track->seen = calloc(track->case_count, sizeof *track->seen);
        if (!track->seen)
            return gf_set_error(error, GF_FAILED, "verify: out of memory");
    }
    return verify->tracks ? GF_OK : gf_set_error(error, GF_FAILED, "verify: out of memory");
}

gf_status gf_verify_open(gf_verify *verify, const char *backend, gf_error *missing,
                         gf_error *error) {
    const bool cpu = strcmp(backend, "cuda") != 0, cuda = strcmp(backend, "cpu") != 0;
    gf_status status = GF_OK;
    pthread_mutex_init(&verify->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&verify->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (verify->devices && !cuda)
        status = gf_set_error(error, GF_USAGE, "--device: is for --backend cuda or all");
    else if (cpu)
        status = add_cpu(verify, error);
    if (!status && cuda)
        status = add_cuda(verify, error);
    if (status == GF_NO_BACKEND && cpu && !verify->devices) {
        *missing = *error;
        status = GF_OK;
    }
    if (status)
        return status;
    memset(error, 0, sizeof *error);
    return open_tracks(verify, error);
}

void gf_verify_close(gf_verify *verify) {
    for (size_t t = 0; t < verify->target_count; t++)
        for (int i = 0; i < GF_VERIFY_LANES && verify->targets[t].lanes[i].engine; i++) {
            gf_engine_close(verify->targets[t].lanes[i].engine);
            pthread_mutex_destroy(&verify->targets[t].lanes[i].lock);
        }
    for (size_t i = 0; verify->tracks && i < verify->track_count; i++)
        free(verify->tracks[i].seen);
    free(verify->tracks);
    pthread_cond_destroy(&verify->done);
    pthread_mutex_destroy(&verify->lock);
}
