/* Thread pool: every task runs once, no two tasks run at once with the same thread index, and
 * threads start only when needed. */
#define _GNU_SOURCE

#include <dirent.h>
#include <stdatomic.h>
#include <time.h>

#include "core/thread.h"
#include "testing.h"

enum { THREADS = 5, TASKS = 1000 };

typedef struct counting {
    atomic_int done[TASKS];
    atomic_int inside[THREADS];
    atomic_int clashes;
    struct timespec pause;
} counting;

static void count_task(void *context, uint32_t task, uint32_t thread) {
    counting *all = context;
    if (thread >= THREADS || atomic_fetch_add(&all->inside[thread], 1) != 0) {
        atomic_fetch_add(&all->clashes, 1);
        return;
    }
    atomic_fetch_add(&all->done[task], 1);
    if (all->pause.tv_nsec)
        nanosleep(&all->pause, NULL);
    atomic_fetch_sub(&all->inside[thread], 1);
}

static gf_work work_of(counting *all, uint32_t count) {
    return (gf_work){.run = count_task, .context = all, .count = count};
}

static void assert_done(const counting *all, uint32_t count, int times) {
    assert_int_equal(all->clashes, 0);
    for (uint32_t i = 0; i < TASKS; i++)
        if (all->done[i] != (i < count ? times : 0))
            fail_msg("task %u of %u ran %d times", i, count, all->done[i]);
}

static gf_pool *open_pool(uint32_t threads) {
    gf_pool *pool = NULL;
    assert_ok(gf_pool_open(threads, &pool, NULL));
    return pool;
}

/* Return the number of threads of this process, or -1 if /proc is unavailable. */
static int count_threads(void) {
    DIR *directory = opendir("/proc/self/task");
    int count = 0;
    if (!directory)
        return -1;
    for (const struct dirent *entry; (entry = readdir(directory));)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

TEST(runs_every_task_once) {
    const uint32_t counts[] = {0, 1, 2, THREADS, THREADS + 1, TASKS};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        gf_pool *pool = open_pool(THREADS), *own = open_pool(THREADS), *alone = open_pool(1);
        for (int times = 1; times <= 3; times++) {
            counting all = {0};
            gf_work first = work_of(&all, counts[i]), second = work_of(&all, counts[i]);
            gf_pool_submit(pool, &first);
            gf_pool_submit(pool, &second);
            gf_pool_wait(pool, &second);
            gf_pool_wait(pool, &first);
            assert_done(&all, counts[i], 2);
            gf_pool_run(own, &first);
            assert_done(&all, counts[i], 3);
            gf_pool_run(alone, &first);
            assert_done(&all, counts[i], 4);
        }
        gf_pool_close(pool);
        gf_pool_close(own);
        gf_pool_close(alone);
    }
}

TEST(starts_threads_on_demand) {
    counting all = {.pause = {.tv_nsec = 20000000}};
    gf_work one = work_of(&all, 1), two = work_of(&all, 2), many = work_of(&all, TASKS / 50);
    const int before = count_threads();
    if (before < 0)
        test_skip("no /proc/self/task");
    gf_pool *pool = open_pool(THREADS);
    assert_int_equal(count_threads(), before);
    gf_pool_run(pool, &one); /* runs in the caller */
    assert_int_equal(count_threads(), before);
    gf_pool_submit(pool, &one);
    assert_int_equal(count_threads(), before + 1);
    gf_pool_wait(pool, &one);
    gf_pool_submit(pool, &many);
    gf_pool_wait(pool, &many);
    assert_int_equal(count_threads(), before + THREADS);
    gf_pool_close(pool);
    pool = open_pool(THREADS);
    gf_pool_run(pool, &two); /* the caller runs one of the two tasks */
    assert_int_equal(count_threads(), before + 1);
    gf_pool_run(pool, &many);
    assert_int_equal(count_threads(), before + THREADS - 1);
    gf_pool_close(pool);
}

/* Ten tasks that pause 20 ms each, on any threads. */
TEST(adds_up_busy_times) {
    counting all = {.pause = {.tv_nsec = 20000000}};
    gf_work work = work_of(&all, 10);
    gf_pool *pool = open_pool(THREADS);
    assert_true(gf_pool_busy(pool) == 0);
    gf_pool_submit(pool, &work);
    gf_pool_wait(pool, &work);
    const double once = gf_pool_busy(pool);
    assert_true(once >= 0.2 && once < 2);
    gf_pool_submit(pool, &work);
    gf_pool_wait(pool, &work);
    assert_true(gf_pool_busy(pool) >= once + 0.2);
    gf_pool_close(pool);
}

int main(void) {
    return test_main(NULL);
}
