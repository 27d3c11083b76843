/* gpufilter(3): the library's header as a page. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "header.h"
#include "man.h"
#include "roff.h"
#include "template.h"

static const header_piece *header;

static const header_piece *find(const char *name, size_t size) {
    for (const header_piece *piece = header; piece->name; piece++)
        if (*piece->name && strlen(piece->name) == size && memcmp(piece->name, name, size) == 0)
            return piece;
    return NULL;
}

/* What the comments speak of. */
static const char *mark(const char *word, size_t size) {
    const size_t dot = strcspn(word, ".");
    const header_piece *piece = find(word, dot < size ? dot : size);

    if (piece && piece->kind == HEADER_FUNCTION)
        return dot < size ? NULL : "Fn";
    if (piece && piece->kind != HEADER_SECTION)
        return piece->kind == HEADER_DEFINE ? "Dv" : "Vt";
    return size > 3 && memcmp(word, "GF_", 3) == 0 ? "Dv" : NULL;
}

/* ---- declarations ---------------------------------------------------------------------------- */

/* Where an argument ends: at a comma outside of all parentheses, or at the last of them. */
static size_t argument_size(const char *text) {
    int depth = 0;
    size_t i = 0;

    for (; text[i] && (depth || !strchr(",)", text[i])); i++)
        depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    return i;
}

static void put_function(const header_piece *piece) {
    const char *name = strstr(piece->code, piece->name);
    size_t type = (size_t)(name - piece->code);
    const bool pointer = type && piece->code[type - 1] == '*';

    while (type && piece->code[type - 1] == ' ')
        type--;
    roff_macro("It Ft");
    roff_arg_part(piece->code, type);
    roff_call(pointer ? "Ns Fn" : "Fn");
    roff_arg(piece->name);
    for (const char *at = name + strlen(piece->name) + 1; *at && *at != ')';) {
        const size_t size = argument_size(at);
        roff_arg_part(at, size);
        at += size;
        at += strspn(at, ", ");
    }
    roff_end();
}

static void put_members(const header_piece *piece) {
    header_piece *members = header_members(piece);

    puts(".Bl -tag -width Ds -compact");
    for (const header_piece *member = members; member->name; member++) {
        roff_macro(piece->kind == HEADER_ENUM ? "It Dv" : "It Vt");
        roff_arg(member->code);
        roff_end();
        roff_details(member->comment);
        roff_details(member->aside);
    }
    puts(".El");
    header_free(members);
}

static void put_heading(const header_piece *piece) {
    switch (piece->kind) {
    case HEADER_FUNCTION:
        put_function(piece);
        break;
    case HEADER_DEFINE:
        printf(".It Dv %s No", piece->name);
        roff_arg(piece->code);
        roff_end();
        break;
    default:
        printf(".It Vt %s\n", piece->name);
    }
}

/* What frees or closes is not what is told of the call that makes, which stands above it. */
static bool is_end_of_life(const char *name) {
    const char *last = strrchr(name, '_');

    return last && (strcmp(last, "_free") == 0 || strcmp(last, "_close") == 0);
}

/* Pieces that are joined come together, with one text: what stands above the first of them, and of
 * each what stands behind it. Returns the first piece that does not belong to them. */
static const header_piece *put_group(const header_piece *first) {
    const header_piece *end = first;

    do
        put_heading(end++);
    while (end->name && end->joined && !is_end_of_life(end->name));
    roff_details(first->comment);
    for (const header_piece *piece = first; piece < end; piece++) {
        if (!*piece->aside)
            continue;
        if (end - first > 1) {
            roff_macro(piece->kind == HEADER_FUNCTION ? "Fn" : "Dv");
            roff_arg(piece->name);
            roff_call(":");
            roff_end();
        }
        roff_sentence(piece->aside, end - first == 1);
    }
    if (first->kind == HEADER_STRUCT || first->kind == HEADER_ENUM)
        put_members(first);
    return end;
}

/* ---- gaps ------------------------------------------------------------------------------------ */

static void put_head(const void *context) {
    (void)context;
    man_head("gpufilter", "3");
}

/* The header's first line is "name: what it is." */
static void put_name(const void *context) {
    const char *what = strchr(header->comment, ':');

    (void)context;
    if (what)
        printf(".Nm gpufilter\n.Nd %.*s\n", (int)strcspn(what + 2, ".\n"), what + 2);
}

static void put_intro(const void *context) {
    const char *rest = strstr(header->comment, "\n\n");

    (void)context;
    if (rest)
        roff_details(rest + 2);
}

static void begin_section(const char *name, const char *comment) {
    printf(".Ss %c%s\n", toupper((unsigned char)*name), name + 1);
    roff_details(comment);
    if (*comment)
        puts(".Pp");
}

static void put_sections(const void *context) {
    const header_piece *piece = header + 1;

    (void)context;
    begin_section("version", "");
    while (piece->name) {
        puts(".Bl -tag -width Ds -compact");
        while (piece->name && piece->kind != HEADER_SECTION) {
            piece = put_group(piece);
            if (piece->name && piece->kind != HEADER_SECTION)
                puts(".Pp");
        }
        puts(".El");
        if (piece->name) {
            begin_section(piece->name, piece->comment);
            piece++;
        }
    }
}

static void put_example(const void *context) {
    char *text = template_read("src/pages/example/smooth.c");

    (void)context;
    roff_literal(text);
    free(text);
}

static void put_references(const void *context) {
    (void)context;
    puts(".Xr gpufilter 1");
}

void man_library(void) {
    static const template_gap gaps[] = {{"head", put_head},
                                        {"name", put_name},
                                        {"intro", put_intro},
                                        {"sections", put_sections},
                                        {"example", put_example},
                                        {"references", put_references},
                                        {0}};
    char *text = template_read("src/gpufilter.h");
    header_piece *pieces = header_read(text);

    header = pieces;
    roff_set_marker(mark);
    template_fill("src/pages/gpufilter.3.in", gaps, NULL);
    header_free(pieces);
    free(text);
}
