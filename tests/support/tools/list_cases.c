/* Print every case of every filter, one per line, with fields separated by tabs: name of the
 * filter, number of input images, kind of output ("image" or "result"), and parameters. A parameter
 * with a file name is printed as name=@image or name=@samples. */
#include <stdio.h>
#include <string.h>

#include "core/filter.h"

static gf_param_type type_of(const gf_filter_info *info, const char *word, size_t length) {
    for (size_t i = 0; i < info->param_count; i++)
        if (strlen(info->params[i].name) == length &&
            strncmp(info->params[i].name, word, length) == 0)
            return info->params[i].type;
    return GF_PARAM_FLAG;
}

static void print_case(const gf_filter_info *info, const char *text) {
    printf("%s\t%u\t%s\t", info->name, info->inputs, info->makes_image ? "image" : "result");
    for (const char *gap = ""; *text; gap = " ") {
        const size_t word = strcspn(text, " "), name = strcspn(text, " =");
        const gf_param_type type = type_of(info, text, name);
        if (type == GF_PARAM_IMAGE || type == GF_PARAM_SAMPLES)
            printf("%s%.*s=@%s", gap, (int)name, text,
                   type == GF_PARAM_IMAGE ? "image" : "samples");
        else
            printf("%s%.*s", gap, (int)word, text);
        text += word;
        text += strspn(text, " ");
    }
    putchar('\n');
}

int main(void) {
    for (size_t f = 0; gf_filter_at(f); f++) {
        const gf_filter_info *info = gf_filter_describe(gf_filter_at(f));
        for (size_t c = 0; info->cases[c]; c++)
            print_case(info, info->cases[c]);
    }
    return 0;
}
