/* The library's header, taken apart: it is written in one style, and nothing else is understood. */
#ifndef PAGES_HEADER_H
#define PAGES_HEADER_H

#include <stdbool.h>
#include <stddef.h>

typedef enum header_kind {
    HEADER_INTRO,   /* the first comment */
    HEADER_SECTION, /* "---- name ----" */
    HEADER_FUNCTION,
    HEADER_TYPE, /* an opaque one */
    HEADER_STRUCT,
    HEADER_ENUM,
    HEADER_DEFINE
} header_kind;

/* A piece of it. Texts are without comment marks and in one line a paragraph, an empty line between
 * them; "" for none. */
typedef struct header_piece {
    header_kind kind;
    char *name;
    char *code; /* what is declared: without GF_API and the semicolon, in one line; of a struct or
                 * an enum what stands in its braces, as it is */
    char *comment; /* above it */
    char *aside;   /* behind it */
    bool
        joined; /* follows the piece before it without a comment or a gap: that one's is for both */
} header_piece;

/* The pieces of a text, to the one without a name; header_free frees them. */
header_piece *header_read(const char *text);
void header_free(header_piece *pieces);

/* The members of a struct or an enum, in the same form: code, comment and aside. */
header_piece *header_members(const header_piece *whole);

#endif
