/* Opening files: inputs are identified by their first bytes without consuming them, outputs by
 * their names. */
#include "io_util.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "io/file/input.h"

/* ---- input ----------------------------------------------------------------------------------- */

TEST(peeks_without_consuming) {
    static const char text[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    gf_input input;
    char got[64] = "";
    size_t count;
    put_bytes(in_directory("a"), text, 36);
    assert_ok(gf_input_open(&input, in_directory("a"), &why));
    assert_true(input.regular);
    assert_int_equal(input.size, 36);
    assert_int_equal(input.head_size, GF_PEEK);
    assert_memory_equal(input.head, text, GF_PEEK);
    for (size_t at = 0; at < 35; at += 5) {
        assert_ok(gf_input_read(&input, got, 5, &count, &why));
        assert_int_equal(count, 5);
        assert_memory_equal(got, text + at, 5);
        assert_int_equal(input.offset, at + 5);
        assert_ok(gf_input_read_at(&input, got, 10, at / 2, &why));
        assert_memory_equal(got, text + at / 2, 10);
    }
    assert_ok(gf_input_read(&input, got, 5, &count, &why));
    assert_int_equal(count, 1);
    assert_ok(gf_input_read(&input, got, 5, &count, &why));
    assert_int_equal(count, 0);
    assert_error(gf_input_read_at(&input, got, 10, 30, &why), GF_FAILED, "ends too early");
    gf_input_close(&input);
    gf_input_close(&input);
}

TEST(rejects_unreadable_inputs) {
    gf_input input;
    gf_source *source;
    assert_error(gf_input_open(&input, test_directory, &why), GF_FAILED, "is a directory");
    assert_open_fails(in_directory("none.png"), NULL,
                      "none.png: cannot open: No such file or directory");
    put_bytes(in_directory("a\nb.png"), "", 0);
    assert_error(gf_source_open(in_directory("a\nb.png"), NULL, &source, &why), GF_FAILED,
                 "b.png: the file is empty");
}

/* ---- choosing a format ----------------------------------------------------------------------- */

TEST(chooses_the_format) {
    const gf_format format = {1, 1, 1, GF_U8, false};
    gf_sink *sink;
    size_t size;
    for (size_t i = 0; gf_names(GF_NAMES_FORMAT)[i] != NULL; i++)
        assert_string_not_equal(gf_names(GF_NAMES_FORMAT)[i], "");
    assert_error(gf_sink_open(in_directory("out.xyz"), &format, NULL, NULL, 1, &sink, &why),
                 GF_USAGE,
                 "out.xyz: cannot infer the format from this name; use a known extension "
                 "such as .png, or --format");
    assert_int_equal(gf_sink_open(in_directory("png"), &format, NULL, NULL, 1, &sink, &why),
                     GF_USAGE);
    assert_int_equal(count_files(false), 0);
    const gf_file_options pam = {.write.format = "pam"};
    assert_ok(save_image(in_directory("x.png"), &format, "a", NULL, &pam, 1));
    AUTO(free) unsigned char *data = test_bytes(in_directory("x.png"), &size);
    assert_memory_equal(data, "P7\n", 3);
    const gf_file_options unknown = {.write.format = "webp"};
    assert_error(gf_sink_open(in_directory("y.png"), &format, NULL, &unknown, 1, &sink, &why),
                 GF_USAGE, "--format: cannot write 'webp'");
}

/* Write to standard output in a child, where it is a file. The default format there is PNG. */
TEST(writes_standard_output) {
    const gf_format format = {1, 1, 1, GF_U8, false};
    int status;
    size_t size;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int fd = open(in_directory("out"), O_WRONLY | O_CREAT, 0600);
        bool done = dup2(fd, STDOUT_FILENO) == STDOUT_FILENO &&
                    save_image("-", &format, "a", NULL, NULL, 1) == GF_OK;
        _exit(done ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    AUTO(free) unsigned char *data = test_bytes(in_directory("out"), &size);
    assert_memory_equal(data, "\x89PNG", 4);
}

int main(void) {
    return test_main_in_directory();
}
