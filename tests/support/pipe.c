#include "pipe.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "testing.h"

struct test_feeder {
    char path[2048];
    unsigned char *data;
    size_t size;
    unsigned delay; /* milliseconds */
    pthread_t thread;
    atomic_bool ended;
};

static void wait_milliseconds(unsigned count) {
    nanosleep(&(struct timespec){count / 1000, (long)(count % 1000) * 1000000}, NULL);
}

/* The reader may close the pipe early: the signal must not end the process. */
static void *feed(void *context) {
    test_feeder *feeder = context;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    wait_milliseconds(feeder->delay);
    const int pipe = open(feeder->path, O_WRONLY);
    ssize_t more = pipe < 0 ? 0 : 1;
    for (size_t at = 0; more > 0 && at < feeder->size; at += (size_t)more)
        more = write(pipe, feeder->data + at, feeder->size - at);
    close(pipe);
    atomic_store(&feeder->ended, true);
    return NULL;
}

static test_feeder *start(const char *path, unsigned char *data, size_t size, unsigned delay) {
    test_feeder *feeder = test_zeros(sizeof *feeder);
    snprintf(feeder->path, sizeof feeder->path, "%s", path);
    feeder->data = data;
    feeder->size = size;
    feeder->delay = delay;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&feeder->thread, NULL, feed, feeder), 0);
    return feeder;
}

test_feeder *test_feed(const char *path, const void *data, size_t size) {
    unsigned char *copy = test_alloc(size + 1);
    memcpy(copy, data, size);
    return start(path, copy, size, 0);
}

test_feeder *test_feed_file(const char *path, const char *from, unsigned delay) {
    size_t size;
    unsigned char *data = test_bytes(from, &size);
    return start(path, data, size, delay);
}

void test_feed_end(test_feeder *feeder) {
    /* Both ends are open here: the thread can open the pipe, and what it writes is read. */
    const int pipe = open(feeder->path, O_RDWR | O_NONBLOCK);
    char rest[4096];
    assert_true(pipe >= 0);
    while (!atomic_load(&feeder->ended))
        if (read(pipe, rest, sizeof rest) <= 0)
            wait_milliseconds(1);
    pthread_join(feeder->thread, NULL);
    close(pipe);
    assert_int_equal(unlink(feeder->path), 0);
    free(feeder->data);
    free(feeder);
}

int test_pipe_reader(const char *path) {
    assert_int_equal(mkfifo(path, 0600), 0);
    const int reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    return reader;
}
