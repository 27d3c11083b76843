/* Main function: select the command, print its error, set the exit code. */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "ranks.h"

/* Remove temporary files, then die of the signal. All signals are blocked in the handler, so that
 * none ends the process before all files are removed. If several threads receive a signal, only the
 * first one returns from gf_remove_temporaries. */
static void on_signal(int signal_number) {
    sigset_t only;
    gf_remove_temporaries();
    gf_cli_bar_hide();
    if (signal_number == SIGINT || signal_number == SIGTERM || signal_number == SIGHUP)
        gf_cli_progress_interrupted();
    /* SA_RESETHAND would restore the default action before the signal is blocked. A second signal
     * shortly after the first, as sent by timeout(1), would then end the process at once. */
    signal(signal_number, SIG_DFL);
    raise(signal_number);
    sigemptyset(&only);
    sigaddset(&only, signal_number);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    /* Reached as process 1 of a container: the kernel ignores its default actions. */
    _exit(128 + signal_number);
}

static void catch_signals(void) {
    /* All signals that end the process by default, except SIGKILL. */
    static const int fatal[] = {SIGHUP,  SIGINT,  SIGTERM,   SIGPIPE, SIGQUIT, SIGALRM,
                                SIGUSR1, SIGUSR2, SIGVTALRM, SIGPROF, SIGXCPU, SIGABRT,
                                SIGSEGV, SIGBUS,  SIGFPE,    SIGILL,  SIGTRAP, SIGSYS};
    struct sigaction action = {.sa_handler = on_signal};
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++) {
        struct sigaction before;
        /* Signals that the caller ignores, as with nohup, stay ignored. */
        if (sigaction(fatal[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(fatal[i], &action, NULL);
    }
    /* A write above the file size limit then fails with EFBIG, like any other failed write. */
    signal(SIGXFSZ, SIG_IGN);
}

static void prepare_process(void) {
    /* Open a substitute for each closed standard descriptor. Otherwise the next file opened would
     * get its number and be overwritten. The substitute has the opposite access mode, so that reads
     * and writes still fail. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
            (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
#ifdef __GLIBC__
    /* Keep freed memory in the process. Consecutive images allocate and free the same sizes;
     * without this, system calls for memory take a third of the time of a small image. */
    (void)mallopt(M_TRIM_THRESHOLD, 16 << 20);
    (void)mallopt(M_MMAP_THRESHOLD, 4 << 20);
#endif
    /* Let the CUDA driver create few channels to a device: it starts and ends 0.06 s sooner than
     * with its default of 8, and kernels of several streams still overlap. */
    (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "2", 0);
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
                              "%s: expected no operands, got %zu; see 'gpufilter %s --help'",
                              info->name, count, info->name);
    if (!status && !shown)
        status = gf_cli_check_common(info, &line, error);
    if (!command->shared)
        status = gf_cli_agree(status, error);
    if (info->is_test && status == GF_FAILED)
        status = GF_USAGE;
    if (!status && shown && gf_cli_ranks_root())
        line.options.help ? gf_cli_help_command(command, line.help_all) : gf_cli_version();
    else if (!status && !shown)
        status = command->filter ? gf_cli_filter(command->filter, &line, error)
                                 : command->run(&line, error);
    gf_cli_line_free(&line);
    return status;
}

static gf_status dispatch(int argc, char **argv, gf_error *error) {
    const char *command = argc > 1 ? argv[1] : "help";
    /* Only filters and their chains run on all ranks. */
    const gf_command one = gf_command_find(command);
    if (!gf_cli_ranks_root() && (!one.info.name || one.shared))
        return GF_OK;
    if (strcmp(command, "--version") == 0 || strcmp(command, "-V") == 0 ||
        strcmp(command, "version") == 0) {
        gf_cli_version();
        return GF_OK;
    }
    bool help = strcmp(command, "help") == 0;
    if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0 ||
        (help && (argc <= 2 || strcmp(argv[2], "help") == 0))) {
        gf_cli_help(strcmp(command, "--help") == 0);
        return GF_OK;
    }
    if (command[0] == '-')
        return gf_set_error(
            error, GF_USAGE,
            "%s: options follow the name of a filter or command; see 'gpufilter --help'", command);
    const char *name = help ? argv[2] : command;
    const gf_command found = gf_command_find(name);
    if (!found.info.name)
        return gf_cli_unknown_command(name, !help, error);
    if (!help)
        return run_command(&found, argv + 2, error);
    gf_cli_help_command(&found, true);
    return GF_OK;
}

int main(int argc, char **argv) {
    prepare_process();
    const bool launched = gf_cli_ranks()->launched;
    catch_signals(); /* after MPI_Init, which installs handlers of its own */
    gf_error error = {0};
    gf_status status = dispatch(argc, argv, &error);
    errno = 0;
    /* Report earlier write errors too, even if later writes succeeded. */
    if (!status && (fflush(stdout) != 0 || ferror(stdout))) {
        const gf_filter *filter = gf_filter_find(argc > 1 ? argv[1] : "");
        const bool is_test = filter && gf_filter_describe(filter)->is_test;
        /* For a test, exit code 1 means a difference. */
        status = gf_set_error(&error, is_test ? GF_USAGE : GF_FAILED,
                              "standard output: cannot write: %s",
                              errno ? strerror(errno) : "an earlier write failed");
    }
    /* No message: it has been printed, or there is none. */
    if (status && error.message[0] && gf_cli_ranks_root())
        gf_cli_print_error(&error);
    return launched ? gf_mpi_end((int)status) : (int)status;
}
