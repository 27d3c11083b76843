/* gpufilter devices: what this machine has to compute with. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "json.h"

#define MAX_DEVICES 64

static double gigabytes(uint64_t bytes) {
    return (double)bytes * 1e-9;
}

static void print_text(const gf_device *devices, size_t count, const gf_error *none) {
    char processor[64];
    gf_processor(processor, sizeof processor);
    printf("cpu: %s\n", processor);
    if (none->status)
        printf("%s\n", none->message);
    for (size_t i = 0; i < count; i++) {
        const gf_device *device = &devices[i];
        printf("cuda %" PRIu32 ": %s, compute capability %" PRIu32 ".%" PRIu32 ", %" PRIu32
               " multiprocessors, %.1f GB",
               device->index, device->name, device->capability / 10, device->capability % 10,
               device->processors, gigabytes(device->memory_bytes));
        if (device->usable)
            printf(" (%.1f GB free), at %s\n", gigabytes(device->free_bytes), device->bus);
        else
            printf(", at %s: not usable, too old (below 7.5) or taken\n", device->bus);
    }
}

static void print_count(const char *name, uint64_t count) {
    const gf_value value = {.type = GF_VALUE_UINT, .low = count};
    printf(", \"%s\": ", name);
    gf_json_value(stdout, &value);
}

static void print_json(const gf_device *devices, size_t count, const gf_error *none) {
    char processor[64];
    gf_processor(processor, sizeof processor);
    printf("{\"schema\": \"gpufilter-devices\", \"version\": 1, \"cpu\": ");
    gf_json_text(stdout, processor);
    printf(", \"cuda\": [");
    for (size_t i = 0; i < count; i++) {
        const gf_device *device = &devices[i];
        printf("%s{\"index\": %" PRIu32 ", \"name\": ", i ? ", " : "", device->index);
        gf_json_text(stdout, device->name);
        printf(", \"bus\": ");
        gf_json_text(stdout, device->bus);
        printf(", \"capability\": \"%" PRIu32 ".%" PRIu32 "\"", device->capability / 10,
               device->capability % 10);
        print_count("multiprocessors", device->processors);
        print_count("memory_bytes", device->memory_bytes);
        print_count("free_bytes", device->free_bytes);
        printf(", \"usable\": %s}", device->usable ? "true" : "false");
    }
    printf("], \"why_no_cuda\": ");
    if (none->status)
        gf_json_text(stdout, none->message);
    else
        printf("null");
    printf("}\n");
}

static gf_status run(const gf_cli_line *line, gf_error *error) {
    gf_device *devices = calloc(MAX_DEVICES, sizeof *devices);
    if (!devices)
        return gf_cli_fail(error, GF_FAILED, "devices: out of memory");
    size_t count = 0;
    gf_error none = {0};
    gf_status status = gf_devices(devices, MAX_DEVICES, &count, &none);
    count = count < MAX_DEVICES ? count : MAX_DEVICES;
    if (status == GF_OK || status == GF_NO_BACKEND) {
        if (gf_settings_flag(line->filter, "json"))
            print_json(devices, count, &none);
        else
            print_text(devices, count, &none);
        status = GF_OK; /* that there is none is an answer */
    } else {
        *error = none;
    }
    free(devices);
    return status;
}

static const gf_param params[] = {
    {.name = "json", .type = GF_PARAM_FLAG, .help = "print one line of JSON"},
};
static const char *const shared[] = {"help", "version", NULL};

const gf_command gf_devices_command = {
    .info = {.name = "devices",
             .summary = "list the processor and the CUDA devices",
             .operands = "",
             .details = "What the cpu and cuda backends find here, or why there is no CUDA.\n"
                        "The numbers of the devices are those for --device.\n",
             .examples = "gpufilter devices\n"
                         "gpufilter devices --json\n",
             .params = params,
             .param_count = sizeof params / sizeof params[0]},
    .shared = shared,
    .least = 0,
    .most = 0,
    .run = run,
};
