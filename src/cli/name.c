#include "name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "about.h"
#include "cli.h"

#define MAX_DIGITS 20

const char *gf_cli_ending(const char *base) {
    const char *dot = strrchr(base, '.');
    return dot && dot != base ? dot : "";
}

/* The kind of files that its ending stands for; NULL: none that is known. */
static const gf_about_format *find_format(const char *name) {
    const char *ending = gf_cli_ending(name);
    for (const gf_about_format *format = gf_about_formats; *ending && format->name; format++)
        for (const char *at = format->endings; *at; at += strspn(at, " ")) {
            const size_t size = strcspn(at, " ");
            if (strlen(ending + 1) == size && strncasecmp(ending + 1, at, size) == 0)
                return format;
            at += size;
        }
    return NULL;
}

bool gf_cli_is_picture(const char *name, bool raw) {
    const gf_about_format *format = find_format(name);
    return format && raw == (strcmp(format->endings, "raw") == 0);
}

bool gf_cli_is_written(const char *name) {
    const gf_about_format *format = find_format(name);
    return format && format->written;
}

/* ---- templates ------------------------------------------------------------------------------- */

typedef enum gf_part_kind {
    PART_END,
    PART_CHARACTER,
    PART_STEM,
    PART_EXT,
    PART_INDEX,
    PART_NAME,
    PART_WRONG
} gf_part_kind;

typedef struct gf_part {
    gf_part_kind kind;
    char character;
    int digits;
} gf_part;

/* What stands in braces, without them. */
static gf_part read_braces(const char *text, size_t length) {
    static const struct {
        const char *name;
        gf_part_kind kind;
    } known[] = {
        {"stem", PART_STEM}, {"ext", PART_EXT}, {"index", PART_INDEX}, {"name", PART_NAME}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i].name) == length && memcmp(text, known[i].name, length) == 0)
            return (gf_part){.kind = known[i].kind};
    gf_part part = {.kind = PART_WRONG};
    if (length < 7 || length > 8 || memcmp(text, "index:", 6) != 0)
        return part;
    for (size_t i = 6; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return part;
        part.digits = 10 * part.digits + text[i] - '0';
    }
    if (part.digits >= 1 && part.digits <= MAX_DIGITS)
        part.kind = PART_INDEX;
    return part;
}

/* The part that *at points to, and *at behind it. */
static gf_part next_part(const char **at) {
    const char *text = *at;
    if (!*text)
        return (gf_part){.kind = PART_END};
    if ((*text != '{' && *text != '}') || text[1] == *text) {
        *at += text[1] == *text && (*text == '{' || *text == '}') ? 2 : 1;
        return (gf_part){.kind = PART_CHARACTER, .character = *text};
    }
    const size_t length = strcspn(text + 1, "{}");
    if (*text == '}' || text[1 + length] != '}')
        return (gf_part){.kind = PART_WRONG};
    *at += length + 2;
    return read_braces(text + 1, length);
}

gf_status gf_cli_template_check(const char *template, gf_error *error) {
    if (strchr(template, '/'))
        return gf_set_error(error, GF_USAGE,
                            "--name '%s': is for names without folders; --out-dir says where, and "
                            "--recursive keeps folders",
                            template);
    const char *at = template;
    gf_part part = next_part(&at);
    while (part.kind != PART_END && part.kind != PART_WRONG)
        part = next_part(&at);
    if (part.kind == PART_WRONG || !*template)
        return gf_set_error(error, GF_USAGE,
                            "--name '%s': must be text with {stem}, {ext}, {name}, {index} or "
                            "{index:DIGITS}; {{ and }} are braces",
                            template);
    return GF_OK;
}

/* Of a kind that is not written: .png. */
static void put_ending(FILE *file, const char *base, const char *format) {
    if (format)
        fprintf(file, ".%s", format);
    else
        fputs(gf_cli_is_written(base) ? gf_cli_ending(base) : ".png", file);
}

char *gf_cli_template_fill(const char *template, const char *base, const char *format,
                           uint64_t index) {
    char *name = NULL;
    size_t size;
    FILE *file = open_memstream(&name, &size);
    if (!file)
        return NULL;
    const char *at = template;
    for (gf_part part = next_part(&at); part.kind != PART_END; part = next_part(&at)) {
        if (part.kind == PART_CHARACTER)
            putc(part.character, file);
        else if (part.kind == PART_STEM)
            fwrite(base, 1, strlen(base) - strlen(gf_cli_ending(base)), file);
        else if (part.kind == PART_EXT)
            put_ending(file, base, format);
        else if (part.kind == PART_NAME)
            fputs(base, file);
        else
            fprintf(file, "%0*" PRIu64, part.digits, index);
    }
    /* What did not fit is missing in the middle, too. */
    const bool whole = !ferror(file);
    if (fclose(file) == 0 && whole)
        return name;
    free(name);
    return NULL;
}
