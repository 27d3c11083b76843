/* Order of syncs: data is synced before an output gets its name, its directory after. Each test
 * runs with unnamed files (O_TMPFILE) and with temporary names. */
#include "output_util.h"

/* Check the system calls that prepare and commit one output. */
static void assert_calls(const char *name, bool force, gf_sync sync, const char *nameless,
                         const char *temporary) {
    gf_output *output = open_as(name, force, sync);
    calls[0] = '\0';
    assert_ok(gf_output_prepare(output, &why));
    assert_ok(gf_output_commit(output, &why));
    gf_output_close(output);
    assert_string_equal(calls, named ? temporary : nameless);
}

TEST(sync_before_they_appear) {
    assert_calls("a", false, GF_SYNC_REPLACING, "L", "N");
    assert_calls("a", true, GF_SYNC_REPLACING, "DLR", "DR");
    assert_calls("a", true, GF_SYNC_NEVER, "LR", "R");
    assert_calls("a", true, GF_SYNC_ALWAYS, "FLRF", "FRF");
    assert_calls("b", true, GF_SYNC_REPLACING, "L", "N");
    assert_calls("c", false, GF_SYNC_ALWAYS, "FLF", "FNF");
    assert_calls("d", false, GF_SYNC_NEVER, "L", "N");
}

/* The target appears while the output is written or, with late, between prepare and commit. */
TEST(sync_before_they_replace_new_targets) {
    for (int late = 0; late < 2; late++) {
        gf_output *output = open_as("a", true, GF_SYNC_REPLACING);
        if (late)
            assert_ok(gf_output_prepare(output, &why));
        put_old("a");
        calls[0] = '\0';
        if (!late)
            assert_ok(gf_output_prepare(output, &why));
        assert_ok(gf_output_commit(output, &why));
        gf_output_close(output);
        assert_bytes(in_directory("a"), "", 0);
        if (late && !named)
            assert_string_equal(calls, "lDLR");
        else if (!late)
            assert_string_equal(calls, named ? "DnR" : "DlLR");
        assert_int_equal(unlink(in_directory("a")), 0);
    }
}

TEST(report_disk_errors) {
    static const char fails[] = {'D', 'F', 'F'};
    static const char *const messages[] = {"/a: cannot write: Input/output error",
                                           "/a: cannot write: Input/output error",
                                           "/a: is complete, but may be lost in a power failure: "
                                           "cannot fsync its directory: Input/output error"};
    for (unsigned i = 0; i < 3; i++) {
        put_old("a");
        gf_output *output = open_as("a", true, i == 0 ? GF_SYNC_REPLACING : GF_SYNC_ALWAYS);
        calls[0] = '\0';
        calls_setup.fails = fails[i];
        calls_setup.after = i / 2;
        calls_setup.cause = EIO;
        gf_status status = gf_output_prepare(output, &why);
        assert_int_equal(status, i < 2 ? GF_FAILED : GF_OK);
        if (status == GF_OK)
            status = gf_output_commit(output, &why);
        assert_int_equal(status, GF_FAILED);
        assert_message(&why, messages[i]);
        gf_output_close(output);
        assert_bytes(in_directory("a"), "old", i < 2 ? 3 : 0);
        assert_int_equal(count_files(false), 1);
    }
}

/* Pipes are not synced. */
TEST(do_not_sync_pipes) {
    const int reader = test_pipe_reader(in_directory("pipe"));
    gf_output *output = open_as("pipe", false, GF_SYNC_ALWAYS);
    assert_ok(gf_output_prepare(output, &why));
    assert_ok(gf_output_commit(output, &why));
    gf_output_close(output);
    assert_string_equal(calls, "f");
    close(reader);
}

int main(void) {
    return test_main_of_outputs();
}
