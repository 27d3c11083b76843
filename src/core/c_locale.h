/* Scope that makes number formatting and parsing independent of the program's locale: the decimal
 * separator is a point. The including file defines _GNU_SOURCE or _POSIX_C_SOURCE 200809L. */
#ifndef GF_C_LOCALE_H
#define GF_C_LOCALE_H

#include <langinfo.h>
#include <locale.h>
#include <string.h>

typedef struct gf_c_locale {
    locale_t c, before;
} gf_c_locale;

/* Switch this thread to the "C" locale until gf_c_locale_leave. Do nothing if the decimal separator
 * is already a point, because newlocale is slow, or if newlocale fails. */
static inline gf_c_locale gf_c_locale_enter(void) {
    gf_c_locale scope = {.c = (locale_t)0};
    if (strcmp(nl_langinfo(RADIXCHAR), ".") != 0)
        scope.c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (scope.c)
        scope.before = uselocale(scope.c);
    return scope;
}

static inline void gf_c_locale_leave(gf_c_locale *scope) {
    if (!scope->c)
        return;
    uselocale(scope->before);
    freelocale(scope->c);
}

#endif
