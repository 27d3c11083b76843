/* Prints every case of every filter, one a line: the filter's name, a tab, the parameters. */
#include <stdio.h>

#include "filter.h"

int main(void) {
    for (size_t f = 0; f < gf_filter_count(); f++)
        for (size_t c = 0; gf_filter_at(f)->info.cases[c]; c++)
            printf("%s\t%s\n", gf_filter_at(f)->info.name, gf_filter_at(f)->info.cases[c]);
    return 0;
}
