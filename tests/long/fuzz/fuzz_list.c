/* Lists of file names (--files-from), ended by newlines or NUL bytes: each name must be returned
 * once, in order, or the list be rejected. */
#include "fuzz.h"

#include "cli/commands.h"

/* Return the next name of the list; NULL at the end. */
static const uint8_t *next_name(const uint8_t **at, const uint8_t *end, int extension,
                                size_t *length) {
    while (*at < end) {
        const uint8_t *name = *at, *stop = memchr(name, extension, (size_t)(end - name));
        *length = (size_t)((stop != NULL ? stop : end) - name);
        *at = stop != NULL ? stop + 1 : end;
        if (*length != 0)
            return name;
    }
    return NULL;
}

static void check_names(const gf_cli_inputs *inputs, const uint8_t *data, size_t size,
                        int extension) {
    const uint8_t *at = data, *name;
    size_t length, i = 0;
    while ((name = next_name(&at, data + size, extension, &length)) != NULL) {
        FUZZ_CHECK(i < inputs->count, "more than %zu names", inputs->count);
        const char *got = inputs->list[i].path;
        if (length == 1 && *name == '-')
            got += strncmp(got, "./", 2) == 0 ? 2 : 0;
        FUZZ_CHECK(strlen(got) == length && memcmp(got, name, length) == 0, "name %zu: '%s'", i,
                   got);
        FUZZ_CHECK(inputs->list[i].relative <= strlen(inputs->list[i].path), "offset past the end");
        i++;
    }
    FUZZ_CHECK(i == inputs->count, "%zu names of %zu", inputs->count, i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const gf_command hist = gf_command_find("hist");
    const bool null = size != 0 && data[0] % 2 != 0;
    const char *path = fuzz_path("list");
    char *argv[] = {"--fail-fast", "--files-from", (char *)(uintptr_t)path, null ? "--null" : NULL,
                    NULL};
    gf_param params[GF_CLI_MAX_PARAMS];
    gf_cli_line line;
    gf_cli_inputs inputs = {0};
    gf_error error = {0};
    if (size < 2)
        return 0;
    put_bytes(path, data + 1, size - 1);
    gf_status status =
        gf_cli_parse(argv, &hist.info, params, gf_command_params(&hist, params), &line, &error);
    FUZZ_CHECK(status == GF_OK, "%s", error.message);
    status = gf_cli_gather("smooth", &line, &inputs, &error);
    if (status == GF_OK)
        check_names(&inputs, data + 1, size - 1, null ? 0 : '\n');
    else
        fuzz_check_error(status, &error);
    gf_cli_inputs_free(&inputs);
    gf_cli_line_free(&line);
    return 0;
}
