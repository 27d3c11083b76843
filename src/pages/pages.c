/* Prints a manual page or a shell's completion, in the project's own folder, from the tables that
 * the program's parser and help read: pages NAME DATE. Without arguments it prints their names. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "inputs.h"

/* ---- text as mdoc(7) ------------------------------------------------------------------------- */

/* Write characters, escaped where needed. Typed text can be copied from a page: a hyphen in it is a
 * minus sign. */
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

static void roff_put_word(const char *word, size_t size, FILE *page) {
    const size_t prefix = strspn(word, "([");
    const char *bold = word + prefix, *end = word + size;
    const size_t bolds = prefix < size ? roff_bold_size(bold, size - prefix) : 0,
                 quoted = bolds && *bold == '`';
    /* Prevent hyphenation of what is not English. */
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

/* Write the words of a line; each sentence begins one. */
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

/* "  name  text": where the text begins; NULL if the line is no such item. */
static const char *roff_item_text(const char *line) {
    const char *gap = strncmp(line, "  ", 2) == 0 ? strstr(line + 2, "  ") : NULL;
    return gap && gap > line + 2 && gap < line + strcspn(line, "\n") ? gap : NULL;
}

/* Write a page of mdoc(7). Lines of the text that begin with '.' are mdoc already. All others are
 * prose: an empty line separates paragraphs, lines that begin with two spaces, a name and two
 * spaces are the items of a list, lines that begin with four spaces are literal, `words` and
 * --options are bold, and each sentence begins a line. */
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

/* Does a filter or command share an option of this name with others? */
static bool shares(const gf_command *command, const char *option) {
    gf_param params[GF_CLI_MAX_PARAMS];
    const size_t count = gf_command_params(command, params);
    size_t i = command->info.param_count;
    while (i < count && strcmp(params[i].name, option) != 0)
        i++;
    return i < count;
}

/* Name the filters that have a shared option, unless all have it. */
static void put_owners(const char *option, FILE *page) {
    const char *names[64];
    size_t count = 0;
    gf_command command;
    for (size_t i = 0; (command = gf_command_at(i)).filter && count < 64; i++)
        if (shares(&command, option))
            names[count++] = command.info.name;
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
        roff_put_chars(param->name, strlen(param->name), true, page);
        fprintf(page, "%s%s\n", param->metavar ? " Ar " : "", param->metavar ? param->metavar : "");
        put_sentence(param->help, page);
        put_values(param, page);
        if (with_owners)
            put_owners(param->name, page);
    }
}

/* Write what exit codes mean; test: of a filter that is one. */
static void put_codes(bool test, FILE *page) {
    static const struct {
        const char *code, *max, *test; /* test NULL: as of most */
    } rows[] = {
        {"0", "All that was asked for was done.", "The images are the same."},
        {"1",
         "A file, an image, memory or the system failed. A line on standard error says which, why, "
         "and what to do.",
         "The images differ."},
        {"2", "An option or an operand is not acceptable.",
         "The images could not be compared, or an option or an operand is not acceptable."},
        {"3", "The backend or device that was asked for is not there.", NULL},
        {"128 + n", "Signal n ended the program, as a shell tells it.", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        fprintf(page, ".It %s\n%s\n", rows[i].code,
                test && rows[i].test ? rows[i].test : rows[i].max);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Refer to the pages of all filters and commands, or of the others that are of this one's kind. */
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
        put_sentence(command.info.summary, page);
    }
}

static void put_formats(FILE *page) {
    for (const gf_about_format *format = gf_about_formats; format->name; format++) {
        fprintf(page, ".It %s\n%s\n", format->name, format->holds);
        if (format->read && !format->written)
            fputs("Read only.\n", page);
        if (!strchr(format->extensions, ' ') && (format->read || !format->written))
            continue;
        fputs("Ends with\n", page);
        for (const char *extension = format->extensions; *extension;
             extension += strspn(extension, " ")) {
            const size_t size = strcspn(extension, " ");
            fprintf(page, ".Pa .%.*s %s\n", (int)size, extension, extension[size] ? "or" : ".");
            extension += size;
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
            "A file named\n.Sq \\-\nis standard input%s.\n",
            command->info.inputs == 2
                ? "Both images must have the same size, channels and type of samples.\n"
            : image ? "The format of\n.Ar IN\nis read from its first bytes, that of\n.Ar OUT\n"
                      "from its name.\n"
                    : "",
            image ? " and written" : "", shares(command, "force") ? " or output" : "");
    if (many)
        fprintf(page,
                "\n%s\nOne that fails does not stop the others, but makes the exit status 1.\n",
                image ? "With --out-dir all operands are inputs, and each output goes into that "
                        "folder."
                      : "Of many inputs each is measured by itself. A CSV table has the file in "
                        "its first column.");
}

static void put_command(const gf_command *command, const char *date, FILE *page) {
    const gf_filter_info *info = &command->info;
    const bool many = command->filter && shares(command, "files-from");
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
        fprintf(page, ".El\n.Ss Common options\nThese are shared with other filters.\n%s", list);
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

/* How the scripts call what an option takes. */
static const char *kind_of(const gf_param *param, const char *metavar) {
    static const char *const kinds[GF_PARAM_SAMPLES + 1] = {
        [GF_PARAM_FLAG] = "nothing", [GF_PARAM_CHOICE] = "words",  [GF_PARAM_LIST] = "words",
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

/* Write the values that an option may have, a space between them. A list is short: all that can be
 * made of its choices. */
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

/* Write lines NAME|OPTION|LETTER|KIND|METAVAR|WORDS|HELP. For the operands and a summary, OPTION is
 * filter, command or word. */
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
        for (size_t j = 0; names && j < gf_filter_count(); j++)
            fprintf(out, "%s%s", j ? " " : "", gf_filter_describe(gf_filter_at(j))->name);
        fputc('|', out);
        put_quoted(command.info.summary, out);
        for (size_t j = 0; j < count; j++)
            put_option(command.info.name, &params[j], out);
    }
    for (const gf_about_word *word = gf_about_words; word->name; word++)
        fprintf(out, "%s|word||nothing|||%s\n", word->name, word->what);
}

/* Write the endings of images' names: "png|pgm|pnm". */
static void put_extensions(FILE *out) {
    const char *between = "";
    for (const gf_about_format *format = gf_about_formats; format->name; format++) {
        if (!format->read && !format->written)
            continue;
        fputs(between, out);
        for (const char *c = format->extensions; *c; c++)
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
        put_references(NULL, out);
    else if (strcmp(name, "table") == 0)
        put_table(out);
    else if (strcmp(name, "endings") == 0)
        put_extensions(out);
    else
        return false;
    return true;
}

/* Print why a file cannot be read or written, and end the program. */
_Noreturn static void file_fail(const char *path) {
    fprintf(stderr, "pages: %s: %s\n", path, strerror(errno));
    exit(1);
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
        put_head("gpufilter", gf_about_summary, date, page);
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
