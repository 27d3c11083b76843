/* Named pipes: a thread that writes to one, and one that a test reads. */
#ifndef PIPE_H
#define PIPE_H

#include <stddef.h>

/* Thread that writes bytes to a pipe. */
typedef struct test_feeder test_feeder;

/* Create a pipe and start a thread that writes these bytes to it when it is opened for reading. The
 * bytes are copied, and the path too. */
test_feeder *test_feed(const char *path, const void *data, size_t size);
/* The same with the bytes of a file, `delay` milliseconds after the call. */
test_feeder *test_feed_file(const char *path, const char *from, unsigned delay);
/* Wait for the thread and remove the pipe. The thread ends also if the pipe was not opened, or not
 * read to its end. */
void test_feed_end(test_feeder *feeder);

/* Create a pipe and open it for reading. A read without data fails instead of waiting. */
int test_pipe_reader(const char *path);

#endif
