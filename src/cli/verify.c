/* gpufilter verify: every filter on every backend of this machine against golden. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "json.h"
#include "verify.h"

static uint64_t count_cases(const gf_verify_track *track) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < track->case_count; i++)
        count += track->seen[i];
    return count;
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void print_text(const gf_verify *verify, const gf_error *missing) {
    printf("%-10s %-14s %6s %8s %15s %12s %9s\n", "filter", "backend", "cases", "images", "samples",
           "differences", "seconds");
    for (size_t i = 0; i < verify->track_count; i++)
        for (size_t t = 0; t < verify->target_count; t++) {
            const gf_verify_track *track = &verify->tracks[i];
            const gf_verify_tally *tally = &track->tallies[t];
            printf("%-10s %-14s %6" PRIu64 " %8" PRIu64 " %15" PRIu64 " %12" PRIu64 " %9.2f\n",
                   gf_filter_describe(track->filter)->name, verify->targets[t].name,
                   count_cases(track), tally->images, tally->samples, tally->differences,
                   tally->seconds);
        }
    if (missing->status)
        printf("not verified: %.*s\n", (int)strcspn(missing->message, ";"), missing->message);
    for (size_t i = 0; i < verify->track_count; i++)
        for (size_t f = 0; f < verify->tracks[i].finding_count; f++) {
            gf_cli_print_text(stdout, verify->tracks[i].findings[f].text);
            putchar('\n');
        }
    if (verify->failures)
        printf("verify: %" PRIu64 " run%s failed\n", verify->failures,
               verify->failures == 1 ? "" : "s");
    printf("verify: %" PRIu64 " samples compared, %" PRIu64 " differences", verify->samples,
           verify->differences);
    if (verify->unread_count)
        printf(", %zu file%s not read", verify->unread_count, verify->unread_count == 1 ? "" : "s");
    putchar('\n');
}

static void print_count(const char *name, uint64_t count) {
    const gf_value value = {.type = GF_VALUE_UINT, .low = count};
    printf(", \"%s\": ", name);
    gf_json_value(stdout, &value);
}

static void print_row(const gf_verify_track *track, const gf_verify_target *target,
                      const gf_verify_tally *tally) {
    printf("{\"filter\": \"%s\", \"backend\": \"%s\"", gf_filter_describe(track->filter)->name,
           target->name);
    print_count("cases", count_cases(track));
    print_count("images", tally->images);
    print_count("samples", tally->samples);
    print_count("differences", tally->differences);
    printf(", \"seconds\": %.6f}", tally->seconds);
}

static void print_json(const gf_verify *verify, const gf_error *missing) {
    printf("{\"schema\": \"gpufilter-verify\", \"version\": 1");
    print_count("seed", verify->seed);
    printf(", \"table\": [");
    for (size_t i = 0; i < verify->track_count; i++)
        for (size_t t = 0; t < verify->target_count; t++) {
            printf("%s", i || t ? ", " : "");
            print_row(&verify->tracks[i], &verify->targets[t], &verify->tracks[i].tallies[t]);
        }
    printf("], \"not_verified\": ");
    if (missing->status)
        gf_json_text(stdout, missing->message);
    else
        printf("null");
    printf(", ");
    gf_json_names(stdout, "unread", verify->unread, verify->unread_count);
    printf(", \"findings\": [");
    const char *gap = "";
    for (size_t i = 0; i < verify->track_count; i++)
        for (size_t f = 0; f < verify->tracks[i].finding_count; f++) {
            printf("%s", gap);
            gf_json_text(stdout, verify->tracks[i].findings[f].text);
            gap = ", ";
        }
    printf("]");
    print_count("failed_runs", verify->failures);
    print_count("samples", verify->samples);
    print_count("differences", verify->differences);
    printf("}\n");
}

/* ---- the command ----------------------------------------------------------------------------- */

/* A filter of which nothing could be compared was not verified. */
static void check_all_ran(gf_verify *verify) {
    for (size_t i = 0; i < verify->track_count; i++)
        for (size_t t = 0; t < verify->target_count; t++) {
            gf_verify_track *track = &verify->tracks[i];
            char text[128];
            if (track->tallies[t].images)
                continue;
            snprintf(text, sizeof text, "%s on %s: no image was compared",
                     gf_filter_describe(track->filter)->name, verify->targets[t].name);
            verify->failures++;
            gf_verify_note(track, UINT64_MAX, text);
        }
}

/* A file that cannot be read does not stop the others: it is told, now and in the end. */
static gf_status verify_file(gf_verify *verify, const char *path, const gf_file_options *options,
                             gf_error *error) {
    gf_error refused;
    gf_verify_file file = {.name = strcmp(path, "-") == 0 ? "standard input" : path};
    if (gf_load_file(path, options, &file.format, &file.pixels, &refused)) {
        gf_cli_complain(&refused);
        verify->unread[verify->unread_count++] = path;
        return GF_OK;
    }
    const gf_status status = gf_verify_run(verify, &file, error);
    free(file.pixels);
    return status;
}

static uint32_t count_workers(const gf_cli_line *line) {
    const int64_t asked = gf_settings_int(line->common, "threads");
    return asked ? (uint32_t)asked : gf_cores();
}

static gf_status run(const gf_cli_line *line, gf_error *error) {
    const gf_file_options options = gf_command_file_options(line);
    const bool json = gf_settings_flag(line->filter, "json");
    gf_error missing = {0};
    gf_verify *verify = calloc(1, sizeof *verify);
    const char **unread = calloc(line->operand_count + 1, sizeof *unread);
    if (!verify || !unread) {
        free(verify);
        free(unread);
        return gf_set_error(error, GF_FAILED, "verify: out of memory");
    }
    verify->unread = unread;
    verify->seed = (uint64_t)gf_settings_int(line->filter, "seed");
    verify->goal = gf_settings_size(line->filter, "samples");
    verify->max_memory = options.max_memory;
    verify->devices = gf_settings_text(line->common, "device");
    verify->workers = count_workers(line);
    verify->progress = isatty(STDERR_FILENO) != 0;
    gf_status status =
        gf_verify_open(verify, gf_settings_text(line->filter, "backend"), &missing, error);
    for (size_t i = 0; i < line->operand_count && !status; i++)
        status = verify_file(verify, line->operands[i], &options, error);
    if (!status)
        status = gf_verify_run(verify, NULL, error);
    if (!status) {
        check_all_ran(verify);
        (json ? print_json : print_text)(verify, &missing);
        status =
            verify->differences || verify->failures || verify->unread_count ? GF_FAILED : GF_OK;
    }
    gf_verify_close(verify);
    free(verify);
    free(unread);
    return status;
}

static const char *const backends[] = {"all", "cpu", "cuda", NULL};

static const gf_param params[] = {
    {.name = "samples",
     .letter = 'n',
     .type = GF_PARAM_SIZE,
     .metavar = "N",
     .help = "samples to compare, at least, evenly over the filters",
     .fallback = "64M",
     .min = 1,
     .max = 1e18},
    {.name = "seed",
     .letter = 's',
     .type = GF_PARAM_INT,
     .metavar = "N",
     .help = "which images are made; the same seed makes the same ones",
     .fallback = "1",
     .min = 0,
     .max = 999999999999},
    {.name = "backend",
     .letter = 'b',
     .type = GF_PARAM_CHOICE,
     .metavar = "NAME",
     .help = "what is compared with golden",
     .fallback = "all",
     .choices = backends},
    {.name = "json", .type = GF_PARAM_FLAG, .help = "print one line of JSON"},
};

static const char *const shared[] = {"device",     "threads",   "raw",         "max-memory",
                                     "max-pixels", "max-chunk", "max-seconds", "no-sandbox",
                                     "color",      "help",      "version",     NULL};

const gf_command gf_verify_command = {
    .info = {.name = "verify",
             .summary = "compare every backend with golden, here, on this machine",
             .operands = "[FILE]...",
             .details =
                 "Runs every filter with every set of options worth testing on each backend of\n"
                 "this machine (cpu once for each level of vector instructions) and compares\n"
                 "all that comes out with golden, to the bit: on generated images of all types,\n"
                 "channels and sizes, with contents from noise and NaN to something like a\n"
                 "photograph, and on the files given. Small images make sure first that every\n"
                 "case has met every type and number of channels, so --samples is the least.\n"
                 "The exit code is 1 if anything differs.\n",
             .examples = "gpufilter verify\n"
                         "gpufilter verify --samples 10G\n"
                         "gpufilter verify --backend cuda --seed 2 scan.png\n",
             .params = params,
             .param_count = sizeof params / sizeof params[0]},
    .shared = shared,
    .least = 0,
    .most = SIZE_MAX,
    .run = run,
};
