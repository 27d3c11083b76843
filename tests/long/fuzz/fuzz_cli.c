/* The whole program in this process: a command line, and files for it. The exit code must be from 0
 * to 3; failures print lines; no temporary file may stay.
 *
 * An input consists of arguments, each ended by a NUL byte (an empty one ends the list),
 * followed by the contents of a.x and of standard input. b.png and c.ppm are valid images.
 * Slashes are removed from arguments, so that the program cannot write outside of the harness's
 * directory. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "fuzz.h"

#include "gpufilter.h"

int gf_program_main(int argc, char **argv);
extern void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

enum { MAX_ARGUMENTS = 24 };

static char home[256];
static int stderr_file, stderr_kept, directory_before;

static void put_pictures(void) {
    static const png_spec picture = {.width = 19, .height = 11, .color = 2, .depth = 8};
    static png_bytes file;
    if (file.data == NULL)
        png_make(&picture, &file, NULL, NULL);
    put_bytes("b.png", file.data, file.size);
    put_bytes("c.ppm", "P6\n2 2\n255\n0123456789ab", 23);
}

/* Make the working directory, and files for the standard streams outside of it. */
static void set_up(void) {
    (void)snprintf(home, sizeof home, "%s", fuzz_path("home"));
    directory_before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory_before < 0 || mkdir(home, 0777) != 0)
        abort();
    stderr_kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    stderr_file = open(fuzz_path("stderr"), O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
    const int in = open(fuzz_path("stdin"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (stderr_kept < 0 || stderr_file < 0 || dup2(in, STDIN_FILENO) < 0)
        abort();
    if (__sanitizer_set_report_fd != NULL)
        __sanitizer_set_report_fd((void *)(intptr_t)stderr_kept);
}

static void put_stdin(const void *data, size_t size) {
    if (ftruncate(STDIN_FILENO, 0) != 0 || pwrite(STDIN_FILENO, data, size, 0) != (ssize_t)size)
        abort();
    clearerr(stdin);
    (void)fseek(stdin, 0, SEEK_SET);
}

/* Run the program; discard standard output and write standard error to a file. */
static int run(int argc, char **argv) {
    const int kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void)fflush(stdout);
    if (ftruncate(stderr_file, 0) != 0 || dup2(nowhere, STDOUT_FILENO) < 0 ||
        dup2(stderr_file, STDERR_FILENO) < 0)
        abort();
    const int code = gf_program_main(argc, argv);
    (void)fflush(stdout);
    (void)dup2(kept, STDOUT_FILENO);
    (void)dup2(stderr_kept, STDERR_FILENO);
    (void)close(kept);
    (void)close(nowhere);
    return code;
}

/* Check that standard error consists of lines of text, with one for the failure. */
static void check_stderr(int code, const char *command) {
    static char text[1 << 16];
    const ssize_t size = pread(stderr_file, text, sizeof text - 1, 0);
    const bool test = strcmp(command, "compare") == 0;
    if (size < 0)
        abort();
    text[size] = '\0';
    FUZZ_CHECK(code >= 0 && code <= 3, "exit code %d", code);
    FUZZ_CHECK(code == 0 || size != 0 || (test && code == 1), "exit code %d without a message",
               code);
    FUZZ_CHECK(size == 0 || text[size - 1] == '\n', "an incomplete line: %s", text);
    for (ssize_t i = 0; i < size; i++)
        FUZZ_CHECK((unsigned char)text[i] >= 0x20 || text[i] == '\n', "a control character: %s",
                   text);
    int failures = 0;
    for (const char *at = text; (at = strstr(at, "gpufilter: ")) != NULL; at++)
        failures += at == text || at[-1] == '\n';
    if (code == 2 && !test)
        FUZZ_CHECK(failures >= 1, "no message for an invalid command: %s", text);
}

/* Empty a directory; fail if it contains a temporary file. */
static void clean(const char *path) {
    DIR *directory = opendir(path);
    struct dirent *entry;
    char below[1024];
    if (directory == NULL)
        return;
    while ((entry = readdir(directory)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        FUZZ_CHECK(strstr(name, ".tmp") == NULL || strstr(name, ".gpufilter-") == NULL,
                   "%s was left", name);
        (void)snprintf(below, sizeof below, "%s/%s", path, name);
        if (unlink(below) != 0) {
            clean(below);
            (void)rmdir(below);
        }
    }
    (void)closedir(directory);
}

/* Skip commands that take long or whose output depends on this machine. */
static bool is_run(const char *command) {
    return strcmp(command, "verify") != 0 && strcmp(command, "bench") != 0;
}

/* Remove slashes and `..`. --shard takes no path. */
static void keep_inside(char *argument) {
    if (strncmp(argument, "--shard", 7) == 0)
        return;
    for (char *c = argument; *c != '\0'; c++)
        if (*c == '/' || (*c == '.' && c[1] == '.'))
            *c = '_';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *argv[MAX_ARGUMENTS + 2] = {"gpufilter"};
    fuzz_bytes rest = {data, size};
    AUTO(free) char *text = fuzz_text(&rest);
    int argc = 1;
    if (home[0] == '\0')
        set_up();
    while (rest.size != 0 && argc < MAX_ARGUMENTS) {
        char *argument = text + (rest.data - data);
        const size_t length = strlen(argument);
        rest.data += length < rest.size ? length + 1 : length;
        rest.size -= length < rest.size ? length + 1 : length;
        if (length == 0)
            break;
        keep_inside(argument);
        argv[argc++] = argument;
    }
    if (argc > 1 && is_run(argv[1])) {
        if (chdir(home) != 0)
            abort();
        put_pictures();
        put_bytes("a.x", rest.data, rest.size);
        put_stdin(rest.data, rest.size);
        check_stderr(run(argc, argv), argv[1]);
        clean(".");
        if (fchdir(directory_before) != 0) /* the driver's paths are relative to it */
            abort();
    }
    return 0;
}
