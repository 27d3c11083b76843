/* Commands info (formats and metadata of image files) and devices (processor and CUDA devices). */
#include <inttypes.h>

#include "commands.h"
#include "report.h"

static void print_file_text(const char *path, const gf_file_info *info) {
    char format[64];
    gf_format_text(&info->format, format, sizeof format);
    gf_cli_print_name(stdout, path, "standard input");
    printf(": ");
    for (const char *c = info->kind; *c; c++)
        putchar(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    printf(", %s (%s)", format, info->stored);
    gf_cli_print_bytes(stdout, gf_row_bytes(&info->format) * info->format.height, " of pixels");
    if (info->resolution_x > 0)
        printf(", %.6gx%.6g pixels per inch", info->resolution_x, info->resolution_y);
    if (info->orientation)
        printf(", orientation %" PRIu32, info->orientation);
    printf("%s%s\n", info->metadata[0] ? ", metadata: " : "", info->metadata);
}

static void print_file_json(const char *path, const gf_file_info *info) {
    printf("{\"schema\": \"gpufilter-info\", \"schema_version\": 2");
    gf_json_name(stdout, "file", path);
    gf_json_string(stdout, "kind", info->kind);
    gf_json_format(stdout, &info->format);
    gf_json_string(stdout, "stored", info->stored);
    gf_json_parts(stdout, "metadata", info->metadata, " ");
    if (info->orientation)
        gf_json_count(stdout, "orientation", info->orientation);
    const gf_value x = {.type = GF_VALUE_DOUBLE, .real = info->resolution_x};
    const gf_value y = {.type = GF_VALUE_DOUBLE, .real = info->resolution_y};
    char text[2][40];
    if (info->resolution_x > 0)
        printf(", \"pixels_per_inch\": [%s, %s]", gf_cli_cell_text(x, text[0]),
               gf_cli_cell_text(y, text[1]));
    printf("}\n");
}

static gf_status run_info(const gf_cli_line *line, gf_error *error) {
    char skipped[160];
    gf_cli_inputs inputs = {0};
    gf_status status = gf_cli_gather(gf_info_command.info.name, line, &inputs, error);
    gf_status worst = status ? status : inputs.failed ? GF_FAILED : GF_OK;
    for (size_t i = 0; i < inputs.count && !status; i++) {
        const char *path = inputs.list[i].path;
        gf_file_info info;
        gf_error one;
        if (gf_inspect_file(path, &line->options.files, &info, &one)) {
            gf_cli_print_error(&one);
            worst = one.status;
        } else {
            (line->options.json ? print_file_json : print_file_text)(path, &info);
        }
    }
    gf_cli_skipped_text(&inputs, skipped, sizeof skipped);
    if (!status && *skipped)
        fprintf(stderr, "%s\n", skipped);
    gf_cli_inputs_free(&inputs);
    return worst;
}

static const gf_param info_params[] = {
    GF_FLAG_PARAM("json", 0, "print JSON; one line per file"),
};

const gf_command gf_info_command = {
    .info = {.name = "info",
             .summary = "print format and metadata of image files",
             .operands = "FILE...",
             .details =
                 "Prints one line per file: file format, size, channels and sample type after\n"
                 "decoding, the stored sample format, resolution, EXIF orientation, and the names\n"
                 "of the metadata before the pixels. Most formats are read only up to the first\n"
                 "pixel. A file that cannot be read does not stop the others; the exit status is\n"
                 "then 1.\n",
             .examples = "gpufilter info *.png\n"
                         "gpufilter info --json - <scan.png\n",
             .inputs = 1,
             .params = info_params,
             .param_count = sizeof info_params / sizeof info_params[0]},
    .shared =
        "files-from null recursive raw page as channels max-memory max-pixels max-chunk "
        "max-seconds no-sandbox color help version",
    .run = run_info,
};

void gf_machine_text(const gf_machine *machine) {
    printf("cpu: %s\n", machine->processor);
    if (machine->none.status)
        printf("%s\n", machine->none.message);
    for (size_t i = 0; i < machine->count; i++) {
        const gf_device *device = &machine->devices[i];
        printf("cuda %" PRIu32 ": %s, compute capability %" PRIu32 ".%" PRIu32 ", %" PRIu32
               " multiprocessors, %.1f GB",
               device->index, device->name, device->capability / 10, device->capability % 10,
               device->multiprocessors, (double)device->memory_bytes * 1e-9);
        if (device->usable)
            printf(" (%.1f GB free), at %s\n", (double)device->free_bytes * 1e-9, device->bus);
        else
            printf(", at %s: unusable: compute capability below 7.5, or busy\n", device->bus);
    }
}

void gf_machine_json(const gf_machine *machine) {
    gf_json_string(stdout, "cpu", machine->processor);
    printf(", \"cuda\": [");
    for (size_t i = 0; i < machine->count; i++) {
        const gf_device *device = &machine->devices[i];
        printf("%s{\"index\": %" PRIu32, i ? ", " : "", device->index);
        gf_json_string(stdout, "name", device->name);
        gf_json_string(stdout, "bus", device->bus);
        printf(", \"capability\": \"%" PRIu32 ".%" PRIu32 "\"", device->capability / 10,
               device->capability % 10);
        gf_json_count(stdout, "multiprocessors", device->multiprocessors);
        gf_json_count(stdout, "memory_bytes", device->memory_bytes);
        gf_json_count(stdout, "free_bytes", device->free_bytes);
        printf(", \"usable\": %s}", device->usable ? "true" : "false");
    }
    putchar(']');
    gf_json_string(stdout, "cuda_error", machine->none.status ? machine->none.message : NULL);
}

gf_status gf_machine_query(gf_machine *machine, gf_error *error) {
    const size_t capacity = sizeof machine->devices / sizeof machine->devices[0];
    *machine = (gf_machine){0};
    gf_processor(machine->processor, sizeof machine->processor);
    const gf_status status =
        gf_devices(machine->devices, capacity, &machine->count, &machine->none);
    if (machine->count > capacity)
        machine->count = capacity;
    if (!status || status == GF_NO_BACKEND) /* reported in machine->none */
        return GF_OK;
    *error = machine->none;
    return status;
}

static gf_status run_devices(const gf_cli_line *line, gf_error *error) {
    gf_machine machine;
    const gf_status status = gf_machine_query(&machine, error);
    if (status)
        return status;
    if (line->options.json) {
        printf("{\"schema\": \"gpufilter-devices\", \"schema_version\": 2");
        gf_machine_json(&machine);
        printf("}\n");
    } else {
        gf_machine_text(&machine);
    }
    return GF_OK;
}

static const gf_param devices_params[] = {
    GF_FLAG_PARAM("json", 0, "print JSON; one line"),
};

const gf_command gf_devices_command = {
    .info = {.name = "devices",
             .summary = "list the processor and the CUDA devices",
             .operands = "",
             .details =
                 "Prints the processor of the cpu backend and the devices of the cuda backend, or\n"
                 "the reason why CUDA is not available. --device takes the device numbers.\n",
             .examples = "gpufilter devices\n"
                         "gpufilter devices --json\n",
             .params = devices_params,
             .param_count = sizeof devices_params / sizeof devices_params[0]},
    .shared = "color help version",
    .run = run_devices,
};
