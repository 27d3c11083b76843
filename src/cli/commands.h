/* The commands that are no filters. What they are called and which options they take is told as for
 * filters, so that the same parser and the same help serve them. */
#ifndef GF_CLI_COMMANDS_H
#define GF_CLI_COMMANDS_H

#include "cli.h"

typedef struct gf_command {
    gf_filter_info info;
    const char *const *shared; /* names of filters' options that it takes, too; NULL-terminated */
    size_t least, most;        /* operands */
    /* GF_FAILED without a message: what failed is told already. */
    gf_status (*run)(const gf_cli_line *line, gf_error *error);
} gf_command;

extern const gf_command gf_info_command, gf_devices_command, gf_verify_command, gf_bench_command;

const gf_command *gf_command_at(size_t index);       /* NULL past the end */
const gf_command *gf_command_find(const char *name); /* NULL if there is none */
/* The options that a command shares, in the order that it names them; returns how many. */
size_t gf_command_shared(const gf_command *command, gf_param params[GF_CLI_MAX_COMMON]);
gf_status gf_command_run(const gf_command *command, int argc, char **argv, gf_error *error);
void gf_command_help(const gf_command *command);

/* For commands that take the options in gf_command_limits: what they say. */
extern const char *const gf_command_limits[];
gf_file_options gf_command_file_options(const gf_cli_line *line);

#endif
