/* The program's main under another name. It installs no signal handlers, so that libFuzzer or
 * replay.c catches a crash and saves the input. */
#define _GNU_SOURCE
#include <signal.h>

int gf_program_main(int argc, char **argv);

static int no_action(int number, const struct sigaction *action, struct sigaction *before) {
    return -1;
}

#define main gf_program_main
#define sigaction(number, action, before) no_action(number, action, before)
#include "../../../src/cli/main.c"
