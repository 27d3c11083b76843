/* Run a command and print its time and memory as one line of JSON on standard output. The output of
 * the command goes to LOG. The program is small because the peak RSS of a child is never below that
 * of its parent at the fork. */
#define _DEFAULT_SOURCE /* wait4 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int fail(const char *subject) {
    fprintf(stderr, "timed: %s: %s\n", subject, strerror(errno));
    return 1;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds(struct timeval t) {
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

/* Execute the command in the child. Never returns. 127 is the shell's exit code for a command that
 * cannot be run. */
static void exec_command(char **command, int log) {
    if (dup2(log, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0)
        execvp(command[0], command);
    dprintf(log, "timed: %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fputs("usage: timed LOG COMMAND [ARGUMENT]...\n", stderr);
        return 2;
    }
    int log = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (log < 0)
        return fail(argv[1]);
    double start = now();
    pid_t child = fork();
    if (child < 0)
        return fail("fork");
    if (child == 0)
        exec_command(argv + 2, log);
    int status;
    struct rusage used; /* of the child and all descendants that were waited for */
    while (wait4(child, &status, 0, &used) < 0)
        if (errno != EINTR)
            return fail("wait4");
    double wall = now() - start;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    printf(
        "{\"exit\": %d, \"wall_s\": %.6f, \"user_s\": %.6f, \"sys_s\": %.6f, \"rss_kib\": %ld}\n",
        code, wall, seconds(used.ru_utime), seconds(used.ru_stime), used.ru_maxrss);
    return 0;
}
