/* Text as mdoc(7). */
#include <ctype.h>
#include <string.h>

#include "pages.h"

enum { WIDTH = 78 }; /* columns of the source */

static FILE *file;
static size_t column; /* of the unfinished line of prose; 0: there is none */
static bool joined;   /* the next word follows a hyphen, without a space */

/* Write characters, escaped where needed. Typed text can be copied from a page: a hyphen in it is a
 * minus sign. */
static void put_chars(const char *text, size_t size, bool typed) {
    static const char special[] = "\\~^`'-";
    static const char *const escapes[] = {"\\e", "\\(ti", "\\(ha", "\\(ga", "\\(aq", "\\-"};
    for (size_t i = 0; i < size; i++) {
        const char *at = strchr(special, text[i]);
        if (at && (typed || !strchr("'-", *at) || (i == 0 && *at == '-')))
            fputs(escapes[at - special], file);
        else
            fputc(text[i], file);
    }
}

/* The size of `word`, --option or -o at the beginning of a word, which is bold; 0: there is none.
 */
static size_t bold_size(const char *word, size_t size) {
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

static void end_line(void) {
    if (column)
        fputc('\n', file);
    column = 0;
}

static void put_word(const char *word, size_t size) {
    const size_t prefix = strspn(word, "([");
    const char *bold = word + prefix, *end = word + size;
    const size_t bolds = prefix < size ? bold_size(bold, size - prefix) : 0,
                 quoted = bolds && *bold == '`';
    if (column && !joined && column + 3 + size > WIDTH)
        end_line();
    if (column && !joined)
        fputc(' ', file);
    else if (*word == '.' || *word == '\'')
        fputs("\\&", file);
    /* Prevent hyphenation of what is not English. */
    if (bolds || strcspn(word, "{}[]_/=+*<>") < size)
        fputs("\\%", file);
    put_chars(word, prefix, false);
    if (bolds) {
        fputs("\\fB", file);
        put_chars(bold + quoted, bolds - 2 * quoted, true);
        fputs("\\fP", file);
    }
    put_chars(bold + bolds, (size_t)(end - bold) - bolds, false);
    column += (column ? 1 : 0) + size;
    /* The end of a sentence ends the line. */
    while (end > word && strchr(")\"'`]", end[-1]))
        end--;
    if (end > word && strchr(".?!", end[-1]) && !(end - word > 2 && end[-2] == '.'))
        end_line();
}

static void put_prose(const char *text, const char *end) {
    while (text < end) {
        const size_t size = strcspn(text, " \n");
        if (size)
            put_word(text, size);
        text += size + 1;
        joined = size > 1 && isalpha((unsigned char)text[-3]) && memcmp(text - 2, "-\n", 2) == 0 &&
                 islower((unsigned char)*text);
    }
    end_line();
}

static const char *next_line(const char *line) {
    const size_t size = strcspn(line, "\n");
    return line + size + (line[size] == '\n');
}

/* "  name  text": where the text begins; NULL if the line is no such item. */
static const char *item_text(const char *line) {
    const char *gap = strncmp(line, "  ", 2) == 0 ? strstr(line + 2, "  ") : NULL;
    return gap && gap > line + 2 && gap < next_line(line) ? gap + strspn(gap, " ") : NULL;
}

/* Write a list; returns where it ends. */
static const char *put_list(const char *line) {
    fputs(".Bl -tag -width 7n -offset indent -compact\n", file);
    for (const char *text; (text = item_text(line));) {
        fprintf(file, ".It Cm %.*s\n", (int)strcspn(line + 2, " "), line + 2);
        do
            line = next_line(line);
        while (strncmp(line, "   ", 3) == 0);
        put_prose(text, line);
    }
    fputs(".El\n", file);
    return line;
}

/* Write indented lines as they are; returns where they end. */
static const char *put_literal(const char *line) {
    fputs(".Bd -literal -offset 4n\n", file);
    for (const char *next; strncmp(line, "    ", 4) == 0; line = next) {
        next = next_line(line);
        put_chars(line + 4, (size_t)(next - line - 4), true);
    }
    fputs(".Ed\n", file);
    return line;
}

void roff_put(const char *text, FILE *out) {
    file = out;
    for (const char *line = text, *end; *line; line = end) {
        end = next_line(line);
        if (*line == '\n') {
            fputs(".Pp\n", file);
        } else if (*line == '.') {
            fwrite(line, 1, (size_t)(end - line), file);
        } else if (strncmp(line, "    ", 4) == 0) {
            end = put_literal(line);
        } else if (item_text(line)) {
            end = put_list(line);
        } else {
            while (*end && !strchr(".\n", *end) && strncmp(end, "  ", 2) != 0)
                end = next_line(end);
            put_prose(line, end);
        }
    }
}
