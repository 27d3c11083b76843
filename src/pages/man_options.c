/* Options in manual pages. */
#include <stdio.h>
#include <string.h>

#include "man.h"
#include "roff.h"

static void put_choices(const gf_param *param) {
    const char *const *choice = param->choices;

    puts(param->type == GF_PARAM_LIST ? "Some of" : "One of");
    for (; *choice; choice++) {
        roff_macro("Cm");
        roff_arg(*choice);
        if (choice[1] && choice[2])
            roff_call(",");
        else if (!choice[1])
            roff_call(param->fallback ? ";" : ".");
        roff_end();
        if (choice[1] && !choice[2])
            puts(param->type == GF_PARAM_LIST ? "and" : "or");
    }
}

/* What it may be and what it is by default, in a sentence. */
static void put_values(const gf_param *param) {
    bool range = true;

    if (param->type == GF_PARAM_INT)
        printf("From %.0f to %.0f", param->min, param->max);
    else if (param->type == GF_PARAM_FLOAT)
        printf("From %.10g to %.10g", param->min, param->max);
    else
        range = false;
    if (range)
        puts(param->fallback ? ";" : ".");
    if (param->choices)
        put_choices(param);
    if (!param->fallback)
        return;
    puts(range || param->choices ? "the default is" : "The default is");
    roff_macro("Cm");
    roff_arg(param->fallback);
    roff_call(".");
    roff_end();
}

/* "For smooth and normalize.", where not all filters have it. */
static void put_who(const gf_param *param) {
    const char *names[64];
    size_t count = 0, filters = 0;
    subject s;

    for (size_t i = 0; subject_at(i, &s) && s.is_filter && count < 64; i++, filters++)
        if (subject_shared(&s, param->name))
            names[count++] = s.info->name;
    if (count == filters)
        return;
    puts("For");
    for (size_t i = 0; i < count; i++) {
        roff_macro("Cm");
        roff_arg(names[i]);
        if (i + 2 < count)
            roff_call(",");
        else if (i + 1 == count)
            roff_call(".");
        roff_end();
        if (i + 2 == count)
            puts("and");
    }
}

void man_options(const gf_param *params, size_t count, bool who) {
    puts(".Bl -tag -width Ds");
    for (size_t i = 0; i < count; i++) {
        const gf_param *param = &params[i];
        roff_macro("It Fl");
        if (param->letter) {
            roff_arg_part(&param->letter, 1);
            roff_call(", Fl");
        }
        char dashed[64];
        snprintf(dashed, sizeof dashed, "-%s", param->name);
        roff_arg(dashed);
        if (param->metavar) {
            roff_call("Ar");
            roff_arg(param->metavar);
        }
        roff_end();
        roff_sentence(param->help, true);
        put_values(param);
        if (who)
            put_who(param);
    }
    puts(".El");
}

/* Puts the options of a list that take a size, and "and" before the last of `all`. */
static size_t put_sizes(const gf_param *params, size_t count, size_t all, size_t put) {
    for (size_t i = 0; i < count; i++) {
        if (params[i].type != GF_PARAM_SIZE)
            continue;
        put++;
        char dashed[64];
        snprintf(dashed, sizeof dashed, "-%s", params[i].name);
        if (put > 1 && put == all)
            puts("and");
        roff_macro("Fl");
        roff_arg(dashed);
        if (put + 1 < all)
            roff_call(",");
        roff_end();
    }
    return put;
}

static size_t count_sizes(const gf_param *params, size_t count) {
    size_t sizes = 0;

    for (size_t i = 0; i < count; i++)
        sizes += params[i].type == GF_PARAM_SIZE;
    return sizes;
}

void man_sizes(const gf_param *own, size_t own_count, const gf_param *shared, size_t shared_count) {
    const size_t all = count_sizes(own, own_count) + count_sizes(shared, shared_count);

    if (!all)
        return;
    puts(all > 1 ? ".Pp\nThe values of" : ".Pp\nThe value of");
    put_sizes(shared, shared_count, all, put_sizes(own, own_count, all, 0));
    puts("may end with K, M, G or T, for the powers of 1024.");
}
