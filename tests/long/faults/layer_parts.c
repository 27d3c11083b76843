/* Reads and writes, which may also transfer a part of the data. */
#define _GNU_SOURCE

#include "layer_inside.h"

ssize_t __real_read(int, void *, size_t);
ssize_t __real_write(int, const void *, size_t);
ssize_t __real_pread(int, void *, size_t, off_t);
ssize_t __real_pwrite(int, const void *, size_t, off_t);
ssize_t __real_preadv(int, const struct iovec *, int, off_t);
ssize_t __real_writev(int, const struct iovec *, int);
ssize_t __wrap_read(int, void *, size_t);
ssize_t __wrap_write(int, const void *, size_t);
ssize_t __wrap_pread(int, void *, size_t, off_t);
ssize_t __wrap_pwrite(int, const void *, size_t, off_t);
ssize_t __wrap_preadv(int, const struct iovec *, int, off_t);
ssize_t __wrap_writev(int, const struct iovec *, int);

#define TRANSFER(symbol, size, call)                                                               \
    const gf_fault_decision decision =                                                             \
        gf_fault_decide(CALL_##symbol, (size) > 1 ? FAULT_CAN_BE_PARTIAL : 0, SITE);               \
    if (decision.action == FAULT_FAIL) {                                                           \
        errno = decision.cause;                                                                    \
        return -1;                                                                                 \
    }                                                                                              \
    if (decision.action == FAULT_PARTIAL)                                                          \
        size /= 2;                                                                                 \
    const ssize_t result = call;                                                                   \
    if (decision.action == FAULT_DIE)                                                              \
        gf_fault_die();                                                                            \
    return result

ssize_t __wrap_read(int fd, void *data, size_t size) {
    TRANSFER(read, size, __real_read(fd, data, size));
}

ssize_t __wrap_write(int fd, const void *data, size_t size) {
    TRANSFER(write, size, __real_write(fd, data, size));
}

ssize_t __wrap_pread(int fd, void *data, size_t size, off_t at) {
    TRANSFER(pread, size, __real_pread(fd, data, size, at));
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t at) {
    TRANSFER(pwrite, size, __real_pwrite(fd, data, size, at));
}

/* A partial transfer of vectors transfers half of the first one. */
ssize_t __wrap_preadv(int fd, const struct iovec *vectors, int count, off_t at) {
    struct iovec first = vectors[0];
    const size_t whole = first.iov_len;
    TRANSFER(preadv, first.iov_len,
             first.iov_len < whole ? __real_preadv(fd, &first, 1, at)
                                   : __real_preadv(fd, vectors, count, at));
}

ssize_t __wrap_writev(int fd, const struct iovec *vectors, int count) {
    struct iovec first = vectors[0];
    const size_t whole = first.iov_len;
    TRANSFER(writev, first.iov_len,
             first.iov_len < whole ? __real_writev(fd, &first, 1)
                                   : __real_writev(fd, vectors, count));
}
