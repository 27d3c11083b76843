/* What commands that read files are told about them. */
#include "commands.h"

const char *const gf_command_limits[] = {"raw",         "max-memory", "max-pixels", "max-chunk",
                                         "max-seconds", "no-sandbox", "color",      "help",
                                         "version",     NULL};

gf_file_options gf_command_file_options(const gf_cli_line *line) {
    return (gf_file_options){.max_pixels = gf_settings_size(line->common, "max-pixels"),
                             .max_memory = gf_settings_size(line->common, "max-memory"),
                             .max_chunk = gf_settings_size(line->common, "max-chunk"),
                             .max_seconds = (uint32_t)gf_settings_int(line->common, "max-seconds"),
                             .no_sandbox = gf_settings_flag(line->common, "no-sandbox"),
                             .raw = gf_cli_raw(line)};
}
