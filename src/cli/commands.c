/* Asking for a command's help, and running it. */
#include "commands.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

size_t gf_command_shared(const gf_command *command, gf_param params[GF_CLI_MAX_COMMON]) {
    gf_param common[GF_CLI_MAX_COMMON];
    const size_t common_count = gf_cli_common(&command->info, common);
    size_t count = 0;
    for (const char *const *name = command->shared; *name; name++)
        for (size_t i = 0; i < common_count && count < GF_CLI_MAX_COMMON; i++)
            if (strcmp(common[i].name, *name) == 0)
                params[count++] = common[i];
    return count;
}

void gf_command_help(const gf_command *command) {
    gf_param shared[GF_CLI_MAX_COMMON];
    gf_cli_help_command(&command->info, shared, gf_command_shared(command, shared));
}

static gf_status check_operands(const gf_command *command, const gf_cli_line *line,
                                gf_error *error) {
    const size_t count = line->operand_count;
    const char *name = command->info.name, *operands = command->info.operands;
    if (count >= command->least && count <= command->most)
        return GF_OK;
    return gf_set_error(error, GF_USAGE, "%s: takes %s, got %zu file%s; see 'gpufilter %s --help'",
                        name, operands[0] ? operands : "no files", count, count == 1 ? "" : "s",
                        name);
}

gf_status gf_command_run(const gf_command *command, int argc, char **argv, gf_error *error) {
    gf_param shared[GF_CLI_MAX_COMMON];
    gf_cli_line line;
    gf_status status = gf_cli_parse(argc, argv, &command->info, shared,
                                    gf_command_shared(command, shared), &line, error);
    if (!status && gf_settings_flag(line.common, "help"))
        gf_command_help(command);
    else if (!status && gf_settings_flag(line.common, "version"))
        gf_cli_version();
    else if (!status && !(status = check_operands(command, &line, error)))
        status = command->run(&line, error);
    gf_cli_line_free(&line);
    return status;
}
