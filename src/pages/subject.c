#include "subject.h"

#include <string.h>

/* A command names what it takes of the filters' options. */
static void share_named(subject *s, const gf_command *command) {
    gf_param all[GF_CLI_MAX_COMMON];
    const size_t count = gf_cli_common(&command->info, all);

    for (const char *const *name = command->shared; *name; name++)
        for (size_t i = 0; i < count && s->shared_count < GF_CLI_MAX_COMMON; i++)
            if (strcmp(all[i].name, *name) == 0)
                s->shared[s->shared_count++] = all[i];
}

bool subject_at(size_t index, subject *s) {
    const size_t filters = gf_filter_count();

    *s = (subject){.is_filter = index < filters};
    if (s->is_filter) {
        s->info = gf_filter_describe(gf_filter_at(index));
        s->shared_count = gf_cli_common(s->info, s->shared);
        return true;
    }
    const gf_command *command = gf_command_at(index - filters);
    if (!command)
        return false;
    s->info = &command->info;
    share_named(s, command);
    return true;
}

bool subject_find(const char *name, subject *s) {
    for (size_t i = 0; subject_at(i, s); i++)
        if (strcmp(s->info->name, name) == 0)
            return true;
    return false;
}

const gf_param *subject_option(const subject *s, size_t index) {
    const size_t own = s->info->param_count;

    if (index < own)
        return &s->info->params[index];
    return index - own < s->shared_count ? &s->shared[index - own] : NULL;
}

const gf_param *subject_shared(const subject *s, const char *name) {
    for (size_t i = 0; i < s->shared_count; i++)
        if (strcmp(s->shared[i].name, name) == 0)
            return &s->shared[i];
    return NULL;
}

bool subject_takes_many(const subject *s) {
    return s->is_filter && subject_shared(s, "files-from");
}

static size_t place_of(const gf_param *params, size_t count, const char *name) {
    size_t i = 0;

    while (i < count && strcmp(params[i].name, name) != 0)
        i++;
    return i;
}

/* Every filter has some of one list, in its order: what one lacks goes where another has it. */
size_t subject_all_shared(gf_param params[GF_CLI_MAX_COMMON]) {
    size_t count = 0;
    subject s;

    for (size_t index = 0; subject_at(index, &s) && s.is_filter; index++) {
        size_t at = 0; /* behind what both have */
        for (size_t i = 0; i < s.shared_count; i++) {
            const size_t there = place_of(params, count, s.shared[i].name);
            if (there < count) {
                at = there + 1;
            } else if (count < GF_CLI_MAX_COMMON) {
                memmove(&params[at + 1], &params[at], (count - at) * sizeof *params);
                params[at++] = s.shared[i];
                count++;
            }
        }
    }
    return count;
}
