/* Files of extracted samples: formats, destinations and failures. */
#define _GNU_SOURCE

#include "pipe.h"
#include "sample_util.h"
#include "testing.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char grey8_csv[] =
    "x,y,channel,value\n0,0,grey,0\n2,0,grey,9\n0,1,grey,10\n1,2,grey,255\n";

static void assert_no_sink(const char *path, const char *format, gf_status status,
                           const char *part) {
    gf_sample_sink *sink;
    assert_int_equal(
        gf_sample_sink_open(path, &(gf_file_options){.sample_format = format}, &grey8, &sink, &why),
        status);
    assert_null(sink);
    assert_message(&why, part);
}

/* Run a function in a child process, where standard output and limits may be changed. The function
 * must not assert: a failed assertion would start the next test in the child. */
static void in_child(bool (*run)(void)) {
    int status;
    pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (child == 0)
        _exit(run() ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static gf_status try_file(const char *path, const char *format, const gf_sample_layout *layout,
                          gf_status (*write)(gf_sample_sink *sink, gf_error *error),
                          uint64_t count) {
    gf_sample_sink *sink;
    gf_status status =
        gf_sample_sink_open(path, &(gf_file_options){.sample_format = format}, layout, &sink, &why);
    if (status == GF_OK && gf_sample_sink_wants_count(sink))
        status = gf_sample_sink_count(sink, count, &why);
    if (status == GF_OK)
        status = write(sink, &why);
    if (status == GF_OK)
        status = gf_sample_sink_finish(sink, &why);
    if (status == GF_OK)
        status = gf_output_commit(gf_sample_sink_output(sink), &why);
    gf_sample_sink_close(sink);
    return status;
}

/* ---- outputs that cannot seek ---------------------------------------------------------------- */

/* Open both ends of a pipe in the directory. */
static gf_sample_sink *open_pipe(const char *format, int *reader) {
    *reader = test_pipe_reader(in_directory("pipe"));
    return open_sink(in_directory("pipe"), format, &grey8);
}

/* A pipe receives the same bytes as a file. */
TEST(writes_into_a_pipe) {
    for (size_t k = 0; k < 3; k++) {
        char got[1024];
        size_t size;
        int reader;
        gf_sample_sink *sink = open_sink(in_directory("file"), kinds[k], &grey8);
        assert_false(gf_sample_sink_wants_count(sink));
        put_grey8(sink);
        finish(sink);
        sink = open_pipe(kinds[k], &reader);
        assert_int_equal(gf_sample_sink_wants_count(sink), strcmp(kinds[k], "npy") == 0);
        if (gf_sample_sink_wants_count(sink))
            assert_ok(gf_sample_sink_count(sink, 4, &why));
        put_grey8(sink);
        finish(sink);
        AUTO(free) unsigned char *want = test_bytes(in_directory("file"), &size);
        assert_int_equal(read(reader, got, sizeof got), size);
        assert_memory_equal(got, want, size);
        close(reader);
        empty_directory(NULL);
    }
}

static bool many_to_standard_output(void) {
    const int file = open(in_directory("out"), O_WRONLY | O_CREAT, 0600);
    return dup2(file, STDOUT_FILENO) == STDOUT_FILENO &&
           try_file("-", "npy", &rgb16, write_many, MANY) == GF_OK;
}

static bool few_to_standard_output(void) {
    const int file = open(in_directory("out"), O_WRONLY | O_CREAT, 0600);
    return dup2(file, STDOUT_FILENO) == STDOUT_FILENO &&
           try_file("-", NULL, &grey8, write_grey8, 4) == GF_OK;
}

TEST(writes_standard_output) {
    size_t size;
    in_child(many_to_standard_output);
    gf_sample_sink *sink = open_sink(in_directory("file"), "npy", &rgb16);
    put_many(sink);
    finish(sink);
    AUTO(free) unsigned char *want = test_bytes(in_directory("file"), &size);
    assert_bytes(in_directory("out"), want, size);
    empty_directory(NULL);
    in_child(few_to_standard_output);
    assert_bytes(in_directory("out"), grey8_csv, sizeof grey8_csv - 1);
}

static bool to_a_terminal(void) {
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0 ||
        dup2(open(ptsname(terminal), O_RDWR | O_NOCTTY), STDOUT_FILENO) < 0)
        return true; /* no terminals available */
    return try_file("-", "npy", &grey8, write_grey8, 4) == GF_USAGE &&
           strstr(why.message, "standard output is a terminal") != NULL &&
           try_file("-", "csv", &grey8, write_grey8, 4) == GF_OK &&
           try_file("-", "json", &grey8, write_grey8, 4) == GF_OK;
}

TEST(writes_only_text_to_a_terminal) {
    in_child(to_a_terminal);
}

TEST(requires_the_count_first) {
    int reader;
    gf_sample_sink *sink = open_pipe("npy", &reader);
    assert_error(gf_sample_sink_finish(sink, &why), GF_FAILED,
                 "/pipe: an .npy file written to a pipe needs the number of samples first");
    assert_error(gf_sample_sink_write(sink, 0, (uint64_t[]){0}, "a", 1, &why), GF_FAILED,
                 "/pipe: an .npy file written to a pipe needs the number of samples first");
    assert_ok(gf_sample_sink_count(sink, 1, &why));
    assert_error(gf_sample_sink_count(sink, 1, &why), GF_FAILED,
                 "/pipe: the number of samples must be set once, before the first sample");
    put(sink, 0, (uint64_t[]){0}, "a", 1);
    finish(sink);
    close(reader);
}

TEST(rejects_a_wrong_count) {
    for (size_t k = 0; k < 3; k++)
        for (uint64_t announced = 3; announced <= 5; announced += 2) {
            char part[64];
            gf_sample_sink *sink = open_sink(in_directory("a"), kinds[k], &grey8);
            assert_ok(gf_sample_sink_count(sink, announced, &why));
            put_grey8(sink);
            assert_int_equal(gf_sample_sink_finish(sink, &why), GF_FAILED);
            snprintf(part, sizeof part, "/a: expected %" PRIu64 " samples, got 4", announced);
            assert_message(&why, part);
            gf_sample_sink_close(sink);
            assert_int_equal(count_files(false), 0);
        }
    gf_sample_sink *sink = open_sink(in_directory("late"), "csv", &grey8);
    put_grey8(sink);
    assert_int_equal(gf_sample_sink_count(sink, 4, &why), GF_FAILED);
    gf_sample_sink_close(sink);
}

/* ---- complete or absent ---------------------------------------------------------------------- */

TEST(leaves_nothing_without_a_commit) {
    gf_sample_sink_close(NULL);
    for (size_t k = 0; k < 6; k++) {
        gf_sample_sink *sink = open_sink(in_directory("a"), kinds[k / 2], &rgb16);
        put_many(sink);
        if (k % 2 != 0)
            assert_ok(gf_sample_sink_finish(sink, &why));
        assert_int_equal(access(in_directory("a"), F_OK), -1);
        gf_sample_sink_close(sink);
        assert_int_equal(count_files(false), 0);
    }
}

TEST(keeps_existing_files_without_force) {
    gf_sample_sink *sink;
    put_bytes(in_directory("a.csv"), "old", 3);
    assert_no_sink(in_directory("a.csv"), NULL, GF_FAILED, "/a.csv: already exists");
    assert_bytes(in_directory("a.csv"), "old", 3);
    assert_ok(gf_sample_sink_open(in_directory("a.csv"), &(gf_file_options){.force = true}, &grey8,
                                  &sink, &why));
    put_grey8(sink);
    assert_bytes(in_directory("a.csv"), "old", 3);
    finish(sink);
    assert_bytes(in_directory("a.csv"), grey8_csv, sizeof grey8_csv - 1);
    assert_int_equal(count_files(false), 1);
}

/* A few samples fail in finish, many in write. */
TEST(reports_a_full_device) {
    if (access("/dev/full", W_OK) != 0)
        test_skip("/dev/full does not exist");
    for (size_t k = 0; k < 3; k++) {
        static const uint64_t positions[20000];
        static const uint16_t values[20000];
        gf_sample_sink *sink = open_sink("/dev/full", kinds[k], &rgb16);
        assert_ok(gf_sample_sink_count(sink, 1, &why));
        put(sink, 0, positions, values, 1);
        assert_error(gf_sample_sink_finish(sink, &why), GF_FAILED,
                     "/dev/full: cannot write: No space left on device");
        gf_sample_sink_close(sink);
        sink = open_sink("/dev/full", kinds[k], &rgb16);
        assert_ok(gf_sample_sink_count(sink, 20000, &why));
        assert_error(gf_sample_sink_write(sink, 0, positions, values, 20000, &why), GF_FAILED,
                     "/dev/full: cannot write: No space left on device");
        gf_sample_sink_close(sink);
    }
}

/* Limit the size of files to 60 bytes, as on a full disk. */
static bool past_a_limit(void) {
    const struct rlimit limit = {60, 60};
    bool ok = signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &limit) == 0;
    for (size_t k = 0; k < 3 && ok; k++)
        ok = try_file(in_directory("a"), kinds[k], &grey8, write_grey8, 4) == GF_FAILED &&
             strstr(why.message, "/a: cannot write: File too large") != NULL;
    return ok;
}

TEST(leaves_nothing_after_a_failure) {
    in_child(past_a_limit);
    assert_int_equal(count_files(false), 0);
}

/* ---- formats by name ------------------------------------------------------------------------- */

TEST(chooses_the_format) {
    assert_no_sink(in_directory("a.png"), NULL, GF_USAGE,
                   "/a.png: unknown sample format; use the extension .csv, .npy or .json");
    assert_no_sink(in_directory("csv"), NULL, GF_USAGE, "/csv: unknown sample format");
    assert_no_sink(in_directory("a.csv/b"), NULL, GF_USAGE, "/b: unknown sample format");
    assert_no_sink(in_directory("a.csv"), "xml", GF_USAGE,
                   "/a.csv: unknown sample format 'xml'; use csv, npy or json");
    assert_no_sink("-", "png", GF_USAGE, "standard output: unknown sample format 'png'");
    assert_no_sink(test_directory, NULL, GF_FAILED, "is a directory; name a file in it");
    assert_no_sink(in_directory("none/a.csv"), NULL, GF_FAILED, "its directory does not exist");
    assert_int_equal(count_files(false), 0);
    gf_sample_sink *sink = open_sink(in_directory("A.CSV"), NULL, &grey8);
    put_grey8(sink);
    finish(sink);
    assert_bytes(in_directory("A.CSV"), grey8_csv, sizeof grey8_csv - 1);
    sink = open_sink(in_directory("b.csv"), "json", &grey8);
    put_grey8(sink);
    finish(sink);
    size_t size;
    AUTO(free) unsigned char *json = test_bytes(in_directory("b.csv"), &size);
    assert_memory_equal(json, "{\"schema\":", 10);
}

int main(void) {
    return test_main_in_directory();
}
