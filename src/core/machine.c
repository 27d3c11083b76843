/* SIMD levels, CPU, pages and device lists of this machine, and the version of the library. */
#define _GNU_SOURCE /* madvise, sched_getaffinity */
#include "core/machine.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"
#include "core/image.h"

const char *const gf_simd_names[] = {"auto", "portable", "avx2", "avx512", "neon", NULL};

int gf_isa_available(gf_isa isa) {
    switch (isa) {
    case GF_ISA_PORTABLE:
        return 1;
#ifdef GF_X86_64
    case GF_ISA_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("bmi2");
    case GF_ISA_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("bmi2");
#endif
#ifdef GF_AARCH64
    case GF_ISA_NEON:
        return 1;
#endif
    default:
        return 0;
    }
}

gf_isa gf_isa_best(void) {
    gf_isa isa = GF_ISA_COUNT - 1;
    while (!gf_isa_available(isa))
        isa = (gf_isa)(isa - 1);
    return isa;
}

/* Return a number from a file; UINT64_MAX: "max", -1 or no file. *second: the next one, or 0. */
static uint64_t group_number(const char *directory, const char *name, uint64_t *second) {
    char path[4 * PATH_MAX], text[64], *end;
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "re");
    text[file ? fread(text, 1, sizeof text - 1, file) : 0] = 0;
    if (file)
        (void)fclose(file);
    const uint64_t number = strtoull(text, &end, 10);
    *second = strtoull(end, NULL, 10);
    return end == text ? UINT64_MAX : number;
}

/* Apply the limits of one group, of version 2 or 1. */
static void group_apply(gf_group_limits *limits, const char *directory) {
    uint64_t period, none, quota = group_number(directory, "cpu.max", &period);
    if (quota == UINT64_MAX) {
        quota = group_number(directory, "cpu.cfs_quota_us", &none);
        period = group_number(directory, "cpu.cfs_period_us", &none);
    }
    if (quota != UINT64_MAX && period)
        limits->cores = gf_min(limits->cores, quota / period + (quota % period != 0));
    const uint64_t memory = group_number(directory, "memory.max", &none),
                   older = group_number(directory, "memory.limit_in_bytes", &none);
    limits->memory = gf_min(limits->memory, gf_min(memory, older));
}

gf_group_limits gf_group_limits_read(const char *root) {
    gf_group_limits found = {UINT64_MAX, UINT64_MAX};
    char directory[3 * PATH_MAX], *line = NULL;
    size_t size = 0;
    (void)snprintf(directory, sizeof directory, "%s/proc/self/cgroup", root);
    FILE *file = fopen(directory, "re");
    /* NUMBER:CONTROLLERS:PATH; version 2 has no controllers. In a container, the path may be that
     * of the host: a group that does not exist here has no limits. */
    while (file && getdelim(&line, &size, '\n', file) > 0) {
        char *names = strchr(line, ':'), *path = names ? strchr(++names, ':') : NULL;
        if (!path || (path != names && !strstr(names, "cpu") && !strstr(names, "memory")))
            continue;
        *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        const int base = snprintf(directory, PATH_MAX, "%s/sys/fs/cgroup/%s", root, names);
        (void)snprintf(directory + base, sizeof directory - PATH_MAX, "%s", path);
        do {
            group_apply(&found, directory);
            path = strrchr(directory + base, '/');
            if (path)
                *path = 0;
        } while (path);
    }
    free(line);
    if (file)
        (void)fclose(file);
    return found;
}

static pthread_once_t limits_once = PTHREAD_ONCE_INIT;
static gf_group_limits limits; /* of this process; read once */

static void limits_init(void) {
    limits = gf_group_limits_read("");
}

uint64_t gf_default_memory(void) {
    pthread_once(&limits_once, limits_init);
    return limits.memory < 2 ? 1 : gf_min(limits.memory / 2, GF_DEFAULT_MAX_MEMORY);
}

uint32_t gf_cores(void) {
    cpu_set_t set;
    const bool known = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0;
    const long online = known ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
    pthread_once(&limits_once, limits_init);
    const uint64_t max = gf_min(limits.cores, GF_MAX_THREADS);
    return (uint32_t)gf_min(online > 0 ? (uint64_t)online : 1, max);
}

void gf_processor(char *text, size_t size) {
    const uint32_t cores = gf_cores();
    snprintf(text, size, "%u core%s, %s", cores, cores == 1 ? "" : "s",
             gf_simd_names[1 + gf_isa_best()]);
}

void *gf_alloc_pages(size_t bytes) {
    const size_t small = 4096, large = (size_t)2 << 20, page = bytes < large ? small : large;
    const size_t rounded = (bytes / page + 1) * page;
    void *memory = rounded < bytes ? NULL : aligned_alloc(page, rounded);
    if (memory && page == large)
        (void)madvise(memory, rounded, MADV_HUGEPAGE); /* a hint */
    return memory;
}

static int process, processes = 1; /* 0 <= process < processes */

void gf_set_local_process(uint32_t index, uint32_t count) {
    process = (int)index;
    processes = count ? (int)count : 1;
}

gf_status gf_device_list_read(const char *text, int present, gf_device_list *devices,
                              gf_error *error) {
    gf_device_list all = {.count = 0};
    *devices = (gf_device_list){.count = 0};
    if (!text) {
        devices->list[devices->count++] = process % present;
        return GF_OK;
    }
    bool more = strcmp(text, "all") != 0;
    for (; !more && all.count < present && all.count < GF_MAX_DEVICES; all.count++)
        all.list[all.count] = all.count;
    for (const char *p = text; more; p++) {
        char *end;
        const long n = strtol(p, &end, 10);
        if (*p < '0' || *p > '9' || (*end && *end != ',') || n > 99999 ||
            all.count == GF_MAX_DEVICES)
            return gf_fail(error, GF_USAGE,
                           "--device '%s': must be device numbers such as 0 or 0,2, or all", text);
        if (n >= present)
            return gf_fail(error, GF_NO_BACKEND,
                           "cuda: no device %ld: there are %d; see nvidia-smi, or use --device all",
                           n, present);
        for (int i = 0; i < all.count; i++)
            if (all.list[i] == n)
                return gf_fail(error, GF_USAGE, "--device '%s': names device %ld twice", text, n);
        all.list[all.count++] = (int)n;
        more = *end;
        p = end;
    }
    for (int i = 0; i < all.count; i++)
        if (all.count >= processes ? i % processes == process : i == process % all.count)
            devices->list[devices->count++] = all.list[i];
    return GF_OK;
}

#define TEXT(macro) #macro
#define TEXT_OF(macro) TEXT(macro)

const char *gf_cuda_architectures(void) {
#ifdef GF_WITH_CUDA
    return TEXT_OF(GF_CUDA_ARCHITECTURES);
#else
    return "";
#endif
}

const char *gf_version(void) {
    return GF_VERSION_STRING;
}

bool gf_version_fits(int header) {
    return gf_version_compatible(GF_VERSION, header);
}
