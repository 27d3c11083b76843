/* Makes the manual pages and the shells' completions, in the project's own folder, from the tables
 * that the program's parser and help read. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "inputs.h"

/* ---- files ----------------------------------------------------------------------------------- */

/* Print why a file cannot be read or written, and end the program. */
_Noreturn static void file_fail(const char *path) {
    fprintf(stderr, "pages: %s: %s\n", path, strerror(errno));
    exit(1);
}

static FILE *file_create(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file)
        file_fail(path);
    return file;
}

static void file_close(FILE *file, const char *path) {
    const bool failed = ferror(file);
    if (fclose(file) || failed)
        file_fail(path);
}

/* ---- filters and commands -------------------------------------------------------------------- */

/* A filter or a command. */
typedef struct subject {
    const gf_filter_info *info;
    bool is_filter;
    gf_param shared[GF_CLI_MAX_COMMON]; /* the options that it has in common with others */
    size_t shared_count;
} subject;

/* Describe a filter or, after the filters, a command; false past the end. */
static bool subject_at(size_t index, subject *s) {
    const size_t filters = gf_filter_count();
    const gf_command *command = index < filters ? NULL : gf_command_at(index - filters);
    if (index >= filters && !command)
        return false;
    s->is_filter = !command;
    s->info = command ? &command->info : gf_filter_describe(gf_filter_at(index));
    s->shared_count =
        command ? gf_command_shared(command, s->shared) : gf_cli_common(s->info, s->shared);
    return true;
}

/* Has it a shared option of this name? */
static bool subject_shares(const subject *s, const char *name) {
    for (size_t i = 0; i < s->shared_count; i++)
        if (strcmp(s->shared[i].name, name) == 0)
            return true;
    return false;
}

/* ---- text as mdoc(7) ------------------------------------------------------------------------- */

enum { WIDTH = 78 }; /* columns of the source */

static FILE *roff_file;
static size_t roff_column; /* of the unfinished line of prose; 0: there is none */
static bool roff_joined;   /* the next word follows a hyphen, without a space */

/* Write characters, escaped where needed. Typed text can be copied from a page: a hyphen in it is a
 * minus sign. */
static void roff_put_chars(const char *text, size_t size, bool typed) {
    static const char special[] = "\\~^`'-";
    static const char *const escapes[] = {"\\e", "\\(ti", "\\(ha", "\\(ga", "\\(aq", "\\-"};
    for (size_t i = 0; i < size; i++) {
        const char *at = strchr(special, text[i]);
        if (at && (typed || !strchr("'-", *at) || (i == 0 && *at == '-')))
            fputs(escapes[at - special], roff_file);
        else
            fputc(text[i], roff_file);
    }
}

/* The size of `word`, --option or -o at the beginning of a word, which is bold; 0: there is none.
 */
static size_t roff_bold_size(const char *word, size_t size) {
    const char *quote = memchr(word + 1, '`', size - 1);
    size_t end = 2;
    if (*word == '`')
        return quote ? (size_t)(quote - word) + 1 : 0;
    if (size < 2 || word[0] != '-' || (word[1] != '-' && !isalpha((unsigned char)word[1])))
        return 0;
    while (end < size && word[1] == '-' && (isalnum((unsigned char)word[end]) || word[end] == '-'))
        end++;
    return word[1] == '-' && end == 2 ? 0 : end;
}

static void roff_end_line(void) {
    if (roff_column)
        fputc('\n', roff_file);
    roff_column = 0;
}

static void roff_put_word(const char *word, size_t size) {
    const size_t prefix = strspn(word, "([");
    const char *bold = word + prefix, *end = word + size;
    const size_t bolds = prefix < size ? roff_bold_size(bold, size - prefix) : 0,
                 quoted = bolds && *bold == '`';
    if (roff_column && !roff_joined && roff_column + 3 + size > WIDTH)
        roff_end_line();
    if (roff_column && !roff_joined)
        fputc(' ', roff_file);
    else if (*word == '.' || *word == '\'')
        fputs("\\&", roff_file);
    /* Prevent hyphenation of what is not English. */
    if (bolds || strcspn(word, "{}[]_/=+*<>") < size)
        fputs("\\%", roff_file);
    roff_put_chars(word, prefix, false);
    if (bolds) {
        fputs("\\fB", roff_file);
        roff_put_chars(bold + quoted, bolds - 2 * quoted, true);
        fputs("\\fP", roff_file);
    }
    roff_put_chars(bold + bolds, (size_t)(end - bold) - bolds, false);
    roff_column += (roff_column ? 1 : 0) + size;
    /* The end of a sentence ends the line. */
    while (end > word && strchr(")\"'`]", end[-1]))
        end--;
    if (end > word && strchr(".?!", end[-1]) && !(end - word > 2 && end[-2] == '.'))
        roff_end_line();
}

static void roff_put_prose(const char *text, const char *end) {
    while (text < end) {
        const size_t size = strcspn(text, " \n");
        if (size)
            roff_put_word(text, size);
        text += size + 1;
        roff_joined = size > 1 && isalpha((unsigned char)text[-3]) &&
                      memcmp(text - 2, "-\n", 2) == 0 && islower((unsigned char)*text);
    }
    roff_end_line();
}

static const char *roff_next_line(const char *line) {
    const size_t size = strcspn(line, "\n");
    return line + size + (line[size] == '\n');
}

/* "  name  text": where the text begins; NULL if the line is no such item. */
static const char *roff_item_text(const char *line) {
    const char *gap = strncmp(line, "  ", 2) == 0 ? strstr(line + 2, "  ") : NULL;
    return gap && gap > line + 2 && gap < roff_next_line(line) ? gap + strspn(gap, " ") : NULL;
}

/* Write a list; returns where it ends. */
static const char *roff_put_list(const char *line) {
    fputs(".Bl -tag -width 7n -offset indent -compact\n", roff_file);
    for (const char *text; (text = roff_item_text(line));) {
        fprintf(roff_file, ".It Cm %.*s\n", (int)strcspn(line + 2, " "), line + 2);
        do
            line = roff_next_line(line);
        while (strncmp(line, "   ", 3) == 0);
        roff_put_prose(text, line);
    }
    fputs(".El\n", roff_file);
    return line;
}

/* Write indented lines as they are; returns where they end. */
static const char *roff_put_literal(const char *line) {
    fputs(".Bd -literal -offset 4n\n", roff_file);
    for (const char *next; strncmp(line, "    ", 4) == 0; line = next) {
        next = roff_next_line(line);
        roff_put_chars(line + 4, (size_t)(next - line - 4), true);
    }
    fputs(".Ed\n", roff_file);
    return line;
}

/* Write a page of mdoc(7). Lines of the text that begin with '.' are mdoc already. All others are
 * prose: an empty line separates paragraphs, lines that begin with two spaces, a name and two
 * spaces are the items of a list, lines that begin with four spaces are literal, `words` and
 * --options are bold, and each sentence begins a line. */
static void roff_put(const char *text, FILE *out) {
    roff_file = out;
    for (const char *line = text, *end; *line; line = end) {
        end = roff_next_line(line);
        if (*line == '\n') {
            fputs(".Pp\n", roff_file);
        } else if (*line == '.') {
            fwrite(line, 1, (size_t)(end - line), roff_file);
        } else if (strncmp(line, "    ", 4) == 0) {
            end = roff_put_literal(line);
        } else if (roff_item_text(line)) {
            end = roff_put_list(line);
        } else {
            while (*end && !strchr(".\n", *end) && strncmp(end, "  ", 2) != 0)
                end = roff_next_line(end);
            roff_put_prose(line, end);
        }
    }
}

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
                "\n%s\nOne that fails does not stop the others, but makes the exit status 1.\n",
                image ? "With --out-dir all operands are inputs, and each output goes into that "
                        "folder."
                      : "Of many inputs each is measured by itself. A CSV table has the file in "
                        "its first column.");
}

static void put_subject(const subject *s, const char *date, FILE *page) {
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

/* ---- completions: one table of all options, read by a script for each shell ------------------ */

/* How the scripts call what an option takes. */
static const char *kind_of(const gf_param *param, const char *metavar) {
    static const char *const kinds[GF_PARAM_SAMPLES + 1] = {
        [GF_PARAM_FLAG] = "nothing", [GF_PARAM_CHOICE] = "words",  [GF_PARAM_LIST] = "list",
        [GF_PARAM_IMAGE] = "images", [GF_PARAM_SAMPLES] = "files",
    };
    const char *kind = kinds[param->type];
    if (param->type == GF_PARAM_TEXT)
        kind = strcmp(param->name, "device") == 0 ? "words"
               : strcmp(metavar, "FILE") == 0     ? "files"
               : strcmp(metavar, "DIR") == 0      ? "folders"
                                                  : NULL;
    return kind ? kind : "unknown";
}

/* Write text that is in single quotes: each one in it ends the string and is quoted by itself, as
 * all three shells understand. */
static void put_quoted(const char *text, FILE *out) {
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\"'\"'", out);
        else
            fputc(*text, out);
    fputc('\n', out);
}

static void put_option(const char *name, const gf_param *param, FILE *out) {
    const char *metavar = param->metavar ? param->metavar : "";
    fprintf(out, "%s|--%s|%s%.1s|%s|%s|", name, param->name, param->letter ? "-" : "",
            &param->letter, kind_of(param, metavar), metavar);
    if (strcmp(param->name, "device") == 0)
        fputs("all 0", out);
    for (size_t i = 0; param->choices && param->choices[i]; i++)
        fprintf(out, "%s%s", i ? " " : "", param->choices[i]);
    fputc('|', out);
    put_quoted(param->help, out);
}

/* Write lines NAME|OPTION|LETTER|KIND|METAVAR|WORDS|HELP. For the operands and a summary, OPTION is
 * filter, command or word. */
static void put_table(FILE *out) {
    subject s;
    for (size_t i = 0; subject_at(i, &s); i++) {
        const bool images = s.is_filter || strstr(s.info->operands, "FILE");
        const bool names = !images && strstr(s.info->operands, "FILTER");
        fprintf(out, "%s|%s||%s||", s.info->name, s.is_filter ? "filter" : "command",
                images  ? "images"
                : names ? "words"
                        : "nothing");
        for (size_t j = 0; names && j < gf_filter_count(); j++)
            fprintf(out, "%s%s", j ? " " : "", gf_filter_describe(gf_filter_at(j))->name);
        fputc('|', out);
        put_quoted(s.info->summary, out);
        for (size_t j = 0; j < s.info->param_count; j++)
            put_option(s.info->name, &s.info->params[j], out);
        for (size_t j = 0; j < s.shared_count; j++)
            put_option(s.info->name, &s.shared[j], out);
    }
    for (const gf_about_word *word = gf_about_words; word->name; word++)
        fprintf(out, "%s|word||nothing|||%s\n", word->name, word->what);
}

/* Write the endings of images' names: "png|pgm|pnm". */
static void put_endings(FILE *out) {
    const char *between = "";
    for (const gf_about_format *format = gf_about_formats; format->name; format++) {
        if (!format->read && !format->written)
            continue;
        fputs(between, out);
        for (const char *c = format->endings; *c; c++)
            fputc(*c == ' ' ? '|' : *c, out);
        between = "|";
    }
}

/* ---- templates ------------------------------------------------------------------------------- */

/* Write what replaces "@NAME@" and a line break behind it; false if the name is not known. */
static bool template_put(const char *name, FILE *out) {
    gf_param params[GF_CLI_MAX_COMMON];
    if (strcmp(name, "filters") == 0)
        put_summaries(true, out);
    else if (strcmp(name, "commands") == 0)
        put_summaries(false, out);
    else if (strcmp(name, "options") == 0)
        put_options(params, gf_cli_common(NULL, params), true, out);
    else if (strcmp(name, "formats") == 0)
        put_formats(out);
    else if (strcmp(name, "codes") == 0 || strcmp(name, "test-codes") == 0)
        put_codes(*name == 't', out);
    else if (strcmp(name, "references") == 0)
        put_references(NULL, true, true, out);
    else if (strcmp(name, "table") == 0)
        put_table(out);
    else if (strcmp(name, "endings") == 0)
        put_endings(out);
    else
        return false;
    return true;
}

/* Copy a template, a file of the project, with its gaps filled. */
static void template_fill(const char *path, FILE *out) {
    char *text = NULL, name[16];
    size_t capacity = 0;
    FILE *file = fopen(path, "r");
    if (!file || getdelim(&text, &capacity, 0, file) < 0)
        file_fail(path);
    for (const char *at = text; *at;) {
        const char *end = *at == '@' ? strchr(at + 1, '@') : NULL;
        snprintf(name, sizeof name, "%.*s", end ? (int)(end - at - 1) : 0, at + 1);
        if (end && template_put(name, out))
            at = end[1] == '\n' ? end + 2 : end + 1;
        else
            fputc(*at++, out);
    }
    fclose(file);
    free(text);
}

/* Make the page of a subject, or the overview for NULL. */
static void make_page(const char *folder, const char *date, const subject *s) {
    char path[4096], *text = NULL;
    size_t size = 0;
    FILE *page = open_memstream(&text, &size);
    snprintf(path, sizeof path, "%s/man/gpufilter%s%s.1", folder, s ? "-" : "",
             s ? s->info->name : "");
    if (!page)
        file_fail(path);
    if (s) {
        put_subject(s, date, page);
    } else {
        put_head("gpufilter", gf_about_summary, date, page);
        template_fill("src/pages/gpufilter.1.in", page);
    }
    file_close(page, path);
    FILE *file = file_create(path);
    roff_put(text, file);
    file_close(file, path);
    free(text);
}

static void make_completion(const char *folder, const char *name, const char *template_path) {
    char path[4096];
    snprintf(path, sizeof path, "%s/completions/%s", folder, name);
    FILE *file = file_create(path);
    template_fill(template_path, file);
    file_close(file, path);
}

int main(int argc, char **argv) {
    subject s;
    if (argc != 3) {
        fputs("Usage: pages BUILD DATE\nmakes BUILD/man/*.1 and BUILD/completions/*\n", stderr);
        return 2;
    }
    make_page(argv[1], argv[2], NULL);
    for (size_t i = 0; subject_at(i, &s); i++)
        make_page(argv[1], argv[2], &s);
    make_completion(argv[1], "gpufilter.bash", "src/pages/gpufilter.bash.in");
    make_completion(argv[1], "_gpufilter", "src/pages/gpufilter.zsh.in");
    make_completion(argv[1], "gpufilter.fish", "src/pages/gpufilter.fish.in");
    return 0;
}
