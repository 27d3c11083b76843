/* Generator of manual pages and shell completions, from the tables that parser and help read.
 * Usage, in the root of the project: pages NAME DATE. Without arguments, list all NAMEs. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "inputs.h"

/* ---- text as mdoc(7) ------------------------------------------------------------------------- */

/* Write escaped characters. typed: write hyphens as minus signs, which readers can copy. */
static void roff_put_chars(const char *text, size_t size, bool typed, FILE *page) {
    static const char special[] = "\\~^`'-";
    static const char *const escapes[] = {"\\e", "\\(ti", "\\(ha", "\\(ga", "\\(aq", "\\-"};
    for (size_t i = 0; i < size; i++) {
        const char *at = strchr(special, text[i]);
        if (at && (typed || !strchr("'-", *at) || (i == 0 && *at == '-')))
            fputs(escapes[at - special], page);
        else
            fputc(text[i], page);
    }
}

/* Return the size of the bold prefix of a word: `word`, --option or -o; 0: none. */
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

static void roff_put_word(const char *word, size_t size, FILE *page) {
    const size_t prefix = strspn(word, "([");
    const char *bold = word + prefix, *end = word + size;
    const size_t bolds = prefix < size ? roff_bold_size(bold, size - prefix) : 0,
                 quoted = bolds && *bold == '`';
    /* Prevent hyphenation of names and code. */
    if (bolds || strcspn(word, "{}[]_/=+*<>") < size)
        fputs("\\%", page);
    roff_put_chars(word, prefix, false, page);
    if (bolds) {
        fputs("\\fB", page);
        roff_put_chars(bold + quoted, bolds - 2 * quoted, true, page);
        fputs("\\fP", page);
    }
    roff_put_chars(bold + bolds, (size_t)(end - bold) - bolds, false, page);
}

static bool roff_ends_sentence(const char *word, size_t size) {
    while (size && strchr(")\"'`]", word[size - 1]))
        size--;
    return size && strchr(".?!", word[size - 1]) && !(size > 2 && word[size - 2] == '.');
}

/* Write the words of a line. Start a new line after each sentence. */
static void roff_put_prose(const char *text, FILE *page) {
    bool begins = true;
    for (text += strspn(text, " "); *text && *text != '\n'; text += strspn(text, " ")) {
        const size_t size = strcspn(text, " \n");
        if (!begins)
            fputc(' ', page);
        else if (*text == '.' || *text == '\'')
            fputs("\\&", page);
        roff_put_word(text, size, page);
        begins = roff_ends_sentence(text, size);
        if (begins)
            fputc('\n', page);
        text += size;
    }
    if (!begins)
        fputc('\n', page);
}

/* Return the text of a list item "  name  text"; NULL if the line is not an item. */
static const char *roff_item_text(const char *line) {
    const char *gap = strncmp(line, "  ", 2) == 0 ? strstr(line + 2, "  ") : NULL;
    return gap && gap > line + 2 && gap < line + strcspn(line, "\n") ? gap : NULL;
}

/* Convert text to a page of mdoc(7). Copy lines that begin with '.', which are mdoc already. All
 * other lines are prose: an empty line separates paragraphs; two spaces, a name and two spaces
 * begin a list item; four spaces begin a literal line; `words` and --options are bold. */
static void roff_put(const char *text, FILE *page) {
    static const char *const begin[] = {"", ".Bl -tag -width 7n -offset indent -compact\n",
                                        ".Bd -literal -offset 4n\n"};
    static const char *const end[] = {"", ".El\n", ".Ed\n"};
    enum { PROSE, LIST, LITERAL } now = PROSE, next;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        const char *item = roff_item_text(line);
        next = item || (now == LIST && strncmp(line, "   ", 3) == 0) ? LIST
               : strncmp(line, "    ", 4) == 0                       ? LITERAL
                                                                     : PROSE;
        if (next != now)
            fprintf(page, "%s%s", end[now], begin[next]);
        now = next;
        if (item)
            fprintf(page, ".It Cm %.*s\n", (int)strcspn(line + 2, " "), line + 2);
        if (now == LITERAL)
            roff_put_chars(line + 4, strcspn(line + 4, "\n") + 1, true, page);
        else if (*line == '.')
            fprintf(page, "%.*s\n", (int)strcspn(line, "\n"), line);
        else if (*line == '\n')
            fputs(".Pp\n", page);
        else
            roff_put_prose(item ? item : line, page);
    }
    fputs(end[now], page);
}

/* ---- parts of every page -------------------------------------------------------------------- */

static void put_head(const char *name, const char *summary, const char *date, FILE *page) {
    fprintf(page,
            ".\\\" Generated by build/pages. Edit the option tables in the source, or src/pages.\n"
            ".Dd %s\n.Dt ",
            date);
    for (const char *c = name; *c; c++)
        fputc(toupper((unsigned char)*c), page);
    fprintf(page, " 1\n.Os \"gpufilter %s\"\n.Sh NAME\n.Nm %s\n.Nd %s\n", gf_version(), name,
            summary);
}

/* Write "a, b and c", in bold. */
static void put_series(const char *const *words, size_t count, const char *last, FILE *page) {
    for (size_t i = 0; i < count; i++)
        fprintf(page, "%s`%s`", i == 0 ? "" : i + 1 < count ? ", " : last, words[i]);
}

/* Write the range or the choices of an option, and its default. */
static void put_values(const gf_param *param, FILE *page) {
    const bool range = param->type == GF_PARAM_INT || param->type == GF_PARAM_FLOAT;
    const bool list = param->type == GF_PARAM_LIST;
    size_t count = 0;
    while (param->choices && param->choices[count])
        count++;
    if (range)
        fprintf(page, "Range: %.15g..%.15g", param->min, param->max);
    else if (count)
        fputs(list ? "Some of " : "One of ", page);
    put_series(param->choices, count, list ? " and " : " or ", page);
    if (param->fallback)
        fprintf(page, "%s: `%s`", range || count ? "; default" : "Default", param->fallback);
    if (range || count || param->fallback)
        fputs(".\n", page);
    if (param->type == GF_PARAM_SIZE)
        fputs("The suffixes K, M, G and T are powers of 1024.\n", page);
}

/* Name the filters that accept a shared option, unless all accept it. */
static void put_owners(const char *option, FILE *page) {
    const char *names[64];
    size_t count = 0, filters = 0;
    gf_command command;
    for (; (command = gf_command_at(filters)).filter && count < 64; filters++)
        if (gf_command_has(&command, option, strlen(option)))
            names[count++] = command.info.name;
    if (count == filters)
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
        roff_put_chars(param->name, strlen(param->name), true, page);
        fprintf(page, "%s%s\n", param->metavar ? " Ar " : "", param->metavar ? param->metavar : "");
        gf_help_sentence(page, param->help);
        put_values(param, page);
        if (with_owners)
            put_owners(param->name, page);
    }
}

/* Write the exit codes. test: their meanings for a filter that is a test. */
static void put_codes(bool test, FILE *page) {
    for (const gf_help_code *row = gf_help_codes; row->code; row++) {
        fprintf(page, ".It %s\n", row->code);
        gf_help_sentence(page, test && row->test ? row->test : row->meaning);
    }
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Refer to all filters and commands (of NULL), or to the others of the same kind. */
static void put_references(const gf_command *of, FILE *page) {
    const char *names[64] = {0};
    size_t count = 0;
    gf_command command;
    for (size_t i = 0; (command = gf_command_at(i)).info.name && count < 64; i++)
        if (!of || (!of->filter == !command.filter && of->info.name != command.info.name))
            names[count++] = command.info.name;
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++)
        fprintf(page, ".Xr gpufilter-%s 1%s\n", names[i], i + 1 < count ? " ," : "");
}

/* ---- gpufilter(1) --------------------------------------------------------------------------- */

static void put_summaries(bool filters, FILE *page) {
    gf_command command;
    for (size_t i = 0; (command = gf_command_at(i)).info.name; i++) {
        if ((command.filter != NULL) != filters)
            continue;
        fprintf(page, ".It Xr gpufilter-%s 1\n", command.info.name);
        gf_help_sentence(page, command.info.summary);
    }
}

static void put_formats(FILE *page) {
    gf_codec_info format;
    for (size_t i = 0; gf_codec_describe(i, &format); i++) {
        fprintf(page, ".It %s\n%s\n", format.label, format.notes);
        if (!format.written)
            fputs("Read only.\n", page);
        if (!format.extensions[1] && !format.headerless)
            continue;
        fputs("Extensions:\n", page);
        for (const char *const *name = format.extensions; *name; name++)
            fprintf(page, ".Pa .%s %s\n", *name, name[1] ? "," : ".");
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

static void put_synopsis(const gf_command *command, bool many, FILE *page) {
    const char *start = ".Op Ar OPTION ...\n", *name = command->info.name;
    fputs(".Sh SYNOPSIS\n", page);
    if (!many || command->info.makes_image) {
        fprintf(page, ".Nm gpufilter %s\n%s", name, start);
        put_operands(command->info.operands, page);
    }
    if (many)
        fprintf(page, ".Nm gpufilter %s\n%s%s.Ar IN Ns ...\n", name, start,
                command->info.makes_image ? ".Fl \\-out\\-dir Ar DIR\n" : "");
}

static void put_files(const gf_command *command, bool many, FILE *page) {
    const bool image = command->info.makes_image;
    fprintf(page,
            ".Pp\n%s.Xr gpufilter 1\nlists the formats that are read%s.\n"
            "The file name\n.Sq \\-\nis standard input%s.\n",
            command->info.inputs == 2
                ? "Both images must have the same size, channels and sample type.\n"
            : image ? "The first bytes of\n.Ar IN\nselect its format; the extension of\n.Ar OUT\n"
                      "selects the output format.\n"
                    : "",
            image ? " and written" : "",
            gf_command_has(command, "force", strlen("force")) ? " or output" : "");
    if (many)
        fprintf(
            page, "\n%s\nA failed input does not stop the others; the exit status is then 1.\n",
            image ? "With --out-dir, all operands are inputs, and all outputs are written to that "
                    "directory."
                  : "The filter measures each of several inputs separately. A CSV table then has "
                    "the file name in its first column.");
}

static void put_command(const gf_command *command, const char *date, FILE *page) {
    const gf_filter_info *info = &command->info;
    const bool many =
        command->filter && gf_command_has(command, "files-from", strlen("files-from"));
    const char *list = ".Bl -tag -width Ds\n";
    gf_param params[GF_CLI_MAX_PARAMS];
    const size_t count = gf_command_params(command, params), own = info->param_count;
    char name[64];
    snprintf(name, sizeof name, "gpufilter-%s", info->name);
    put_head(name, info->summary, date, page);
    put_synopsis(command, many, page);
    fprintf(page, ".Sh DESCRIPTION\n%s", info->details);
    if (command->filter || strstr(info->operands, "FILE"))
        put_files(command, many, page);
    fputs(".Sh OPTIONS\n", page);
    if (command->filter && own)
        fprintf(page, ".Ss Options of %s\n", info->name);
    fputs(list, page);
    put_options(params, own, false, page);
    if (command->filter && own)
        fprintf(page, ".El\n.Ss Common options\nOther filters accept these options too.\n%s", list);
    put_options(params + own, count - own, false, page);
    fputs(".El\n.Sh EXIT STATUS\n.Bl -tag -width \"128 + n\" -compact\n", page);
    put_codes(info->is_test, page);
    fputs(".El\n.Sh EXAMPLES\n", page);
    for (const char *line = info->examples; *line; line += strcspn(line, "\n") + 1)
        fprintf(page, "    %.*s\n", (int)strcspn(line, "\n"), line);
    fputs(".Sh SEE ALSO\n.Xr gpufilter 1 ,\n", page);
    put_references(command, page);
}

/* ---- completions: one table of all options, read by a script for each shell ------------------ */

/* Return the name that the scripts use for the kind of value of an option. */
static const char *kind_of(const gf_param *param, const char *metavar) {
    static const char *const kinds[GF_PARAM_SAMPLES + 1] = {
        [GF_PARAM_FLAG] = "nothing", [GF_PARAM_IMAGE] = "images", [GF_PARAM_SAMPLES] = "files"};
    const char *kind = param->choices ? "words" : kinds[param->type];
    if (param->type == GF_PARAM_TEXT)
        kind = strcmp(param->name, "device") == 0 ? "words"
               : strcmp(metavar, "FILE") == 0     ? "files"
               : strcmp(metavar, "DIR") == 0      ? "directories"
                                                  : NULL;
    return kind ? kind : "unknown";
}

/* Write text in single quotes, and a newline. All three shells read '"'"' as a single quote. */
static void put_quoted(const char *text, FILE *out) {
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\"'\"'", out);
        else
            fputc(*text, out);
    fputc('\n', out);
}

/* Write the values of an option, separated by spaces; for a list, all combinations. */
static void put_words(const gf_param *param, FILE *out) {
    const bool list = param->type == GF_PARAM_LIST;
    size_t count = 0;
    while (param->choices && param->choices[count])
        count++;
    const uint64_t sets = list ? (UINT64_C(1) << count) - 1 : count;
    for (uint64_t n = 0; n < sets; n++) {
        const uint64_t set = list ? n + 1 : UINT64_C(1) << n;
        const char *gap = n ? " " : "";
        for (size_t i = 0; i < count; i++)
            if (set >> i & 1) {
                fprintf(out, "%s%s", gap, param->choices[i]);
                gap = ",";
            }
    }
    if (strcmp(param->name, "device") == 0)
        fputs("all 0", out);
}

static void put_option(const char *name, const gf_param *param, FILE *out) {
    const char *metavar = param->metavar ? param->metavar : "";
    fprintf(out, "%s|--%s|%s%.1s|%s|%s|", name, param->name, param->letter ? "-" : "",
            &param->letter, kind_of(param, metavar), metavar);
    put_words(param, out);
    fputc('|', out);
    put_quoted(param->help, out);
}

/* Write lines NAME|OPTION|LETTER|KIND|METAVAR|WORDS|HELP. The line of a name itself has filter,
 * command or word as OPTION, the kind of its operands, and its summary. */
static void put_table(FILE *out) {
    gf_command command;
    for (size_t i = 0; (command = gf_command_at(i)).info.name; i++) {
        gf_param params[GF_CLI_MAX_PARAMS];
        const size_t count = gf_command_params(&command, params);
        const bool images = command.filter || strstr(command.info.operands, "FILE");
        const bool names = !images && strstr(command.info.operands, "FILTER");
        fprintf(out, "%s|%s||%s||", command.info.name, command.filter ? "filter" : "command",
                images  ? "images"
                : names ? "words"
                        : "nothing");
        for (size_t j = 0; names && gf_filter_at(j); j++)
            fprintf(out, "%s%s", j ? " " : "", gf_filter_describe(gf_filter_at(j))->name);
        fputc('|', out);
        put_quoted(command.info.summary, out);
        for (size_t j = 0; j < count; j++)
            put_option(command.info.name, &params[j], out);
    }
    for (const gf_help_word *word = gf_help_words; word->name; word++)
        fprintf(out, "%s|word||nothing|||%s\n", word->name, word->summary);
}

/* Write the extensions of images: "png|pgm|pnm". */
static void put_extensions(FILE *out) {
    gf_codec_info format;
    for (size_t i = 0; gf_codec_describe(i, &format); i++)
        for (const char *const *name = format.extensions; *name; name++)
            fprintf(out, "%s%s", i || name > format.extensions ? "|" : "", *name);
}

/* ---- templates ------------------------------------------------------------------------------- */

/* Write the replacement of "@NAME@". Return false if the name is unknown. */
static bool page_put(const char *name, FILE *out) {
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
        put_references(NULL, out);
    else if (strcmp(name, "table") == 0)
        put_table(out);
    else if (strcmp(name, "extensions") == 0)
        put_extensions(out);
    else
        return false;
    return true;
}

/* Print the error of a file, and exit. */
_Noreturn static void file_fail(const char *path) {
    fprintf(stderr, "pages: %s: %s\n", path, strerror(errno));
    exit(1);
}

/* Copy a template. Replace each "@NAME@", and the newline that follows it. */
static void template_fill(const char *path, FILE *out) {
    char *text = NULL, name[16];
    size_t capacity = 0;
    FILE *file = fopen(path, "r");
    if (!file || getdelim(&text, &capacity, 0, file) < 0)
        file_fail(path);
    for (const char *at = text; *at;) {
        const char *end = *at == '@' ? strchr(at + 1, '@') : NULL;
        snprintf(name, sizeof name, "%.*s", end ? (int)(end - at - 1) : 0, at + 1);
        if (end && page_put(name, out))
            at = end[1] == '\n' ? end + 2 : end + 1;
        else
            fputc(*at++, out);
    }
    fclose(file);
    free(text);
}

/* Print the page of a filter or command, or the overview for NULL. */
static void print_page(const gf_command *command, const char *date) {
    char *text = NULL;
    size_t size = 0;
    FILE *page = open_memstream(&text, &size);
    if (!page)
        file_fail("memory");
    if (command) {
        put_command(command, date, page);
    } else {
        put_head("gpufilter", gf_help_summary, date, page);
        template_fill("src/pages/gpufilter.1.in", page);
    }
    if (fclose(page))
        file_fail("memory");
    roff_put(text, stdout);
    free(text);
}

int main(int argc, char **argv) {
    static const char *const templates[][2] = {
        {"man/gpufilter.1", NULL},
        {"completions/gpufilter.bash", "src/pages/gpufilter.bash.in"},
        {"completions/_gpufilter", "src/pages/gpufilter.zsh.in"},
        {"completions/gpufilter.fish", "src/pages/gpufilter.fish.in"}};
    const size_t count = sizeof templates / sizeof templates[0];
    gf_command command = {0};
    bool found = argc < 3;
    for (size_t i = 0; i < count || (command = gf_command_at(i - count)).info.name; i++) {
        char name[64];
        snprintf(name, sizeof name, i < count ? "%s" : "man/gpufilter-%s.1",
                 i < count ? templates[i][0] : command.info.name);
        const bool wanted = argc >= 3 && strcmp(name, argv[1]) == 0;
        found = found || wanted;
        if (argc < 3)
            puts(name);
        else if (wanted && i < count && templates[i][1])
            template_fill(templates[i][1], stdout);
        else if (wanted)
            print_page(i < count ? NULL : &command, argv[2]);
    }
    errno = ENOENT;
    if (!found)
        file_fail(argv[1]);
    if (fflush(stdout) || ferror(stdout))
        file_fail("standard output");
    return 0;
}
