/* gpufilter(1): the gaps in its text. */
#include <stdio.h>
#include <string.h>

#include "about.h"
#include "man.h"
#include "roff.h"
#include "template.h"

static void put_head(const void *context) {
    (void)context;
    man_head("gpufilter", "1");
}

static void put_name(const void *context) {
    (void)context;
    printf(".Nm gpufilter\n.Nd %s\n", gf_about_summary);
}

/* The pages of all filters, or of all commands, with their summaries. */
static void put_summaries(bool filters) {
    char line[96];
    subject s;

    puts(".Bl -tag -width Ds -compact");
    for (size_t i = 0; subject_at(i, &s); i++) {
        if (s.is_filter != filters)
            continue;
        snprintf(line, sizeof line, ".It Xr gpufilter-%s 1", s.info->name);
        puts(line);
        roff_sentence(s.info->summary, true);
    }
    puts(".El");
}

static void put_filters(const void *context) {
    (void)context;
    put_summaries(true);
}

static void put_commands(const void *context) {
    (void)context;
    put_summaries(false);
}

static void put_options(const void *context) {
    gf_param params[GF_CLI_MAX_COMMON];
    const size_t count = subject_all_shared(params);

    (void)context;
    man_options(params, count, true);
    man_sizes(NULL, 0, params, count);
}

static void put_formats(const void *context) {
    (void)context;
    puts(".Bl -tag -width \"raw rows\" -compact");
    for (const gf_about_format *format = gf_about_formats; format->name; format++) {
        printf(".It %s\n", format->name);
        roff_prose(format->holds);
        if (format->read && !format->written)
            puts("Read only.");
        if (strchr(format->endings, ' ') || (format->written && !format->read)) {
            puts("Ends with");
            for (const char *ending = format->endings; *ending; ending += strspn(ending, " ")) {
                const size_t size = strcspn(ending, " ");
                printf(".Pa .%.*s%s\n", (int)size, ending, ending[size] ? " or" : " .");
                ending += size;
            }
        }
    }
    puts(".El");
}

/* Rows of the same text follow each other: their names come together. */
static void put_environment(const void *context) {
    (void)context;
    puts(".Bl -tag -width Ds");
    for (const gf_about_name *row = gf_about_environment; row->name;) {
        const char *what = row->what;
        printf(".It Ev %s", row->name);
        for (row++; row->name && !row->what; row++)
            printf(" , Ev %s", row->name);
        putchar('\n');
        roff_prose(what);
    }
    puts(".El");
}

static void put_exits(const void *context) {
    subject s;

    (void)context;
    puts(".Bl -tag -width \"128 + n\" -compact");
    for (const gf_about_exit *row = gf_about_exits; row->code; row++) {
        printf(".It %s\n", row->code);
        roff_prose(row->most);
    }
    puts(".El");
    for (size_t i = 0; subject_at(i, &s); i++) {
        if (!s.info->is_test)
            continue;
        printf(
            ".Pp\n.Xr gpufilter-%s 1\nis a test, and answers with its exit status:\n"
            ".Bl -tag -width \"128 + n\" -compact\n",
            s.info->name);
        for (const gf_about_exit *row = gf_about_exits; row->code; row++) {
            if (strcmp(row->most, row->test) == 0)
                continue;
            printf(".It %s\n", row->code);
            roff_prose(row->test);
        }
        puts(".El");
    }
}

static void put_references(const void *context) {
    (void)context;
    man_references(NULL, true, true);
}

/* Words of the texts that are variables. */
static const char *mark(const char *word, size_t size) {
    for (const gf_about_name *row = gf_about_environment; row->name; row++)
        if (strlen(row->name) == size && memcmp(row->name, word, size) == 0)
            return "Ev";
    return NULL;
}

void man_overview(void) {
    static const template_gap gaps[] = {{"head", put_head},
                                        {"name", put_name},
                                        {"filters", put_filters},
                                        {"commands", put_commands},
                                        {"options", put_options},
                                        {"formats", put_formats},
                                        {"environment", put_environment},
                                        {"exits", put_exits},
                                        {"references", put_references},
                                        {0}};

    roff_set_marker(mark);
    template_fill("src/pages/gpufilter.1.in", gaps, NULL);
}
