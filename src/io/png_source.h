/* The PNG source beside its everyday entrance in kinds.h. */
#ifndef GF_PNG_SOURCE_H
#define GF_PNG_SOURCE_H

#include "io/kinds.h"

/* The same image with every row read by libpng: what the fast way is compared with. */
gf_open_source gf_png_source_open_libpng;

#endif
