/* gpufilter devices: what this machine has to compute with. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "devices.h"
#include "json.h"

#define MAX_DEVICES 64

static double gigabytes(uint64_t bytes) {
    return (double)bytes * 1e-9;
}

void gf_machine_text(const gf_machine *machine) {
    printf("cpu: %s\n", machine->processor);
    if (machine->none.status)
        printf("%s\n", machine->none.message);
    for (size_t i = 0; i < machine->count; i++) {
        const gf_device *device = &machine->devices[i];
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

void gf_machine_json(const gf_machine *machine) {
    printf("\"cpu\": ");
    gf_json_text(stdout, machine->processor);
    printf(", \"cuda\": [");
    for (size_t i = 0; i < machine->count; i++) {
        const gf_device *device = &machine->devices[i];
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
    if (machine->none.status)
        gf_json_text(stdout, machine->none.message);
    else
        printf("null");
}

gf_status gf_machine_look(gf_machine *machine, gf_error *error) {
    *machine = (gf_machine){0};
    gf_processor(machine->processor, sizeof machine->processor);
    machine->devices = calloc(MAX_DEVICES, sizeof *machine->devices);
    if (!machine->devices)
        return gf_set_error(error, GF_FAILED, "devices: out of memory");
    const gf_status status =
        gf_devices(machine->devices, MAX_DEVICES, &machine->count, &machine->none);
    if (machine->count > MAX_DEVICES)
        machine->count = MAX_DEVICES;
    if (!status || status == GF_NO_BACKEND) /* that there is none is an answer */
        return GF_OK;
    *error = machine->none;
    gf_machine_free(machine);
    return status;
}

void gf_machine_free(gf_machine *machine) {
    free(machine->devices);
    machine->devices = NULL;
}

static gf_status run(const gf_cli_line *line, gf_error *error) {
    gf_machine machine;
    const gf_status status = gf_machine_look(&machine, error);
    if (status)
        return status;
    if (gf_settings_flag(line->filter, "json")) {
        printf("{\"schema\": \"gpufilter-devices\", \"version\": 1, ");
        gf_machine_json(&machine);
        printf("}\n");
    } else {
        gf_machine_text(&machine);
    }
    gf_machine_free(&machine);
    return GF_OK;
}

static const gf_param params[] = {
    {.name = "json", .type = GF_PARAM_FLAG, .help = "print one line of JSON"},
};
static const char *const shared[] = {"color", "help", "version", NULL};

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
