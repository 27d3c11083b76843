#include "man.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roff.h"
#include "template.h"

/* "2026-12-31" */
static bool is_date(const char *text) {
    static const char form[] = "0000-00-00";
    size_t i = 0;

    while (form[i] && (form[i] == '0' ? isdigit((unsigned char)text[i]) != 0 : text[i] == form[i]))
        i++;
    return !form[i];
}

static int number(const char *digits) {
    return 10 * (digits[0] - '0') + digits[1] - '0';
}

/* The first date in the change log is that of the newest version: as good a date as a page can
 * have, and the same whenever and wherever it is made. */
static void put_date(void) {
    static const char *const months[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
    char *log = template_read("CHANGELOG.md");
    const char *heading = strstr(log, "\n## "), *at = heading ? heading + 1 : "";

    while (*at && *at != '\n' && !is_date(at))
        at++;
    const int month = is_date(at) ? number(at + 5) : 0;
    if (month < 1 || month > 12) {
        fprintf(stderr, "pages: CHANGELOG.md: its first version has no date like 2026-12-31\n");
        exit(1);
    }
    printf(".Dd %s %d, %.4s\n", months[month - 1], number(at + 8), at);
    free(log);
}

void man_head(const char *name, const char *section) {
    puts(
        ".\\\" Made by build/pages from the descriptors in the source: change those, or src/pages.");
    put_date();
    printf(".Dt ");
    for (; *name; name++)
        putchar(toupper((unsigned char)*name));
    printf(" %s\n.Os \"gpufilter %s\"\n", section, gf_version());
}

/* ---- references ------------------------------------------------------------------------------ */

#define MOST_NAMES 64

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void man_references(const char *except, bool filters, bool commands) {
    const char *names[MOST_NAMES] = {0};
    size_t count = 0;
    subject s;

    for (size_t i = 0; subject_at(i, &s) && count < MOST_NAMES; i++)
        if ((s.is_filter ? filters : commands) && (!except || strcmp(s.info->name, except) != 0))
            names[count++] = s.info->name;
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++)
        printf(".Xr gpufilter-%s 1 ,\n", names[i]);
    puts(".Xr gpufilter 3");
}
