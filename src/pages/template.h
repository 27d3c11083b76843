/* Texts with gaps. A line "@name@" is a gap: something else puts lines there. */
#ifndef PAGES_TEMPLATE_H
#define PAGES_TEMPLATE_H

#include <stdbool.h>

/* Writes a gap's lines. The context is the one of template_fill. */
typedef struct template_gap {
    const char *name;
    void (*put)(const void *context);
} template_gap;

/* The whole of a file of the project, which is run in its own folder; free() it. Ends the program
 * where that cannot be read. */
char *template_read(const char *path);
/* Writes a file on standard output, its gaps filled. They end with a row of NULL. A gap that is not
 * among them ends the program. */
void template_fill(const char *path, const template_gap *gaps, const void *context);

#endif
