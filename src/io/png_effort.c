#include "io/png_effort.h"

#include <string.h>

#include "io/costs.h"

const char *const *gf_compressions(void) {
    static const char *const names[] = {"fast", "balanced", "small", "0", "1", "2", "3",
                                        "4",    "5",        "6",     "7", "8", "9", NULL};
    return names;
}

bool gf_png_effort_of(const char *name, gf_png_effort *effort) {
    *effort = GF_PNG_FAST;
    if (!name)
        return true;
    for (int i = 0; gf_compressions()[i]; i++)
        if (strcmp(name, gf_compressions()[i]) == 0) {
            *effort = (gf_png_effort)(i < 3 ? GF_PNG_FAST + i : i - 3);
            return true;
        }
    return false;
}

double gf_png_encode_cost(const char *compression) {
    gf_png_effort effort;
    gf_png_effort_of(compression, &effort);
    return effort == GF_PNG_FAST ? GF_PNG_ENCODE_COST_FAST : GF_PNG_ENCODE_COST_SLOW;
}
