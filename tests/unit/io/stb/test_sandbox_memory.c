/* Private memory that a child in the sandbox can write. Each work function counts the bytes that it
 * writes until it is stopped. */

#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "io/stb/sandbox.h"
#include "sandbox_util.h"
#include "testing.h"

#define MIB ((size_t)1 << 20)

/* Size of each kind of memory of the parent. */
#define LARGE (64 * MIB)
/* Limit of a child's stack: 1 MiB on both sides of its start, and a margin. */
#define STACK_MAX (2 * MIB + MIB / 4)
/* Limit of a child's private memory: stack, thread-local variables, .data and .bss. */
#define PRIVATE_MAX (16 * MIB)

/* Skip a test: a sanitizer has private memory that the child may write. */
/* ---- work functions -------------------------------------------------------------------------- */

typedef struct range {
    uintptr_t begin, end;
} range;

/* Write one byte of each page from begin to end, and keep the values. */
static void writes_pages(void *context) {
    const range pages = *(const range *)context;
    shared->reached = 1;
    for (uintptr_t at = pages.begin; at < pages.end; at += 4096) {
        *(volatile unsigned char *)at = *(volatile unsigned char *)at;
        shared->counter += 4096;
    }
}

static int descend(const volatile char *above, uintptr_t start) {
    volatile char here[4096];
    here[0] = above[0];
    shared->counter = start - (uintptr_t)here;
    return shared->counter > 2 * LARGE ? 0 : descend(here, start) + here[0];
}

static void recurses_deeply(void *context) {
    volatile char first = 0;
    shared->reached = 1;
    shared->counter = (uint64_t)descend(&first, (uintptr_t)&first);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

TEST(limits_a_growing_stack) {
    if (GF_SANITIZED)
        skip();
    struct rlimit before, large;
    assert_int_equal(getrlimit(RLIMIT_STACK, &before), 0);
    large = before;
    large.rlim_cur = 2 * LARGE;
    if (before.rlim_max != RLIM_INFINITY && before.rlim_max < large.rlim_cur)
        test_skip("the limit of the stack is too low");
    assert_int_equal(setrlimit(RLIMIT_STACK, &large), 0);
    assert_int_equal(run(recurses_deeply, NULL, 60), GF_SANDBOX_STOPPED);
    assert_int_equal(setrlimit(RLIMIT_STACK, &before), 0);
    assert_in_range(shared->counter, MIB / 2, STACK_MAX);
}

static void *run_deep(void *end) {
    memset((void *)shared, 0, sizeof *shared);
    (void)gf_sandbox_run(recurses_deeply, NULL, &memory, 60, "x", end, NULL);
    return NULL;
}

TEST(limits_the_stack_of_a_thread) {
    if (GF_SANITIZED)
        skip();
    gf_sandbox_end end = GF_SANDBOX_DONE;
    pthread_attr_t large;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&large), 0);
    assert_int_equal(pthread_attr_setstacksize(&large, LARGE), 0);
    assert_int_equal(pthread_create(&thread, &large, run_deep, &end), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_attr_destroy(&large), 0);
    assert_int_equal(end, GF_SANDBOX_STOPPED);
    assert_in_range(shared->counter, MIB / 2, STACK_MAX);
}

/* Write a GIF of one colour. Each code represents one pixel more than the previous code, up to the
 * end of the table. stb recurses once per pixel of a code. */
static void put_deep_gif(const char *path) {
    enum { COLOURS = 3 * 256, CLEAR = 256, END = 257, LAST = 4095 };
    static const char head[] = "GIF89a\xff\x0e\x80\x07\xf7\0\0";
    static const char image[] = ",\0\0\0\0\xff\x0e\x80\x07\0\x08";
    static unsigned char file[8192];
    size_t at = sizeof head - 1, block;
    uint32_t bits = CLEAR, count = 18, width = 9; /* CLEAR and colour 0, 9 bits each */

    memcpy(file, head, at);
    memset(file + at, 7, COLOURS);
    at += COLOURS;
    memcpy(file + at, image, sizeof image - 1);
    block = at += sizeof image - 1;
    for (uint32_t code = END + 1; code <= LAST + 1; code++) {
        width += code >> width & (code <= LAST);
        bits |= (code <= LAST ? code : END) << count;
        count += width;
        for (; count >= 8 || (code > LAST && count > 0); count = count > 8 ? count - 8 : 0) {
            if (at == block || at - block > 255)
                block = at++;
            file[at++] = (unsigned char)bits;
            file[block]++;
            bits >>= 8;
        }
    }
    memcpy(file + at, "\0;", 2);
    put_bytes(path, file, at + 2);
}

/* Return the path, or NULL if the image is rejected. */
static void *open_image(void *path) {
    gf_source *source;
    if (gf_source_open(path, NULL, &source, NULL) != GF_OK)
        return NULL;
    source->ops->close(source);
    return path;
}

TEST(has_the_stack_that_stb_needs) {
    char path[4096];
    pthread_t thread;
    void *opened;
    (void)snprintf(path, sizeof path, "%s", in_directory("deep.gif"));
    put_deep_gif(path);
    assert_non_null(open_image(path));
    assert_int_equal(pthread_create(&thread, NULL, open_image, path), 0);
    assert_int_equal(pthread_join(thread, &opened), 0);
    assert_non_null(opened);
    (void)count_files(true);
}

/* ---- memory of the parent -------------------------------------------------------------------- */

/* Memory far from the stack is read-only, touched or not, in one block or in many. */
TEST(does_not_write_to_blocks) {
    if (GF_SANITIZED)
        skip();
    enum { PIECES = 512 };
    static unsigned char *pieces[PIECES];
    unsigned char *block = malloc(LARGE), *untouched = malloc(LARGE);
    assert_true(block != NULL && untouched != NULL);
    memset(block, 7, LARGE);
    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = test_alloc(LARGE / PIECES - 64);
        memset(pieces[i], 7, LARGE / PIECES - 64);
    }
    /* Private memory directly after shared memory is not .bss. */
    unsigned char *joined =
        mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(joined != MAP_FAILED &&
                mmap(joined, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED,
                     -1, 0) == joined);
    unsigned char *const starts[] = {block + 4 * MIB, untouched + 4 * MIB, pieces[PIECES / 2],
                                     joined + MIB};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        range pages = {(uintptr_t)starts[i], (uintptr_t)starts[i] + LARGE / PIECES - 64};
        assert_int_equal(run(writes_pages, &pages, 60), GF_SANDBOX_STOPPED);
        assert_int_equal(shared->counter, 0);
    }
    for (size_t i = 0; i < PIECES; i++)
        free(pieces[i]);
    free(block);
    free(untouched);
    assert_int_equal(munmap(joined, LARGE), 0);
}

/* Find the writable private mappings in /proc/self/maps. Return their number. */
static size_t find_private(range *found, size_t max) {
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[4500], rights[5];
    size_t count = 0;
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        range r;
        assert_int_equal(sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &r.begin, &r.end, rights),
                         3);
        if (rights[1] == 'w' && rights[3] == 'p') {
            assert_true(count < max);
            found[count++] = r;
        }
    }
    fclose(maps);
    return count;
}

static atomic_bool over;

static void *wait_for_end(void *context) {
    while (!over)
        (void)poll(NULL, 0, 1);
    return context;
}

/* Start children that write page after page until they are stopped. Each one starts 1 MiB after the
 * page that stopped its predecessor. */
TEST(uses_little_private_memory) {
    if (GF_SANITIZED)
        skip();
    static range found[1000];
    uint64_t all = 0, used = 0;
    pthread_attr_t large;
    pthread_t thread;
    unsigned char *block = test_alloc(LARGE);
    memset(block, 7, LARGE / 4);
    assert_int_equal(pthread_attr_init(&large), 0);
    assert_int_equal(pthread_attr_setstacksize(&large, LARGE), 0);
    assert_int_equal(pthread_create(&thread, &large, wait_for_end, NULL), 0);
    const size_t count = find_private(found, sizeof found / sizeof *found);
    for (size_t i = 0; i < count; i++) {
        range left = found[i];
        all += left.end - left.begin;
        while (left.begin < left.end) {
            (void)run(writes_pages, &left, 60);
            used += shared->counter;
            left.begin += shared->counter + MIB;
        }
    }
    over = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_attr_destroy(&large), 0);
    free(block);
    printf("private memory: %" PRIu64 " bytes, written by children: %" PRIu64 "\n", all, used);
    assert_true(all > 2 * LARGE);
    assert_in_range(used, 1, PRIVATE_MAX);
}

int main(void) {
    return test_main(&(test_fixture){map_shared, unmap_shared});
}
