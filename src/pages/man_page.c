/* The page of a filter or a command. */
#include <stdio.h>
#include <string.h>

#include "about.h"
#include "man.h"
#include "roff.h"
#include "template.h"

static void put_head(const void *context) {
    const subject *s = context;
    char name[64];

    snprintf(name, sizeof name, "gpufilter-%s", s->info->name);
    man_head(name, "1");
}

static void put_name(const void *context) {
    const subject *s = context;

    printf(".Nm gpufilter-%s\n.Nd %s\n", s->info->name, s->info->summary);
}

/* ---- synopsis -------------------------------------------------------------------------------- */

/* "[FILE]..." */
static void put_operand(const char *word, size_t size) {
    const bool optional = *word == '[';
    const size_t name = strcspn(word + optional, "]. ");

    roff_macro(optional ? "Op Ar" : "Ar");
    roff_arg_part(word + optional, name);
    if (size > name + (optional ? 2 : 0))
        roff_call(optional ? "..." : "Ns ...");
    roff_end();
}

static void put_operands(const char *operands) {
    for (const char *word = operands; *word; word += strspn(word, " ")) {
        const size_t size = strcspn(word, " ");
        put_operand(word, size);
        word += size;
    }
}

static void put_call(const subject *s) {
    printf(".Nm gpufilter %s\n.Op Ar OPTION ...\n", s->info->name);
}

static void put_synopsis(const void *context) {
    const subject *s = context;
    const gf_param *folder = subject_shared(s, "out-dir");

    if (!subject_takes_many(s) || folder) {
        put_call(s);
        put_operands(s->info->operands);
    }
    if (!subject_takes_many(s))
        return;
    put_call(s);
    if (folder)
        printf(".Fl \\-%s Ar %s\n", "out\\-dir", folder->metavar);
    puts(".Ar IN Ns ...");
}

/* ---- description ----------------------------------------------------------------------------- */

static void put_details(const void *context) {
    const subject *s = context;

    roff_details(s->info->details);
}

static bool takes_files(const subject *s) {
    return s->is_filter || strstr(s->info->operands, "FILE");
}

static void put_files(const void *context) {
    const subject *s = context;

    if (!takes_files(s))
        return;
    puts(".Pp");
    if (s->is_filter && s->info->inputs == 2)
        roff_prose("Both images must have the same size, channels and type of samples.");
    else if (s->info->makes_image)
        puts(
            "The format of\n.Ar IN\nis read from its first bytes, that of\n.Ar OUT\nfrom its "
            "name.");
    printf(
        ".Xr gpufilter 1\nlists the formats that are read%s.\nA file named\n.Sq \\-\nis "
        "standard input%s.\n",
        s->info->makes_image ? " and written" : "", subject_shared(s, "force") ? " or output" : "");
    if (!subject_takes_many(s))
        return;
    puts(".Pp");
    if (s->info->makes_image)
        puts(
            "With\n.Fl \\-out\\-dir\nall operands are inputs, and each output goes into that "
            "folder.");
    else
        puts(
            "Of many inputs each is measured by itself.\nA CSV table has the file in its first "
            "column.");
    puts("One that fails does not stop the others, but makes the exit status 1.");
    if (s->info->makes_image)
        puts("What is finished is noted there, in\n.Pa .gpufilter\\-done ,\nfor\n.Fl \\-resume .");
}

/* ---- options --------------------------------------------------------------------------------- */

static void put_options(const void *context) {
    const subject *s = context;
    const gf_filter_info *info = s->info;

    /* Of a command, which has few, they are not told apart. */
    if (info->param_count && s->is_filter)
        printf(".Ss Options of %s\n", info->name);
    if (info->param_count)
        man_options(info->params, info->param_count, false);
    if (s->is_filter)
        puts(".Ss Common options");
    if (s->is_filter && info->param_count)
        puts("These are shared with other filters.");
    man_options(s->shared, s->shared_count, false);
    man_sizes(info->params, info->param_count, s->shared, s->shared_count);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void put_exits(const void *context) {
    const subject *s = context;

    puts(".Bl -tag -width \"128 + n\" -compact");
    for (const gf_about_exit *row = gf_about_exits; row->code; row++) {
        printf(".It %s\n", row->code);
        roff_prose(s->info->is_test ? row->test : row->most);
    }
    puts(".El");
}

static void put_examples(const void *context) {
    const subject *s = context;

    roff_literal(s->info->examples);
}

static void put_references(const void *context) {
    const subject *s = context;

    man_references(s->info->name, s->is_filter, !s->is_filter);
}

void man_page(const subject *s) {
    static const template_gap gaps[] = {{"head", put_head},
                                        {"name", put_name},
                                        {"synopsis", put_synopsis},
                                        {"details", put_details},
                                        {"files", put_files},
                                        {"options", put_options},
                                        {"exits", put_exits},
                                        {"examples", put_examples},
                                        {"references", put_references},
                                        {0}};

    template_fill("src/pages/page.1.in", gaps, s);
}
