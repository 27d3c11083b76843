/* Which commands there are. */
#include <string.h>

#include "commands.h"

static const gf_command *const commands[] = {&gf_verify_command, &gf_bench_command,
                                             &gf_info_command, &gf_devices_command};

const gf_command *gf_command_at(size_t index) {
    return index < sizeof commands / sizeof commands[0] ? commands[index] : NULL;
}

const gf_command *gf_command_find(const char *name) {
    size_t i = 0;
    while (gf_command_at(i) && strcmp(commands[i]->info.name, name) != 0)
        i++;
    return gf_command_at(i);
}
