/* Numbers as files and command lines write them, with a point, whatever locale the program has set.
 * The including file defines _GNU_SOURCE or _POSIX_C_SOURCE 200809L. */
#ifndef GF_C_LOCALE_H
#define GF_C_LOCALE_H

#include <langinfo.h>
#include <locale.h>
#include <string.h>

typedef struct gf_c_locale {
    locale_t c, before;
} gf_c_locale;

/* This thread's locale is "C" until leave, unless it has that point anyway: making a locale is
 * slow. Without memory it stays what it is. */
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
