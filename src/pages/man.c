/* The manual pages. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "about.h"
#include "pages.h"

/* ---- parts of every page -------------------------------------------------------------------- */

static void put_head(const char *name, const char *summary, const char *date, FILE *page) {
    fprintf(page,
            ".\\\" Made by build/pages from the descriptors in the source: change those, or "
            "src/pages.\n.Dd %s\n.Dt ",
            date);
    for (const char *c = name; *c; c++)
        fputc(toupper((unsigned char)*c), page);
    fprintf(page, " 1\n.Os \"gpufilter %s\"\n.Sh NAME\n.Nm %s\n.Nd %s\n", gf_version(), name,
            summary);
}

/* Write a phrase as a sentence. What is followed by a colon is a name and keeps its case. */
static void put_sentence(const char *phrase, FILE *page) {
    const bool name = phrase[strcspn(phrase, " ") - 1] == ':' || !isalpha((unsigned char)phrase[1]);
    const char *end = phrase + strlen(phrase);
    fprintf(page, "%c%s%s\n", name ? *phrase : toupper((unsigned char)*phrase), phrase + 1,
            end - phrase > 3 && strcmp(end - 3, "...") == 0 ? "" : ".");
}

/* Write "a, b and c", in bold. */
static void put_series(const char *const *words, size_t count, const char *last, FILE *page) {
    for (size_t i = 0; i < count; i++)
        fprintf(page, "%s`%s`", i == 0 ? "" : i + 1 < count ? ", " : last, words[i]);
}

/* Tell what an option may be and what it is by default, as far as that is known. */
static void put_values(const gf_param *param, FILE *page) {
    const bool range = param->type == GF_PARAM_INT || param->type == GF_PARAM_FLOAT;
    const bool list = param->type == GF_PARAM_LIST;
    size_t count = 0;
    while (param->choices && param->choices[count])
        count++;
    if (range)
        fprintf(page, "From %.15g to %.15g", param->min, param->max);
    else if (count)
        fputs(list ? "Some of " : "One of ", page);
    put_series(param->choices, count, list ? " and " : " or ", page);
    if (param->fallback)
        fprintf(page, "%s default is `%s`", range || count ? "; the" : "The", param->fallback);
    if (range || count || param->fallback)
        fputs(".\n", page);
    if (param->type == GF_PARAM_SIZE)
        fputs("The suffixes K, M, G and T stand for powers of 1024.\n", page);
}

/* Name the filters that have a shared option, unless all have it. */
static void put_owners(const char *option, FILE *page) {
    const char *names[64];
    size_t count = 0;
    subject s;
    for (size_t i = 0; subject_at(i, &s) && s.is_filter && count < 64; i++)
        if (subject_shares(&s, option))
            names[count++] = s.info->name;
    if (count == gf_filter_count())
        return;
    fputs("For ", page);
    put_series(names, count, " and ", page);
    fputs(".\n", page);
}

static void put_options(const gf_param *params, size_t count, bool with_owners, FILE *page) {
    for (const gf_param *param = params; param < params + count; param++) {
        fputs(".It Fl ", page);
        if (param->letter)
            fprintf(page, "%c , Fl ", param->letter);
        fputs("\\-", page);
        for (const char *c = param->name; *c; c++)
            fprintf(page, "%s%c", *c == '-' ? "\\" : "", *c);
        fprintf(page, "%s%s\n", param->metavar ? " Ar " : "", param->metavar ? param->metavar : "");
        put_sentence(param->help, page);
        put_values(param, page);
        if (with_owners)
            put_owners(param->name, page);
    }
}

static void put_codes(bool test, FILE *page) {
    for (const gf_about_exit *row = gf_about_exits; row->code; row++)
        fprintf(page, ".It %s\n%s\n", row->code, test ? row->test : row->most);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Refer to the pages of the filters, the commands, or both, except one (or NULL). */
static void put_references(const char *except, bool filters, bool commands, FILE *page) {
    const char *names[64] = {0};
    size_t count = 0;
    subject s;
    for (size_t i = 0; subject_at(i, &s) && count < sizeof names / sizeof names[0]; i++)
        if ((s.is_filter ? filters : commands) && (!except || strcmp(s.info->name, except) != 0))
            names[count++] = s.info->name;
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++)
        fprintf(page, ".Xr gpufilter-%s 1%s\n", names[i], i + 1 < count ? " ," : "");
}

/* ---- gpufilter(1) --------------------------------------------------------------------------- */

static void put_summaries(bool filters, FILE *page) {
    subject s;
    for (size_t i = 0; subject_at(i, &s); i++) {
        if (s.is_filter != filters)
            continue;
        fprintf(page, ".It Xr gpufilter-%s 1\n", s.info->name);
        put_sentence(s.info->summary, page);
    }
}

static void put_formats(FILE *page) {
    for (const gf_about_format *format = gf_about_formats; format->name; format++) {
        fprintf(page, ".It %s\n%s\n", format->name, format->holds);
        if (format->read && !format->written)
            fputs("Read only.\n", page);
        if (!strchr(format->endings, ' ') && (format->read || !format->written))
            continue;
        fputs("Ends with\n", page);
        for (const char *ending = format->endings; *ending; ending += strspn(ending, " ")) {
            const size_t size = strcspn(ending, " ");
            fprintf(page, ".Pa .%.*s %s\n", (int)size, ending, ending[size] ? "or" : ".");
            ending += size;
        }
    }
}

/* Successive rows of the same text come together: only the first of them has it. */
static void put_environment(FILE *page) {
    for (const gf_about_name *row = gf_about_environment; row->name;) {
        const char *what = row->what;
        fprintf(page, ".It Ev %s", row->name);
        for (row++; row->name && !row->what; row++)
            fprintf(page, " , Ev %s", row->name);
        fprintf(page, "\n%s\n", what);
    }
}

static bool overview_gap(const char *name, FILE *page) {
    gf_param params[GF_CLI_MAX_COMMON];
    if (strcmp(name, "filters") == 0)
        put_summaries(true, page);
    else if (strcmp(name, "commands") == 0)
        put_summaries(false, page);
    else if (strcmp(name, "options") == 0)
        put_options(params, gf_cli_common(NULL, params), true, page);
    else if (strcmp(name, "formats") == 0)
        put_formats(page);
    else if (strcmp(name, "environment") == 0)
        put_environment(page);
    else if (strcmp(name, "codes") == 0 || strcmp(name, "test-codes") == 0)
        put_codes(*name == 't', page);
    else if (strcmp(name, "references") == 0)
        put_references(NULL, true, true, page);
    else
        return false;
    return true;
}

void man_overview(const char *date, FILE *page) {
    put_head("gpufilter", gf_about_summary, date, page);
    template_fill("src/pages/gpufilter.1.in", overview_gap, page);
}

/* ---- pages of filters and commands ---------------------------------------------------------- */

/* Write the operands: "IN", "[OUT]", "FILE...", "[FILE]...". */
static void put_operands(const char *operands, FILE *page) {
    for (const char *word = operands; *word; word += strspn(word, " ")) {
        const bool optional = *word == '[';
        const int size = (int)strcspn(word + optional, "]. ");
        fprintf(page, optional ? ".Op Ar %.*s" : ".Ar %.*s", size, word + optional);
        word += strcspn(word, " ");
        fputs(word[-1] != '.' ? "\n" : optional ? " ...\n" : " Ns ...\n", page);
    }
}

static void put_synopsis(const subject *s, bool many, FILE *page) {
    const char *start = ".Op Ar OPTION ...\n", *name = s->info->name;
    fputs(".Sh SYNOPSIS\n", page);
    if (!many || s->info->makes_image) {
        fprintf(page, ".Nm gpufilter %s\n%s", name, start);
        put_operands(s->info->operands, page);
    }
    if (many)
        fprintf(page, ".Nm gpufilter %s\n%s%s.Ar IN Ns ...\n", name, start,
                s->info->makes_image ? ".Fl \\-out\\-dir Ar DIR\n" : "");
}

static void put_files(const subject *s, bool many, FILE *page) {
    const bool image = s->info->makes_image;
    fprintf(page,
            ".Pp\n%s.Xr gpufilter 1\nlists the formats that are read%s.\n"
            "A file named\n.Sq \\-\nis standard input%s.\n",
            s->info->inputs == 2
                ? "Both images must have the same size, channels and type of samples.\n"
            : image ? "The format of\n.Ar IN\nis read from its first bytes, that of\n.Ar OUT\n"
                      "from its name.\n"
                    : "",
            image ? " and written" : "", subject_shares(s, "force") ? " or output" : "");
    if (many)
        fprintf(page,
                "\n%s\nOne that fails does not stop the others, but makes the exit status 1.\n%s",
                image ? "With --out-dir all operands are inputs, and each output goes into that "
                        "folder."
                      : "Of many inputs each is measured by itself. A CSV table has the file in "
                        "its first column.",
                image ? "What is finished is noted there, in\n.Pa .gpufilter\\-done ,\n"
                        "for --resume.\n"
                      : "");
}

void man_subject(const subject *s, const char *date, FILE *page) {
    const gf_filter_info *info = s->info;
    const bool many = s->is_filter && subject_shares(s, "files-from");
    const char *list = ".Bl -tag -width Ds\n";
    char name[64];
    snprintf(name, sizeof name, "gpufilter-%s", info->name);
    put_head(name, info->summary, date, page);
    put_synopsis(s, many, page);
    fprintf(page, ".Sh DESCRIPTION\n%s", info->details);
    if (s->is_filter || strstr(info->operands, "FILE"))
        put_files(s, many, page);
    fputs(".Sh OPTIONS\n", page);
    if (s->is_filter && info->param_count)
        fprintf(page, ".Ss Options of %s\n", info->name);
    fputs(list, page);
    put_options(info->params, info->param_count, false, page);
    if (s->is_filter && info->param_count)
        fprintf(page, ".El\n.Ss Common options\nThese are shared with other filters.\n%s", list);
    put_options(s->shared, s->shared_count, false, page);
    fputs(".El\n.Sh EXIT STATUS\n.Bl -tag -width \"128 + n\" -compact\n", page);
    put_codes(info->is_test, page);
    fputs(".El\n.Sh EXAMPLES\n", page);
    for (const char *line = info->examples; *line; line += strcspn(line, "\n") + 1)
        fprintf(page, "    %.*s\n", (int)strcspn(line, "\n"), line);
    fputs(".Sh SEE ALSO\n.Xr gpufilter 1 ,\n", page);
    put_references(info->name, s->is_filter, !s->is_filter, page);
}
