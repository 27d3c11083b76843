/* CPU benchmark: time every filter on an image in memory, on one core and on several, and compare
 * with memcpy, a read-only pass over the same bytes and, if installed, OpenCV.
 *
 *     bench-cpu [--size WxH] [--rounds N] [--simd LEVEL] [--only TEXT] [--threads N]
 *               [--peer SCRIPT] [--json FILE] [--statistic median|best]
 *
 * "of limit": time of the limit divided by time of the filter, both on one core. The limit is a
 * copy of the input for filters that make an image, and a read of it for filters that measure. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"

static const bench_case cases[] = {
    {"smooth", "", 3, GF_U8, BENCH_PHOTO, false, "filter2D"},
    {"smooth", "", 1, GF_U8, BENCH_PHOTO, false, "filter2D"},
    {"smooth", "", 4, GF_U8, BENCH_PHOTO, false, "filter2D"},
    {"smooth", "", 3, GF_U16, BENCH_PHOTO, false, "sepFilter2D-x"},
    {"smooth", "", 3, GF_F32, BENCH_PHOTO, false, "filter2D"},
    {"smooth", "gain=1.3 weight=0.5", 3, GF_U8, BENCH_PHOTO, false, "filter2D"},
    {"smooth", "radius=8", 3, GF_U8, BENCH_PHOTO, false, NULL},
    {"smooth", "axis=y", 3, GF_U8, BENCH_PHOTO, false, "filter2D-y"},
    {"smooth", "axis=xy", 3, GF_U8, BENCH_PHOTO, false, "sepFilter2D"},
    {"smooth", "axis=xy keep-brightness", 3, GF_U8, BENCH_PHOTO, false, "sepFilter2D"},
    {"gaussian", "sigma=1", 3, GF_U8, BENCH_PHOTO, false, "GaussianBlur-1"},
    {"gaussian", "sigma=1", 1, GF_U8, BENCH_PHOTO, false, "GaussianBlur-1"},
    {"gaussian", "sigma=1", 3, GF_U16, BENCH_PHOTO, false, "GaussianBlur-1"},
    {"gaussian", "sigma=1", 3, GF_F32, BENCH_PHOTO, false, "GaussianBlur-1"},
    {"gaussian", "sigma=2", 3, GF_U8, BENCH_PHOTO, false, "GaussianBlur-2"},
    {"gaussian", "sigma=2", 1, GF_U8, BENCH_PHOTO, false, "GaussianBlur-2"},
    {"gaussian", "sigma=2", 3, GF_U16, BENCH_PHOTO, false, "GaussianBlur-2"},
    {"gaussian", "sigma=2", 3, GF_F32, BENCH_PHOTO, false, "GaussianBlur-2"},
    {"gaussian", "sigma=5", 3, GF_U8, BENCH_PHOTO, false, "GaussianBlur-5"},
    {"gaussian", "sigma=5", 1, GF_U8, BENCH_PHOTO, false, "GaussianBlur-5"},
    {"gaussian", "sigma=5", 3, GF_U16, BENCH_PHOTO, false, "GaussianBlur-5"},
    {"gaussian", "sigma=5", 3, GF_F32, BENCH_PHOTO, false, "GaussianBlur-5"},
    {"box", "radius=2", 3, GF_U8, BENCH_PHOTO, false, "blur-2"},
    {"box", "radius=2", 1, GF_U8, BENCH_PHOTO, false, "blur-2"},
    {"box", "radius=2", 3, GF_U16, BENCH_PHOTO, false, "blur-2"},
    {"box", "radius=2", 3, GF_F32, BENCH_PHOTO, false, "blur-2"},
    {"box", "radius=20", 3, GF_U8, BENCH_PHOTO, false, "blur-20"},
    {"box", "radius=20", 3, GF_U16, BENCH_PHOTO, false, "blur-20"},
    {"box", "radius=200", 3, GF_U8, BENCH_PHOTO, false, "blur-200"},
    {"sharpen", "", 3, GF_U8, BENCH_PHOTO, false, "sharpen"},
    {"sharpen", "", 3, GF_F32, BENCH_PHOTO, false, "sharpen"},
    {"median", "", 3, GF_U8, BENCH_PHOTO, false, "medianBlur-1"},
    {"median", "", 3, GF_U16, BENCH_PHOTO, false, "medianBlur-1"},
    {"median", "", 3, GF_F32, BENCH_PHOTO, false, "medianBlur-1"},
    {"median", "radius=2", 3, GF_U8, BENCH_PHOTO, false, "medianBlur-2"},
    {"median", "radius=2", 3, GF_F32, BENCH_PHOTO, false, "medianBlur-2"},
    {"median", "radius=7", 3, GF_U8, BENCH_PHOTO, false, "medianBlur-7"},
    {"median", "radius=7", 3, GF_U8, BENCH_NOISE, false, "medianBlur-7"},
    {"median", "radius=7", 3, GF_U16, BENCH_PHOTO, false, NULL},
    {"median", "radius=7", 3, GF_F32, BENCH_PHOTO, false, NULL},
    {"median", "radius=25", 3, GF_U8, BENCH_PHOTO, false, "medianBlur-25"},
    {"erode", "", 3, GF_U8, BENCH_PHOTO, false, "erode-1"},
    {"erode", "radius=7", 3, GF_U8, BENCH_PHOTO, false, "erode-7"},
    {"erode", "radius=7", 3, GF_F32, BENCH_PHOTO, false, "erode-7"},
    {"normalize", "", 3, GF_U8, BENCH_PHOTO, false, "multiply"},
    {"normalize", "", 3, GF_U16, BENCH_PHOTO, false, "multiply"},
    {"normalize", "", 3, GF_F32, BENCH_PHOTO, false, "multiply"},
    {"axis-sum", "", 3, GF_U8, BENCH_PHOTO, false, "reduce-x"},
    {"axis-sum", "", 1, GF_U8, BENCH_PHOTO, false, "reduce-x"},
    {"axis-sum", "", 4, GF_U8, BENCH_PHOTO, false, "reduce-x"},
    {"axis-sum", "", 3, GF_U16, BENCH_PHOTO, false, "reduce-x"},
    {"axis-sum", "", 3, GF_F32, BENCH_PHOTO, false, "reduce-x"},
    {"axis-sum", "axis=y", 3, GF_U8, BENCH_PHOTO, false, "reduce-y"},
    {"axis-sum", "axis=y", 3, GF_U16, BENCH_PHOTO, false, "reduce-y"},
    {"axis-sum", "axis=y", 3, GF_F32, BENCH_PHOTO, false, "reduce-y"},
    {"hist", "channel=all", 3, GF_U8, BENCH_PHOTO, false, "calcHist-256"},
    {"hist", "channel=all", 3, GF_U8, BENCH_NOISE, false, "calcHist-256"},
    {"hist", "channel=all", 3, GF_U8, BENCH_FLAT, false, "calcHist-256"},
    {"hist", "channel=all bins=8", 3, GF_U8, BENCH_PHOTO, false, "calcHist-8"},
    {"hist", "channel=all bins=8", 3, GF_U8, BENCH_NOISE, false, "calcHist-8"},
    {"hist", "channel=all bins=8", 3, GF_U8, BENCH_FLAT, false, "calcHist-8"},
    {"hist", "", 3, GF_U8, BENCH_PHOTO, false, "gray+calcHist-256"},
    {"hist", "bins=8", 3, GF_U8, BENCH_PHOTO, false, "gray+calcHist-8"},
    {"hist", "", 1, GF_U8, BENCH_PHOTO, false, "calcHist-256"},
    {"hist", "", 4, GF_U8, BENCH_PHOTO, false, NULL},
    {"hist", "channel=all", 3, GF_U16, BENCH_PHOTO, false, "calcHist-256"},
    {"hist", "channel=all bins=65536", 3, GF_U16, BENCH_NOISE, false, NULL},
    {"hist", "", 3, GF_U16, BENCH_PHOTO, false, "gray+calcHist-256"},
    {"hist", "channel=all", 3, GF_F32, BENCH_PHOTO, false, "calcHist-256"},
    {"hist", "", 3, GF_F32, BENCH_PHOTO, false, "gray+calcHist-256"},
    {"hist", "channel=all range=10,200", 3, GF_U8, BENCH_PHOTO, false, NULL},
    {"hist", "per-row", 3, GF_U8, BENCH_PHOTO, false, NULL},
    {"hist", "bins=8 statistics", 3, GF_U8, BENCH_PHOTO, false, NULL},
    {"hist", "statistics", 3, GF_U16, BENCH_PHOTO, false, NULL},
    {"hist", "statistics", 3, GF_F32, BENCH_PHOTO, false, NULL},
    {"hist", "channel=all bins=8 extract=3", 3, GF_U8, BENCH_NOISE, false, NULL},
    {"hist", "bins=8 extract=3", 3, GF_U8, BENCH_PHOTO, false, NULL},
    {"hist", "bins=8 extract=3", 1, GF_U8, BENCH_NOISE, false, NULL},
    {"hist", "bins=8 extract=3", 1, GF_U16, BENCH_NOISE, false, NULL},
    {"hist", "bins=8 extract=3", 1, GF_F32, BENCH_NOISE, false, NULL},
    {"hist", "bins=8 extract=0,7", 1, GF_U8, BENCH_NOISE, false, NULL},
    {"hist", "bins=8 extract=all", 1, GF_U8, BENCH_NOISE, false, NULL},
    {"hist", "bins=8 extract=3 mask=-", 3, GF_U8, BENCH_PHOTO, false, NULL},
    {"dot", "", 3, GF_U8, BENCH_PHOTO, false, "3 norms"},
    {"dot", "", 1, GF_U8, BENCH_PHOTO, false, "3 norms"},
    {"dot", "", 3, GF_U16, BENCH_PHOTO, false, "3 norms"},
    {"dot", "", 3, GF_F32, BENCH_PHOTO, false, "3 norms"},
    {"compare", "", 3, GF_U8, BENCH_PHOTO, true, "norm-inf"},
    {"compare", "", 3, GF_U8, BENCH_PHOTO, false, "norm-inf"},
    {"compare", "", 3, GF_U16, BENCH_PHOTO, false, "norm-inf"},
    {"compare", "", 3, GF_F32, BENCH_PHOTO, false, "norm-inf"},
    {"compare", "diff=-", 3, GF_U8, BENCH_PHOTO, false, NULL},
};

static const char *const content_names[] = {"photo", "noise", "flat"};

static int usage(void) {
    fprintf(stderr,
            "usage: bench-cpu [--size WxH] [--rounds N] [--simd LEVEL] [--only TEXT]\n"
            "                 [--threads N] [--peer SCRIPT] [--json FILE]\n"
            "                 [--statistic median|best]\n");
    return 2;
}

/* Select the thread counts 1, 2 and max, without duplicates. */
static void choose_thread_counts(bench_options *options, uint32_t max) {
    const uint32_t wanted[BENCH_MAX_THREAD_COUNTS] = {1, 2, max};
    for (int i = 0; i < BENCH_MAX_THREAD_COUNTS; i++)
        if (wanted[i] <= max &&
            (i == 0 || wanted[i] > options->threads[options->thread_counts - 1]))
            options->threads[options->thread_counts++] = wanted[i];
}

static bool choose_isa(bench_options *options, const char *name) {
    for (int i = 0; i < GF_ISA_COUNT; i++)
        if (strcmp(name, gf_names(GF_NAMES_SIMD)[1 + i]) == 0 && gf_isa_available((gf_isa)i)) {
            options->isa = (gf_isa)i;
            return true;
        }
    fprintf(stderr, "bench-cpu: SIMD level '%s' is not available\n", name);
    return false;
}

static void describe(const bench_case *c, char *text, size_t size) {
    snprintf(text, size, "%s%s%s%s%s", c->filter, c->text[0] ? " " : "", c->text,
             c->same ? " (same image)" : "", c->content == BENCH_PHOTO ? "" : " ");
    if (c->content != BENCH_PHOTO)
        snprintf(text + strlen(text), size - strlen(text), "(%s)", content_names[c->content]);
}

static double limit(const bench_case *c, const bench_times *times) {
    return gf_filter_describe(gf_filter_find(c->filter))->makes_image ? times->copy[0]
                                                                      : times->read[0];
}

static void print_head(const bench_options *options, const bench_peer *peer) {
    char processor[128];
    gf_processor(processor, sizeof processor);
    printf("%llu x %llu, %s, SIMD %s, OpenCV %s; milliseconds, %s of %u rounds\n\n",
           (unsigned long long)options->width, (unsigned long long)options->height, processor,
           gf_names(GF_NAMES_SIMD)[1 + options->isa], peer ? bench_peer_version(peer) : "not found",
           options->best ? "best" : "medians", options->rounds);
    printf("%-44s %-7s %7s %7s %7s %8s", "filter", "format", "memcpy", "read", "1 core",
           "of limit");
    for (uint32_t t = 1; t < options->thread_counts; t++)
        printf(" %4ux", options->threads[t]);
    printf(" %8s", "engine");
    for (uint32_t t = 1; t < options->thread_counts; t++)
        printf(" %4ux", options->threads[t]);
    printf(" %8s %5s\n", "OpenCV", "gain");
}

static void print_case(const bench_case *c, const bench_options *options,
                       const bench_times *times) {
    char name[96], format[16];
    describe(c, name, sizeof name);
    snprintf(format, sizeof format, "%s x%u", gf_type_name(c->type), c->channels);
    printf("%-44s %-7s %7.2f %7.2f %7.2f %8.2f", name, format, times->copy[0], times->read[0],
           times->strip[0], limit(c, times) / times->strip[0]);
    for (uint32_t t = 1; t < options->thread_counts; t++)
        printf(" %5.2f", times->strip[0] / times->strip[t]);
    printf(" %8.2f", times->run[0]);
    for (uint32_t t = 1; t < options->thread_counts; t++)
        printf(" %5.2f", times->run[0] / times->run[t]);
    if (times->peer > 0)
        printf(" %8.2f %5.2f", times->peer, times->gain);
    printf("\n");
    fflush(stdout);
}

static void json_array(FILE *file, const char *name, const double *values, uint32_t n) {
    fprintf(file, ", \"%s\": [", name);
    for (uint32_t i = 0; i < n; i++)
        fprintf(file, "%s%.4f", i ? ", " : "", values[i]);
    fprintf(file, "]");
}

static void json_case(FILE *file, const bench_case *c, const bench_options *options,
                      const bench_times *times, bool first) {
    fprintf(file,
            "%s\n  {\"filter\": \"%s\", \"case\": \"%s\", \"type\": \"%s\", \"channels\": %u, "
            "\"content\": \"%s\", \"same\": %s",
            first ? "" : ",", c->filter, c->text, gf_type_name(c->type), c->channels,
            content_names[c->content], c->same ? "true" : "false");
    json_array(file, "memcpy_ms", times->copy, options->thread_counts);
    json_array(file, "read_ms", times->read, options->thread_counts);
    json_array(file, "strip_ms", times->strip, options->thread_counts);
    json_array(file, "engine_ms", times->run, options->thread_counts);
    fprintf(file, ", \"of_limit\": %.4f", limit(c, times) / times->strip[0]);
    if (times->peer > 0)
        fprintf(file, ", \"peer\": \"%s\", \"peer_ms\": %.4f, \"gain\": %.4f", c->peer, times->peer,
                times->gain);
    fprintf(file, "}");
}

static FILE *json_begin(const char *path, const bench_options *options, const bench_peer *peer) {
    FILE *file = path ? fopen(path, "w") : NULL;
    if (path && !file)
        perror(path);
    if (!file)
        return NULL;
    char processor[128];
    gf_processor(processor, sizeof processor);
    fprintf(file,
            "{\"version\": \"%s\", \"processor\": \"%s\", \"simd\": \"%s\", \"opencv\": \"%s\", "
            "\"width\": %llu, \"height\": %llu, \"rounds\": %u, \"threads\": [",
            gf_version(), processor, gf_names(GF_NAMES_SIMD)[1 + options->isa],
            peer ? bench_peer_version(peer) : "", (unsigned long long)options->width,
            (unsigned long long)options->height, options->rounds);
    for (uint32_t t = 0; t < options->thread_counts; t++)
        fprintf(file, "%s%u", t ? ", " : "", options->threads[t]);
    fprintf(file, "], \"results\": [");
    return file;
}

int main(int argc, char **argv) {
    bench_options options = {6000, 4000, .rounds = 9, .isa = gf_isa_best()};
    const char *only = "", *script = NULL, *json_path = NULL;
    uint32_t threads = gf_cores();
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        unsigned long long a = 0, b = 0;
        if (i + 1 == argc)
            return usage();
        if (strcmp(name, "--size") == 0 && sscanf(value, "%llux%llu", &a, &b) == 2 && a && b) {
            options.width = a;
            options.height = b;
        } else if (strcmp(name, "--rounds") == 0 && (a = strtoull(value, NULL, 10)) > 0 && a < 100)
            options.rounds = (uint32_t)a;
        else if (strcmp(name, "--threads") == 0 && (a = strtoull(value, NULL, 10)) > 0 && a < 1024)
            threads = (uint32_t)a;
        else if (strcmp(name, "--simd") == 0 && choose_isa(&options, value))
            continue;
        else if (strcmp(name, "--statistic") == 0 &&
                 (strcmp(value, "best") == 0 || strcmp(value, "median") == 0))
            options.best = value[0] == 'b';
        else if (strcmp(name, "--only") == 0)
            only = value;
        else if (strcmp(name, "--peer") == 0)
            script = value;
        else if (strcmp(name, "--json") == 0)
            json_path = value;
        else
            return usage();
    }
    choose_thread_counts(&options, threads);
    bench_peer *peer = script ? bench_peer_open(script) : NULL;
    FILE *json = json_begin(json_path, &options, peer);
    bool ok = !json_path || json, first = true;
    print_head(&options, peer);
    for (size_t i = 0; ok && i < sizeof cases / sizeof cases[0]; i++) {
        char name[96];
        bench_times times;
        describe(&cases[i], name, sizeof name);
        snprintf(name + strlen(name), sizeof name - strlen(name), " %s x%u",
                 gf_type_name(cases[i].type), cases[i].channels);
        if (!strstr(name, only))
            continue;
        ok = bench_check(&cases[i], &options) && bench_time(&cases[i], &options, peer, &times);
        if (!ok)
            break;
        print_case(&cases[i], &options, &times);
        if (json)
            json_case(json, &cases[i], &options, &times, first);
        first = false;
    }
    if (json) {
        fprintf(json, "\n]}\n");
        ok = fclose(json) == 0 && ok;
    }
    bench_peer_close(peer);
    return ok ? 0 : 1;
}
