/* The gpufilter program: picks the command, prints the error, sets the exit code. */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "progress.h"
#include "ranks.h"

/* All signals are blocked here: none ends the process or comes in between before all is removed. Of
 * several threads that get one, only the first comes back from gf_remove_temporaries. */
static void on_signal(int signal_number) {
    sigset_t only;
    gf_remove_temporaries();
    gf_cli_progress_hide();
    if (signal_number == SIGINT || signal_number == SIGTERM || signal_number == SIGHUP)
        gf_cli_progress_interrupted();
    /* Not by SA_RESETHAND: that puts the default action back before the signal is blocked, and the
     * next one, a moment after, as timeout(1) sends it, would end the process at once. */
    signal(signal_number, SIG_DFL);
    raise(signal_number);
    sigemptyset(&only);
    sigaddset(&only, signal_number);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    /* Still there: the first process of a container is spared the default action. */
    _exit(128 + signal_number);
}

static void catch_signals(void) {
    /* Whatever ends the process by default and is not the work of SIGKILL. */
    static const int fatal[] = {SIGHUP,  SIGINT,  SIGTERM,   SIGPIPE, SIGQUIT, SIGALRM,
                                SIGUSR1, SIGUSR2, SIGVTALRM, SIGPROF, SIGXCPU, SIGABRT,
                                SIGSEGV, SIGBUS,  SIGFPE,    SIGILL,  SIGTRAP, SIGSYS};
    struct sigaction action = {.sa_handler = on_signal};
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++) {
        struct sigaction before;
        /* What the caller had ignored (nohup) stays ignored. */
        if (sigaction(fatal[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(fatal[i], &action, NULL);
    }
    /* Over the file size limit a write then fails with EFBIG and is reported like any other. */
    signal(SIGXFSZ, SIG_IGN);
}

/* With a standard descriptor closed, the next file opened would take its number and be written
 * over. The stand-in is open the wrong way round, so that using it fails as it did before. */
static void guard_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
            (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

static gf_status run_command(const gf_command *command, char **argv, gf_error *error) {
    const gf_filter_info *info = &command->info;
    gf_param params[GF_CLI_MAX_PARAMS];
    gf_cli_line line;
    gf_status status =
        gf_cli_parse(argv, info, params, gf_command_params(command, params), &line, error);
    const bool shown = line.options.help || line.options.version;
    const size_t count = line.operand_count;
    if (!status && !shown && count > 0 && !info->operands[0])
        status = gf_set_error(error, GF_USAGE,
                              "%s: takes no files, got %zu file%s; see 'gpufilter %s --help'",
                              info->name, count, count == 1 ? "" : "s", info->name);
    if (!status && !shown)
        status = gf_cli_check_common(info, &line, error);
    if (command->filter)
        status = gf_cli_ranks()->agree(status, error);
    if (info->is_test && status == GF_FAILED)
        status = GF_USAGE;
    if (!status && shown && gf_cli_ranks_first())
        line.options.help ? gf_cli_help_command(command) : gf_cli_version();
    else if (!status && !shown)
        status = command->filter ? gf_cli_filter(command->filter, &line, error)
                                 : command->run(&line, error);
    gf_cli_line_free(&line);
    return status;
}

static gf_status dispatch(int argc, char **argv, gf_error *error) {
    const char *command = argc > 1 ? argv[1] : "help";
    /* What is no filter is done once. */
    if (!gf_cli_ranks_first() && !gf_filter_find(command))
        return GF_OK;
    if (strcmp(command, "--version") == 0 || strcmp(command, "-V") == 0 ||
        strcmp(command, "version") == 0) {
        gf_cli_version();
        return GF_OK;
    }
    bool help = strcmp(command, "help") == 0;
    if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0 ||
        (help && (argc <= 2 || strcmp(argv[2], "help") == 0))) {
        gf_cli_help();
        return GF_OK;
    }
    if (command[0] == '-')
        return gf_set_error(error, GF_USAGE,
                            "%s: options follow the command's name; see 'gpufilter --help'",
                            command);
    const char *name = help ? argv[2] : command;
    const gf_command found = gf_command_find(name);
    if (!found.info.name)
        return gf_cli_unknown_command(name, !help, error);
    if (!help)
        return run_command(&found, argv + 2, error);
    gf_cli_help_command(&found);
    return GF_OK;
}

/* An image takes and gives back the same memory as the one before it: going to the system for it
 * each time takes a third of what a small image does. */
static void keep_memory(void) {
#ifdef __GLIBC__
    (void)mallopt(M_TRIM_THRESHOLD, 16 << 20);
    (void)mallopt(M_MMAP_THRESHOLD, 4 << 20);
#endif
}

/* What failed to be written earlier is lost, even if what came after it was written. */
static gf_status finish_output(const char *command, gf_error *error) {
    const gf_filter *filter = gf_filter_find(command);
    const bool is_test = filter && gf_filter_describe(filter)->is_test;
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return GF_OK;
    /* The exit code of a test that failed would be an answer. */
    return gf_set_error(error, is_test ? GF_USAGE : GF_FAILED, "standard output: %s",
                        errno ? strerror(errno) : "not all of it could be written");
}

int main(int argc, char **argv) {
    keep_memory();
    guard_descriptors();
    const gf_cli_peers *peers = gf_cli_ranks();
    catch_signals(); /* after MPI, which has handlers of its own */
    gf_error error = {0};
    gf_status status = dispatch(argc, argv, &error);
    if (!status)
        status = finish_output(argc > 1 ? argv[1] : "", &error);
    /* Without a message it has been printed, or there is nothing to print. */
    if (status && error.message[0] && gf_cli_ranks_first())
        gf_cli_complain(&error);
    return peers->end((int)status);
}
