/* Run the program once; collect what it prints and the files that it leaves. */
#define _GNU_SOURCE

#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 64, SECONDS = 180 };

gf_tree case_files(const gf_case *what, const gf_tree *inputs) {
    gf_tree files = {0};
    char *text = need(strdup(what->files)), *rest = text;
    for (char *one; (one = strsep(&rest, " ")) != NULL;) {
        if (!*one)
            continue;
        char *name = strchr(one, '>');
        if (name)
            *name++ = 0;
        const gf_entry *input = tree_find(inputs, one);
        if (!input) {
            fprintf(stderr, "%s: no such input: %s\n", what->name, one);
            exit(2);
        }
        tree_add(&files, name ? name : one, input->mode, input->data, input->size);
    }
    free(text);
    return files;
}

static char **split(const char *program, char *text, char *more, char **list) {
    size_t count = 0;
    list[count++] = (char *)program;
    for (int pass = 0; pass < 2; pass++)
        for (char *one, *rest = pass ? more : text; (one = strsep(&rest, " ")) != NULL;)
            if (*one && count + 1 < MAX_ARGUMENTS)
                list[count++] = one;
    list[count] = NULL;
    return list;
}

/* Set up the child and execute the program. */
_Noreturn static void exec_program(const gf_stage_set *set, char **arguments, const int fds[3]) {
    char number[16];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* Duplicate first, because the descriptors may be among 0 to 2. */
    int high[4];
    for (int i = 0; i < 3; i++)
        high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 10);
    high[3] = fcntl(set->faults_fd, F_DUPFD, 10);
    for (int i = 0; i < 3; i++)
        if (dup2(high[i], i) < 0)
            _exit(126);
    snprintf(number, sizeof number, "%d", high[3]);
    setenv(FAULT_DESCRIPTOR, number, 1);
    if (chdir(set->directory) != 0)
        _exit(126);
    execv(set->program, arguments);
    _exit(127);
}

/* Read until the end of the file. */
static char *read_all(int fd, size_t *size) {
    size_t capacity = 1 << 16;
    char *text = need(malloc(capacity + 1));
    *size = 0;
    for (ssize_t got; (got = read(fd, text + *size, capacity - *size)) > 0;) {
        *size += (size_t)got;
        if (*size == capacity)
            text = need(realloc(text, (capacity *= 2) + 1));
    }
    text[*size] = 0;
    return text;
}

/* Wait for the child; kill it after SECONDS. */
static int wait_for_end(pid_t child) {
    const struct timespec longest = {.tv_sec = SECONDS};
    sigset_t ended;
    int status;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    while (waitpid(child, &status, WNOHANG) == 0)
        if (sigtimedwait(&ended, NULL, &longest) < 0 && errno == EAGAIN) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return -1;
        }
    return status;
}

static int input_pipe(const gf_stage_set *set, const gf_case *what) {
    int ends[2];
    if (!what->in)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    const gf_entry *input = tree_find(set->inputs, what->in);
    if (!input || pipe2(ends, O_CLOEXEC) != 0 ||
        write(ends[1], input->data, input->size) != (ssize_t)input->size)
        fatal(what->in);
    close(ends[1]);
    return ends[0];
}

gf_outcome run_program(const gf_stage_set *set, const gf_case *what, const char *more,
                       gf_fault_mode mode, uint64_t at, uint32_t lacking) {
    gf_outcome outcome = {.symbol = -1};
    char *arguments = need(strdup(what->arguments)), *list[MAX_ARGUMENTS],
         *added = need(strdup(more ? more : ""));
    int out[2], fds[3] = {input_pipe(set, what), -1, memfd_create("err", MFD_CLOEXEC)};
    if (what->flags & CASE_PIPE_OUT) {
        if (pipe2(out, O_CLOEXEC) != 0)
            fatal("pipe");
    } else {
        out[0] = out[1] = memfd_create("out", MFD_CLOEXEC);
    }
    fds[1] = out[1];
    split(set->program, arguments, added, list);

    gf_faults *faults = set->faults;
    faults->mode = mode;
    faults->at = at;
    faults->lacking = lacking;
    faults->main_process = 0;
    faults->classes = what->flags & CASE_CUDA ? 1u << FAULT_CUDA : ~(1u << FAULT_CUDA);
    atomic_store(&faults->calls, 0);
    atomic_store(&faults->injected, 0);
    atomic_store(&faults->symbol, 0);
    atomic_store(&faults->site, 0);
    atomic_store(&faults->cause, 0);
    atomic_store(&faults->reported, 0);
    const pid_t child = fork();
    if (child < 0)
        fatal("fork");
    if (child == 0)
        exec_program(set, list, fds);
    const int status = wait_for_end(child);
    outcome.code = status != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    outcome.signal = status == -1 ? SIGALRM : WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (what->flags & CASE_PIPE_OUT)
        close(out[1]);
    else
        (void)lseek(out[0], 0, SEEK_SET);
    (void)lseek(fds[2], 0, SEEK_SET);
    outcome.out = read_all(out[0], &outcome.out_size);
    outcome.err = read_all(fds[2], &outcome.err_size);
    close(out[0]);
    close(fds[0]);
    close(fds[2]);
    outcome.calls = atomic_load(&faults->calls);
    outcome.injected = atomic_load(&faults->injected);
    outcome.symbol = (int)atomic_load(&faults->symbol) - 1;
    outcome.site = atomic_load(&faults->site);
    outcome.cause = atomic_load(&faults->cause);
    outcome.reported = atomic_load(&faults->reported);
    outcome.after = tree_read(set->directory);
    free(arguments);
    free(added);
    return outcome;
}

void outcome_free(gf_outcome *outcome) {
    free(outcome->out);
    free(outcome->err);
    tree_free(&outcome->after);
}
