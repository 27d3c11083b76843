/* The record of finished outputs: any bytes in its file are refused, or read; what is read is
 * written as a line that says the same; and reading on in a file that grows gives what reading it
 * at once does. */
#include "fuzz.h"

#include "cli/journal_file.h"
#include "cli/journal_line.h"

const char *const fuzz_words[] = {GF_CLI_JOURNAL_HEADER, "\n", " ", "\\n", "\\",
                                  "gpufilter-done 3",    NULL};

typedef struct lines {
    char *text;
    size_t size;
    uint64_t count;
} lines;

/* gf_cli_journal_keep: what was read, as lines of one form. */
static bool keep(void *context, const gf_cli_made *made) {
    lines *all = context;
    const size_t room = 2 * strlen(made->name) + GF_CLI_LINE_ROOM;
    gf_cli_made again;

    all->text = realloc(all->text, all->size + room);
    if (all->text == NULL)
        abort();
    const size_t length = gf_cli_line_write(made, all->text + all->size);
    char *copy = strndup(all->text + all->size, length - 1);
    FUZZ_CHECK(copy != NULL && length < room, "a line of %zu bytes in %zu", length, room);
    FUZZ_CHECK(gf_cli_line_read(copy, length - 1, &again), "cannot be read: %s", copy);
    FUZZ_CHECK(again.settings == made->settings && again.input == made->input &&
                   again.size == made->size && again.time == made->time &&
                   strcmp(again.name, made->name) == 0,
               "another one: %s", copy);
    free(copy);
    all->size += length;
    all->count++;
    return true;
}

static void put_file(const char *path, const void *data, size_t size, bool append) {
    FILE *file = fopen(path, append ? "ab" : "wb");

    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        abort();
}

/* A line of the input's bytes, so that not all are refused for their check sums. */
static void check_line(fuzz_bytes bytes) {
    gf_cli_made made = {0};
    char *line;

    for (int i = 0; i < 8; i++) {
        made.settings = made.settings << 8 | fuzz_byte(&bytes);
        made.input = made.input << 5 | fuzz_byte(&bytes);
        made.size = made.size << 7 | fuzz_byte(&bytes);
        made.time = (int64_t)((uint64_t)made.time << 8 | fuzz_byte(&bytes));
    }
    char *name = fuzz_text(&bytes);
    made.name = name;
    lines none = {0};
    (void)keep(&none, &made);
    line = none.text;
    free(line);
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = fuzz_path(GF_CLI_JOURNAL);
    gf_cli_journal_file whole = {.path = (char *)(uintptr_t)path}, grown = whole;
    const size_t cut = size != 0 ? data[size / 2] * size / 256 : 0;
    lines at_once = {0}, in_two = {0};
    gf_error error = {0}, late = {0};

    check_line((fuzz_bytes){data, size});
    put_file(path, data, cut, false);
    gf_status second = gf_cli_journal_file_read(&grown, keep, &in_two, &late);
    put_file(path, data + cut, size - cut, true);
    const gf_status first = gf_cli_journal_file_read(&whole, keep, &at_once, &error);
    if (second == GF_OK)
        second = gf_cli_journal_file_read(&grown, keep, &in_two, &late);
    if (first != GF_OK)
        fuzz_check_error(first, &error);
    FUZZ_CHECK(first == second, "read at once: %s; in two: %s", error.message, late.message);
    FUZZ_CHECK(at_once.count == in_two.count && at_once.size == in_two.size &&
                   (at_once.size == 0 || memcmp(at_once.text, in_two.text, at_once.size) == 0),
               "%d lines at once, %d in two", (int)at_once.count, (int)in_two.count);
    free(at_once.text);
    free(in_two.text);
    return 0;
}
