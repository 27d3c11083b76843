/* Text as mdoc(7) wants it: a sentence begins a line, and names of options and functions are marked
 * as what they are. All goes to standard output. */
#ifndef PAGES_ROFF_H
#define PAGES_ROFF_H

#include <stdbool.h>
#include <stddef.h>

/* A macro's line: roff_macro, any of roff_arg and roff_call, roff_end. */
void roff_macro(const char *name);
void roff_arg(const char *text);                   /* to be shown as it is */
void roff_arg_part(const char *text, size_t size); /* the same, of its first bytes */
void roff_call(const char *name);                  /* a macro within the line, or a delimiter */
void roff_end(void);

/* Sentences, however they are cut into lines. A hyphen at the end of a line stays, without a gap.
 */
void roff_prose(const char *text);
/* A phrase without a full stop as a sentence, or as the end of one. */
void roff_sentence(const char *phrase, bool begins);
/* What a descriptor tells in lines: paragraphs, and lists whose lines begin with two spaces, a
 * name and two spaces more. */
void roff_details(const char *lines);
/* Lines to be typed, or to be compiled, as they are. */
void roff_literal(const char *lines);

/* Which macro a word of prose is for; NULL: none. For words of letters, digits, '_' and '.' alone.
 */
typedef const char *roff_marker(const char *word, size_t size);
void roff_set_marker(roff_marker *marker);

#endif
