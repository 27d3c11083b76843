#include "roff.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 78 /* of the source */

static size_t column; /* of the line of text that is under way; 0: none is */
static roff_marker *marker;

void roff_set_marker(roff_marker *new_marker) {
    marker = new_marker;
}

/* ---- characters ------------------------------------------------------------------------------ */

/* Typed is what may be copied from the page, where a hyphen must be a minus. */
static void put_char(char c, bool typed) {
    switch (c) {
    case '\\':
        fputs("\\e", stdout);
        break;
    case '~':
        fputs("\\(ti", stdout);
        break;
    case '^':
        fputs("\\(ha", stdout);
        break;
    case '`':
        fputs("\\(ga", stdout);
        break;
    case '\'':
        fputs(typed ? "\\(aq" : "'", stdout);
        break;
    case '-':
        fputs(typed ? "\\-" : "-", stdout);
        break;
    default:
        putchar(c);
    }
}

static void put_chars(const char *text, size_t size, bool typed) {
    for (size_t i = 0; i < size; i++)
        put_char(text[i], typed || (i == 0 && text[i] == '-'));
}

/* ---- macros ---------------------------------------------------------------------------------- */

static void end_line(void) {
    if (column)
        putchar('\n');
    column = 0;
}

void roff_macro(const char *name) {
    end_line();
    printf(".%s", name);
}

/* A word that could be a macro or a delimiter would be taken for one. */
static bool is_special(const char *text, size_t size) {
    return (size == 1 && strchr(".,;:?!()[]|", *text)) ||
           ((size == 2 || size == 3) && (isupper((unsigned char)*text) || *text == '%'));
}

void roff_arg_part(const char *text, size_t size) {
    const bool quoted = size == 0 || memchr(text, ' ', size);
    fputs(quoted ? " \"" : " ", stdout);
    if (is_special(text, size))
        fputs("\\&", stdout);
    for (size_t i = 0; i < size; i++)
        if (text[i] == '"')
            fputs("\\(dq", stdout);
        else
            put_char(text[i], true);
    if (quoted)
        putchar('"');
}

void roff_arg(const char *text) {
    roff_arg_part(text, strlen(text));
}

void roff_call(const char *name) {
    printf(" %s", name);
}

void roff_end(void) {
    putchar('\n');
}

/* ---- words ----------------------------------------------------------------------------------- */

static void put_word(const char *word, size_t size) {
    if (column && column + 3 + size > WIDTH)
        end_line();
    if (column)
        putchar(' ');
    else if (*word == '.' || *word == '\'')
        fputs("\\&", stdout);
    /* What is not English is not to be hyphenated. */
    for (size_t i = 0; i < size; i++)
        if (strchr("{}[]_/=+*<>", word[i])) {
            fputs("\\%", stdout);
            break;
        }
    put_chars(word, size, false);
    column += (column ? 1 : 0) + size;
}

/* What stands behind a marked word. */
static void put_suffix(const char *text, size_t size) {
    for (; size && strchr(".,;:)?!]", *text); text++, size--)
        printf(" %c", *text);
    if (size) {
        roff_call("Ns");
        roff_arg_part(text, size);
    }
}

static size_t span_name(const char *text, size_t size, const char *others) {
    size_t i = 0;
    while (i < size && (isalnum((unsigned char)text[i]) || strchr(others, text[i])))
        i++;
    while (i && !isalnum((unsigned char)text[i - 1]))
        i--;
    return i;
}

/* Finds what is to be marked at the beginning of a text; the macro for it, or NULL. */
static const char *classify(const char *text, size_t size, size_t *core) {
    if (size > 2 && text[0] == '-' && text[1] == '-' && islower((unsigned char)text[2])) {
        *core = 2 + span_name(text + 2, size - 2, "-");
        return "Fl";
    }
    if (size > 1 && text[0] == '-' && isalpha((unsigned char)text[1])) {
        *core = 2;
        return size > 2 && (isalnum((unsigned char)text[2]) || text[2] == '-') ? NULL : "Fl";
    }
    *core = span_name(text, size, "_.");
    return *core && marker ? marker(text, *core) : NULL;
}

static bool is_end(const char *word, size_t size) {
    static const char *const shortened[] = {"e.g.", "i.e.", "vs."};

    for (size_t i = 0; i < sizeof shortened / sizeof shortened[0]; i++)
        if (size == strlen(shortened[i]) && memcmp(word, shortened[i], size) == 0)
            return false;
    while (size && strchr(")\"'`]", word[size - 1]))
        size--;
    return size && strchr(".?!", word[size - 1]) && (size < 3 || word[size - 2] != '.');
}

static void put_marked(const char *word, size_t size) {
    size_t prefix = 0, core = 0;

    while (prefix < size && strchr("([\"", word[prefix]))
        prefix++;
    const char *text = word + prefix,
               *quote = memchr(text + 1, '`', size - prefix ? size - prefix - 1 : 0);
    const char *macro = classify(text, size - prefix, &core);
    size_t behind = core; /* where the suffix begins */
    if (prefix < size && *text == '`' && quote) {
        macro = "Va";
        core = (size_t)(quote - ++text);
        behind = core + 1;
    } else if (marker && core && strncmp(text + core, "()", 2) == 0) {
        macro = "Fn";
        behind += 2;
    }
    if (!macro) {
        put_word(word, size);
    } else {
        if (prefix) {
            roff_macro("Pf");
            roff_arg_part(word, prefix);
            roff_call(macro);
        } else {
            roff_macro(macro);
        }
        const size_t dash = *text == '-' ? 1 : 0;
        roff_arg_part(text + dash, core - dash);
        put_suffix(text + behind, (size_t)(word + size - text) - behind);
        roff_end();
    }
    if (is_end(word, size))
        end_line();
}

/* ---- sentences ------------------------------------------------------------------------------- */

static void put_prose(const char *text, size_t size) {
    char *joined = malloc(size + 1);
    size_t used = 0;

    if (!joined)
        abort();
    for (size_t i = 0; i < size; i++) {
        const bool hyphen = i > 1 && text[i] == '\n' && text[i - 1] == '-' &&
                            isalpha((unsigned char)text[i - 2]) && i + 1 < size &&
                            islower((unsigned char)text[i + 1]);
        if (!hyphen)
            joined[used++] = text[i] == '\n' ? ' ' : text[i];
    }
    joined[used] = 0;
    for (const char *word = joined + strspn(joined, " "); *word; word += strspn(word, " ")) {
        const size_t length = strcspn(word, " ");
        put_marked(word, length);
        word += length;
    }
    end_line();
    free(joined);
}

void roff_prose(const char *text) {
    put_prose(text, strlen(text));
}

void roff_sentence(const char *phrase, bool begins) {
    const size_t size = strlen(phrase), first = strcspn(phrase, " ");
    const bool open = size > 2 && strcmp(phrase + size - 3, "...") == 0;
    char *text = malloc(size + 2);

    if (!text || !size)
        abort();
    snprintf(text, size + 2, "%s%s", phrase, open ? "" : ".");
    /* What is followed by a colon is a name. */
    if (begins && isalpha((unsigned char)text[1]) && text[first - 1] != ':')
        text[0] = (char)toupper((unsigned char)text[0]);
    roff_prose(text);
    free(text);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static size_t line_size(const char *line) {
    const size_t size = strcspn(line, "\n");
    return size + (line[size] == '\n');
}

/* "  name  text": where the text begins; 0 if it is no such line. */
static size_t item_text(const char *line) {
    if (strncmp(line, "  ", 2) != 0 || line[2] == ' ' || line[2] == '\n')
        return 0;
    const char *gap = strstr(line, "\n"), *two = strstr(line + 2, "  ");
    if (!two || (gap && two > gap))
        return 0;
    return (size_t)(two - line) + strspn(two, " ");
}

/* Puts a list; where it ends. */
static const char *put_list(const char *line) {
    size_t longest = 0;
    const char *widest = line;

    for (const char *at = line; item_text(at) || strncmp(at, "   ", 3) == 0; at += line_size(at)) {
        const size_t name = item_text(at) ? strcspn(at + 2, " ") : 0;
        if (name > longest) {
            longest = name;
            widest = at;
        }
    }
    printf(".Bl -tag -width %.*s -offset indent -compact\n", (int)longest, widest + 2);
    while (item_text(line)) {
        const char *text = line + item_text(line);
        roff_macro("It Cm");
        roff_arg_part(line + 2, strcspn(line + 2, " "));
        roff_end();
        line += line_size(line);
        while (strncmp(line, "   ", 3) == 0)
            line += line_size(line);
        put_prose(text, (size_t)(line - text));
    }
    puts(".El");
    return line;
}

void roff_details(const char *lines) {
    const char *line = lines;

    while (*line) {
        if (*line == '\n') {
            puts(".Pp");
            line++;
        } else if (item_text(line)) {
            line = put_list(line);
        } else {
            const char *begin = line;
            while (*line && *line != '\n' && !item_text(line))
                line += line_size(line);
            put_prose(begin, (size_t)(line - begin));
        }
    }
}

void roff_literal(const char *lines) {
    puts(".Bd -literal -offset 4n");
    while (*lines) {
        const size_t size = strcspn(lines, "\n");
        if (*lines == '.' || *lines == '\'')
            fputs("\\&", stdout);
        put_chars(lines, size, true);
        putchar('\n');
        lines += line_size(lines);
    }
    puts(".Ed");
}
