/* Which programs a library serves. */
#ifndef GF_VERSION_H
#define GF_VERSION_H

#include <stdbool.h>

/* Both as GF_VERSION. Before 1.0 what is compiled into programs changes with every minor version;
 * from 1.0 on it is only added to, until the major one changes. */
static inline bool gf_version_serves(int library, int header) {
    const int series = library >= 10000 ? 10000 : 100;
    return header / series == library / series && header / 100 <= library / 100;
}

#endif
