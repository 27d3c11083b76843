#include "header.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *memory) {
    if (!memory)
        abort();
    return memory;
}

/* Where a text has what belongs there. */
static const char *must_find(const char *text, const char *what) {
    const char *at = strstr(text, what);

    if (at)
        return at;
    fprintf(stderr, "pages: the header is in another style: no '%s' in: %.60s\n", what, text);
    exit(1);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Characters without comments and in one line: each run of blanks is a space. */
static char *squeeze(const char *text, size_t size) {
    char *out = must(malloc(size + 1));
    size_t used = 0;

    for (size_t i = 0; i < size; i++) {
        if (size - i > 1 && text[i] == '/' && text[i + 1] == '*') {
            while (i + 1 < size && (text[i] != '*' || text[i + 1] != '/' || text[i - 1] == '/'))
                i++;
            i++;
        } else if (!isspace((unsigned char)text[i])) {
            out[used++] = text[i];
        } else if (used && out[used - 1] != ' ') {
            out[used++] = ' ';
        }
    }
    while (used && out[used - 1] == ' ')
        used--;
    out[used] = 0;
    return out;
}

/* What a comment says; *at is behind its end then. */
static char *read_comment(const char **at) {
    const char *from = *at + 2, *end = must_find(from, "*/");
    char *out = must(malloc((size_t)(end - from) + 2));
    size_t used = 0;

    *at = end + 2;
    while (from < end) {
        const char *line_end = memchr(from, '\n', (size_t)(end - from));
        if (!line_end)
            line_end = end;
        while (from < line_end && *from == ' ')
            from++;
        if (from < line_end && *from == '*')
            from++;
        while (from < line_end && *from == ' ')
            from++;
        const size_t size = (size_t)(line_end - from);
        if (size == 0 && used && out[used - 1] == '\n')
            out[used++] = '\n';
        memcpy(out + used, from, size);
        used += size;
        if (size)
            out[used++] = '\n';
        from = line_end + (line_end < end);
    }
    while (used && isspace((unsigned char)out[used - 1]))
        used--;
    out[used] = 0;
    return out;
}

/* A comment that follows on the same line, or "". */
static char *read_aside(const char **at) {
    const char *next = *at + strspn(*at, " ");

    if (strncmp(next, "/*", 2) != 0)
        return must(strdup(""));
    char *text = read_comment(&next);
    *at = next;
    return text;
}

/* The end of a declaration: behind what ends it outside of all braces and comments. */
static const char *declaration_end(const char *text, char end) {
    int depth = 0;

    for (; *text; text++) {
        if (strncmp(text, "/*", 2) == 0)
            text = must_find(text, "*/") + 1;
        else if (strchr("{(", *text))
            depth++;
        else if (strchr("})", *text))
            depth--;
        else if (*text == end && depth == 0)
            return text + 1;
    }
    return text;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

typedef struct list {
    header_piece *pieces;
    size_t count;
} list;

static header_piece *add(list *l, header_piece piece) {
    l->pieces = must(realloc(l->pieces, (l->count + 1) * sizeof *l->pieces));
    l->pieces[l->count] = piece;
    return &l->pieces[l->count++];
}

static char *copy_word(const char *from) {
    size_t size = 0;

    while (isalnum((unsigned char)from[size]) || from[size] == '_')
        size++;
    return must(strndup(from, size));
}

/* "---- name ----...", and what follows it in the same comment. */
static void add_section(list *l, char *comment) {
    const char *name = comment + strspn(comment, "- ");
    const char *end = must_find(name, " --");
    const char *text = end + 1 + strspn(end + 1, "- \n");

    add(l, (header_piece){.kind = HEADER_SECTION,
                          .name = must(strndup(name, (size_t)(end - name))),
                          .code = must(strdup("")),
                          .comment = must(strdup(text)),
                          .aside = must(strdup(""))});
    free(comment);
}

/* Of "type name(arguments)" what stands before the parenthesis. */
static char *function_name(const char *code) {
    const char *end = must_find(code, "("), *begin = end;

    while (begin > code && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_'))
        begin--;
    return copy_word(begin);
}

static size_t last_word(const char *code) {
    size_t i = strlen(code);

    while (i && code[i - 1] != ' ')
        i--;
    return i;
}

/* Takes a declaration apart; its code is what it has been found to be. */
static void classify(header_piece *piece, const char *text, size_t size) {
    const char *brace = memchr(text, '{', size);

    free(piece->code);
    if (brace) {
        const char *last = text + size;
        while (last[-1] != '}')
            last--;
        piece->kind = strncmp(text, "typedef enum", 12) == 0 ? HEADER_ENUM : HEADER_STRUCT;
        piece->name = copy_word(last + strspn(last, " "));
        piece->code = must(strndup(brace + 1, (size_t)(last - 1 - brace - 1)));
        return;
    }
    char *code = squeeze(text, size);
    code[strlen(code) - 1] = 0; /* the semicolon */
    const bool api = strncmp(code, "GF_API ", 7) == 0;
    piece->code = must(strdup(api ? code + 7 : code));
    free(code);
    if (strchr(piece->code, '(')) {
        piece->kind = HEADER_FUNCTION;
        piece->name = function_name(piece->code);
    } else {
        piece->kind = HEADER_TYPE;
        piece->name = copy_word(piece->code + last_word(piece->code));
    }
}

static const char *next_line(const char *at) {
    at += strcspn(at, "\n");
    return at + (*at == '\n');
}

/* "#define NAME value" */
static void add_define(list *l, const char *line, char *comment, bool joined) {
    const char *name = line + strlen("#define ");
    char *word = copy_word(name);
    const char *value = name + strlen(word), *comment_at = strstr(value, "/*"),
               *end = next_line(line);

    if (*value && strncmp(word, "GF_", 3) == 0 && strcmp(word, "GF_API") != 0)
        add(l, (header_piece){.kind = HEADER_DEFINE,
                              .name = must(strdup(word)),
                              .code = squeeze(value, (size_t)(end - value)),
                              .comment = comment ? comment : must(strdup("")),
                              .aside = comment_at && comment_at < end ? read_aside(&comment_at)
                                                                      : must(strdup("")),
                              .joined = joined});
    else
        free(comment);
    free(word);
}

header_piece *header_read(const char *text) {
    list l = {0};
    char *comment = NULL; /* that waits for what it is about */
    bool joined = false;

    while (*text) {
        if (strncmp(text, "/*", 2) == 0) {
            free(comment);
            comment = read_comment(&text);
            joined = false;
            if (l.count == 0) {
                add(&l, (header_piece){.kind = HEADER_INTRO,
                                       .name = must(strdup("")),
                                       .code = must(strdup("")),
                                       .comment = comment,
                                       .aside = must(strdup(""))});
                comment = NULL;
            } else if (strncmp(comment, "----", 4) == 0) {
                add_section(&l, comment);
                comment = NULL;
            }
            text = next_line(text);
        } else if (strncmp(text, "#define ", 8) == 0) {
            add_define(&l, text, comment, joined);
            comment = NULL;
            joined = true;
            text = next_line(text);
        } else if (strncmp(text, "typedef ", 8) == 0 || strncmp(text, "GF_API ", 7) == 0) {
            const char *end = declaration_end(text, ';');
            header_piece *piece =
                add(&l, (header_piece){.comment = comment ? comment : must(strdup("")),
                                       .joined = joined && !comment});
            classify(piece, text, (size_t)(end - text));
            piece->aside = read_aside(&end);
            comment = NULL;
            joined = true;
            text = next_line(end);
        } else {
            joined = false; /* an empty line, or one for the compiler */
            text = next_line(text);
        }
    }
    free(comment);
    add(&l, (header_piece){0});
    return l.pieces;
}

header_piece *header_members(const header_piece *whole) {
    const char ends = whole->kind == HEADER_ENUM ? ',' : ';';
    const char *at = whole->code + strspn(whole->code, " \n");
    list l = {0};

    while (*at) {
        char *comment = NULL;
        while (strncmp(at, "/*", 2) == 0) {
            free(comment);
            comment = read_comment(&at);
            at += strspn(at, " \n");
        }
        /* The last of an enum has a comment or nothing behind it, but no comma. */
        const char *end = declaration_end(at, ends), *stop = end;
        const char *aside = strstr(at, "/*");
        if (aside && aside < end)
            end = stop = aside;
        else if (end > at && end[-1] == ends)
            stop = end - 1;
        add(&l, (header_piece){.kind = HEADER_DEFINE,
                               .name = must(strdup("member")),
                               .code = squeeze(at, (size_t)(stop - at)),
                               .comment = comment ? comment : must(strdup("")),
                               .aside = read_aside(&end)});
        at = end + strspn(end, " \n");
    }
    add(&l, (header_piece){0});
    return l.pieces;
}

void header_free(header_piece *pieces) {
    for (header_piece *piece = pieces; piece->name; piece++) {
        free(piece->name);
        free(piece->code);
        free(piece->comment);
        free(piece->aside);
    }
    free(pieces);
}
