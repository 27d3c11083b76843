/* The manual pages. */
#ifndef PAGES_MAN_H
#define PAGES_MAN_H

#include "subject.h"

/* What all pages begin with: the date, the name in capitals, the section. */
void man_head(const char *name, const char *section);
/* A tagged list of options: what each is, the values that it takes, the default. who: tell which
 * filters have it, where not all do. */
void man_options(const gf_param *params, size_t count, bool who);
/* How sizes may end, where any of an own or a shared option is one. */
void man_sizes(const gf_param *own, size_t own_count, const gf_param *shared, size_t shared_count);
/* References to the pages of the filters, the commands, or both, except one (or NULL), after
 * gpufilter(1); with the library's behind them. */
void man_references(const char *except, bool filters, bool commands);

void man_overview(void);
void man_page(const subject *s);
void man_library(void);

#endif
