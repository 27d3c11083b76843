/* OpenCV process: runs bench/cpu_peer.py and communicates through two pipes. Every round runs both
 * sides: both are timed under the same machine load. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu.h"

struct bench_peer {
    pid_t pid;
    FILE *to, *from;
    char version[64];
};

static bench_peer *start(const char *python, const char *script) {
    int to[2], from[2];
    if (pipe(to) != 0)
        return NULL;
    if (pipe(from) != 0) {
        close(to[0]);
        close(to[1]);
        return NULL;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        const int null_device =
            open("/dev/null", O_WRONLY); /* hides the traceback of a Python without OpenCV */
        if (null_device >= 0)
            dup2(null_device, 2);
        close(to[0]);
        close(to[1]);
        close(from[0]);
        close(from[1]);
        execlp(python, python, script, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    bench_peer *peer = calloc(1, sizeof *peer);
    if (!peer || pid < 0) {
        close(to[1]);
        close(from[0]);
        free(peer);
        return NULL;
    }
    peer->pid = pid;
    peer->to = fdopen(to[1], "w");
    peer->from = fdopen(from[0], "r");
    if (fgets(peer->version, sizeof peer->version, peer->from)) {
        peer->version[strcspn(peer->version, "\n")] = 0;
        return peer;
    }
    bench_peer_close(peer);
    return NULL;
}

bench_peer *bench_peer_open(const char *script) {
    /* A local Python may hide the one that the OpenCV package belongs to. */
    static const char *const pythons[] = {"python3", "/usr/bin/python3"};
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof pythons / sizeof pythons[0]; i++) {
        bench_peer *peer = start(pythons[i], script);
        if (peer)
            return peer;
    }
    fprintf(stderr, "bench-cpu: OpenCV not found, not timed; install the package python3-opencv\n");
    return NULL;
}

const char *bench_peer_version(const bench_peer *peer) {
    return peer->version;
}

bool bench_peer_image(bench_peer *peer, int index, const gf_format *format, const gf_rows *rows) {
    const size_t row = gf_row_bytes(format);
    char reply[64];
    fprintf(peer->to, "image %d %s %llu %llu %u %llu\n", index, gf_type_name(format->type),
            (unsigned long long)format->height, (unsigned long long)format->width, format->channels,
            (unsigned long long)(row * format->height));
    for (uint64_t y = 0; y < format->height; y++)
        fwrite(gf_row(rows, y), 1, row, peer->to);
    return fflush(peer->to) == 0 && fgets(reply, sizeof reply, peer->from) &&
           strcmp(reply, "ok\n") == 0;
}

double bench_peer_time(bench_peer *peer, const char *work) {
    char reply[1024];
    fprintf(peer->to, "time %s\n", work);
    if (fflush(peer->to) != 0 || !fgets(reply, sizeof reply, peer->from))
        return -1;
    return strtod(reply, NULL);
}

void bench_peer_close(bench_peer *peer) {
    if (!peer)
        return;
    fclose(peer->to);
    fclose(peer->from);
    waitpid(peer->pid, NULL, 0);
    free(peer);
}
