#define _GNU_SOURCE /* memfd_create, nftw */
#include "fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/mman.h>
#include <sys/stat.h>

_Noreturn void fuzz_fail(const char *format, ...) {
    char text[1536];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "fuzz: %s\n", text);
    abort();
}

void fuzz_check_error(gf_status status, const gf_error *error) {
    FUZZ_CHECK(status >= GF_FAILED && status <= GF_NO_BACKEND, "status %d", (int)status);
    FUZZ_CHECK(error->status == status, "status %d, but %d in the error", (int)status,
               (int)error->status);
    FUZZ_CHECK(error->message[0] != '\0', "no message");
    for (const unsigned char *c = (const unsigned char *)error->message; *c != '\0'; c++) {
        FUZZ_CHECK(*c >= 0x20 && *c != 0x7f, "a control character in the message");
        FUZZ_CHECK(*c != 0xc2 || c[1] < 0x80 || c[1] > 0x9f,
                   "a two-byte control character in the message");
    }
}

char *fuzz_text(const fuzz_bytes *bytes) {
    char *text = malloc(bytes->size + 1);
    if (text == NULL)
        abort();
    memcpy(text, bytes->data, bytes->size);
    text[bytes->size] = '\0';
    return text;
}

/* ---- files ----------------------------------------------------------------------------------- */

static char directory[64];
static pid_t directory_owner;

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk) {
    return remove(path);
}

static void remove_own_directory(void) {
    if (directory_owner == getpid())
        (void)nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_path(const char *name) {
    static char paths[4][512];
    static int next;
    if (directory_owner == 0) {
        const bool memory = access("/dev/shm", W_OK) == 0;
        (void)snprintf(directory, sizeof directory, "%s/gpufilter-fuzz-XXXXXX",
                       memory ? "/dev/shm" : "/tmp");
        if (mkdtemp(directory) == NULL)
            abort();
        directory_owner = getpid();
        (void)atexit(remove_own_directory);
    }
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

outcome fuzz_load_file(const void *data, size_t size, const gf_limits *given, gf_open_source *open,
                       uint64_t strip) {
    static int file = -1;
    gf_input input = {.name = strdup("x"), .regular = true, .size = size};
    if (file < 0)
        file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size ||
        lseek(file, 0, SEEK_SET) != 0)
        abort();
    input.file = fdopen(dup(file), "rb");
    return load_input(&input, given, open, strip);
}

outcome fuzz_load_pipe(const void *data, size_t size, const gf_limits *given, gf_open_source *open,
                       uint64_t strip) {
    /* The stream only reads the data. */
    gf_input input = {.name = strdup("x"), .file = fmemopen((void *)(uintptr_t)data, size, "rb")};
    return load_input(&input, given, open, strip);
}

void fuzz_check_same(const outcome *a, const outcome *b, const char *what) {
    const bool a_accepted = a->error.status == GF_OK, b_accepted = b->error.status == GF_OK;
    FUZZ_CHECK(a_accepted == b_accepted, "%s: only one is accepted: %s", what,
               a_accepted ? b->error.message : a->error.message);
    if (a_accepted)
        FUZZ_CHECK(same_image(a, b), "%s: different pixels", what);
    else
        fuzz_check_error(a->error.status, &a->error);
}
