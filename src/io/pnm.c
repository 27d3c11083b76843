#include "io/pnm.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "c_locale.h"
#include "error.h"
#include "io/limits.h"

/* Longest word or line of a header, in bytes, with its end. Numbers need 20. */
enum { WORD_BYTES = 64, LINE_BYTES = 256 };

/* Most bytes of a number with the blanks and comments before it, and of a PAM's header: a file with
 * a hole may be longer than anybody can wait for. */
enum { MOST_TEXT = 1 << 20 };

/* ---- characters ------------------------------------------------------------------------------ */

/* One character; a comment reads as the newline that ends it. EOF also where the text goes on to
 * offset `end`. */
static int next_char(gf_input *input, uint64_t end) {
    int c = gf_input_byte(input);

    if (c == '#') {
        do {
            c = gf_input_byte(input);
        } while (c != '\n' && c != '\r' && c != EOF && input->offset < end);
    }
    return input->offset < end ? c : EOF;
}

/* Not isspace(): that depends on the locale. */
static bool is_space(int c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static gf_status fail_end(const gf_input *input, gf_error *error) {
    if (ferror(input->file))
        return gf_fail(error, GF_FAILED, "%s: cannot read: %s", input->name, strerror(errno));
    if (!feof(input->file))
        return gf_fail(error, GF_FAILED, "%s: has too much text for one number; it is damaged",
                       input->name);
    return gf_fail(error, GF_FAILED, "%s: the file ends too early; get a complete copy",
                   input->name);
}

/* The next word between white space; the one character after it is read as well, as the formats
 * want. */
static gf_status read_word(gf_input *input, const char *what, char word[WORD_BYTES],
                           gf_error *error) {
    const uint64_t end = input->offset + MOST_TEXT;
    size_t length = 0;
    int c;

    do {
        c = next_char(input, end);
    } while (is_space(c));
    while (c != EOF && !is_space(c)) {
        if (length == WORD_BYTES - 1 || c < ' ' || c > '~') {
            return gf_fail(error, GF_FAILED, "%s: its %s is not a number; the file is damaged",
                           input->name, what);
        }
        word[length++] = (char)c;
        c = next_char(input, end);
    }
    word[length] = '\0';
    return length == 0 ? fail_end(input, error) : GF_OK;
}

/* Digits only, with any number of leading zeros. A number over UINT64_MAX counts as that. */
static bool parse_number(const char *text, uint64_t *number) {
    uint64_t value = 0;

    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value)) {
            value = UINT64_MAX;
        }
    }
    *number = value;
    return true;
}

/* *after is the character after the number, or EOF. */
static gf_status read_number(gf_input *input, uint64_t max, const char *what, uint64_t *number,
                             int *after, gf_error *error) {
    const uint64_t end = input->offset + MOST_TEXT;
    uint64_t value = 0;
    int c;

    do {
        c = next_char(input, end);
    } while (is_space(c));
    if (c == EOF)
        return fail_end(input, error);
    if (c < '0' || c > '9') {
        return gf_fail(error, GF_FAILED, "%s: its %s is not a number; the file is damaged",
                       input->name, what);
    }
    do {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(c - '0'), &value) || value > max) {
            return gf_fail(error, GF_FAILED, "%s: its %s is over %" PRIu64 "; the file is damaged",
                           input->name, what, max);
        }
        c = next_char(input, end);
    } while (c >= '0' && c <= '9');
    if (c == EOF && !feof(input->file))
        return fail_end(input, error);
    if (c != EOF && !is_space(c)) {
        return gf_fail(error, GF_FAILED, "%s: its %s is not a number; the file is damaged",
                       input->name, what);
    }
    *number = value;
    *after = c;
    return GF_OK;
}

gf_status gf_pnm_read_number(gf_input *input, uint64_t max, const char *what, uint64_t *number,
                             gf_error *error) {
    int after = EOF;

    return read_number(input, max, what, number, &after, error);
}

/* ---- what headers have in common ------------------------------------------------------------- */

/* A number of a header: one that the file ends with may have lost digits. */
static gf_status read_field(gf_input *input, const char *what, uint64_t *number, gf_error *error) {
    int after = EOF;
    gf_status status = read_number(input, UINT64_MAX, what, number, &after, error);

    return status == GF_OK && after == EOF ? fail_end(input, error) : status;
}

static gf_status read_size(gf_input *input, gf_format *format, gf_error *error) {
    gf_status status = read_field(input, "width", &format->width, error);

    if (status == GF_OK)
        status = read_field(input, "height", &format->height, error);
    return status;
}

static gf_status set_maxval(const gf_input *input, uint64_t maxval, gf_format *format,
                            gf_error *error) {
    if (maxval != 255 && maxval != 65535) {
        return gf_fail(error, GF_FAILED,
                       "%s: maxval %" PRIu64
                       ": only 255 and 65535 keep values exact here; "
                       "rescale it first, e.g. with pamdepth 65535",
                       input->name, maxval);
    }
    format->type = maxval == 255 ? GF_U8 : GF_U16;
    return GF_OK;
}

/* ---- the four kinds of headers --------------------------------------------------------------- */

static gf_status read_pnm(gf_input *input, gf_pnm_header *header, gf_error *error) {
    uint64_t maxval;
    gf_status status = read_size(input, &header->format, error);

    if (status == GF_OK)
        status = read_field(input, "maxval", &maxval, error);
    return status == GF_OK ? set_maxval(input, maxval, &header->format, error) : status;
}

static gf_status read_pfm(gf_input *input, gf_pnm_header *header, gf_error *error) {
    char word[WORD_BYTES];
    char *end = word;
    gf_status status = read_size(input, &header->format, error);

    if (status == GF_OK)
        status = read_word(input, "scale", word, error);
    if (status != GF_OK)
        return status;
    gf_c_locale scope = gf_c_locale_enter();
    /* strtod also knows hexadecimal, infinity and NaN: not wanted here. */
    double scale = word[strspn(word, "+-.0123456789eE")] == '\0' ? strtod(word, &end) : 0;
    gf_c_locale_leave(&scope);
    if (*end != '\0' || scale == 0 || !isfinite(scale)) {
        return gf_fail(error, GF_FAILED,
                       "%s: its scale is not a number other than 0; the file is damaged",
                       input->name);
    }
    header->format.type = GF_F32;
    header->little = scale < 0;
    header->pfm_scale = fabs(scale);
    return GF_OK;
}

typedef struct pam_fields {
    uint64_t width, height, depth, maxval; /* 0: not given yet */
    char tuple[WORD_BYTES];
} pam_fields;

/* A line without its newline, white space around it removed. */
static gf_status read_line(gf_input *input, char line[LINE_BYTES], char **text, gf_error *error) {
    size_t length = 0;
    int c;

    while ((c = gf_input_byte(input)) != '\n') {
        if (c == EOF)
            return fail_end(input, error);
        if ((length == LINE_BYTES - 1 && line[strspn(line, " \t")] != '#') ||
            input->offset > MOST_TEXT)
            return gf_fail(error, GF_FAILED, "%s: a line of its header is too long or damaged",
                           input->name);
        /* Comments may be longer; only their start matters. */
        if (length < LINE_BYTES - 1)
            line[length++] = (char)c;
    }
    while (length != 0 && is_space((unsigned char)line[length - 1]))
        length--;
    line[length] = '\0';
    for (*text = line; is_space((unsigned char)**text); (*text)++) {
    }
    return GF_OK;
}

static gf_status set_pam_field(const gf_input *input, pam_fields *fields, const char *key,
                               const char *value, gf_error *error) {
    const struct {
        const char *key;
        uint64_t *number;
    } numbers[] = {{"WIDTH", &fields->width},
                   {"HEIGHT", &fields->height},
                   {"DEPTH", &fields->depth},
                   {"MAXVAL", &fields->maxval}};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(key, numbers[i].key) == 0) {
            if (!parse_number(value, numbers[i].number)) {
                return gf_fail(error, GF_FAILED, "%s: its %s is not a number; the file is damaged",
                               input->name, key);
            }
            return GF_OK;
        }
    }
    if (strcmp(key, "TUPLTYPE") == 0 && fields->tuple[0] == '\0' &&
        strlen(value) < sizeof fields->tuple) {
        memcpy(fields->tuple, value, strlen(value) + 1);
        return GF_OK;
    }
    return gf_fail(error, GF_FAILED, "%s: its header has an unknown line that starts with %.16s",
                   input->name, key);
}

/* Do the samples of a pixel mean what our channels mean? */
static gf_status check_tuple(const gf_input *input, const pam_fields *fields, gf_error *error) {
    static const char *const tuples[] = {"GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"};

    if (fields->depth >= 1 && fields->depth <= 4 &&
        (fields->tuple[0] == '\0' || strcmp(fields->tuple, tuples[fields->depth - 1]) == 0)) {
        return GF_OK;
    }
    return gf_fail(error, GF_FAILED,
                   "%s: DEPTH %" PRIu64
                   " with TUPLTYPE '%s' is not read; it can be 1 GRAYSCALE, "
                   "2 GRAYSCALE_ALPHA, 3 RGB or 4 RGB_ALPHA",
                   input->name, fields->depth, fields->tuple);
}

static gf_status read_pam(gf_input *input, gf_pnm_header *header, gf_error *error) {
    pam_fields fields = {0};
    char line[LINE_BYTES] = "";
    char *key = line;
    gf_status status;

    while ((status = read_line(input, line, &key, error)) == GF_OK) {
        if (*key == '#' || *key == '\0')
            continue;
        if (strcmp(key, "ENDHDR") == 0)
            break;
        char *value = key;
        while (*value != '\0' && !is_space((unsigned char)*value))
            value++;
        while (is_space((unsigned char)*value))
            *value++ = '\0';
        if ((status = set_pam_field(input, &fields, key, value, error)) != GF_OK)
            break;
    }
    if (status == GF_OK && fields.maxval == 0)
        return gf_fail(error, GF_FAILED, "%s: its header has no MAXVAL; the file is damaged",
                       input->name);
    if (status != GF_OK ||
        (status = set_maxval(input, fields.maxval, &header->format, error)) != GF_OK ||
        (status = check_tuple(input, &fields, error)) != GF_OK) {
        return status;
    }
    header->format.width = fields.width;
    header->format.height = fields.height;
    header->format.channels = (uint32_t)fields.depth;
    return GF_OK;
}

gf_status gf_pnm_read_header(gf_input *input, const gf_limits *limits, gf_pnm_header *header,
                             gf_error *error) {
    int kind;
    gf_status status;

    *header = (gf_pnm_header){.format.channels = 1, .pfm_scale = 1.0};
    (void)gf_input_byte(input); /* the P, which the caller saw */
    kind = gf_input_byte(input);
    header->plain = kind == '2' || kind == '3';
    header->kind = kind == '7'                  ? "pam"
                   : kind == 'F' || kind == 'f' ? "pfm"
                   : kind == '3' || kind == '6' ? "ppm"
                                                : "pgm";
    if (kind == '3' || kind == '6' || kind == 'F')
        header->format.channels = 3;
    if (kind == '1' || kind == '4') {
        return gf_fail(error, GF_FAILED,
                       "%s: is a bitmap (PBM); convert it first, e.g. with pnmdepth 255 or "
                       "pbmtopgm 1 1",
                       input->name);
    }
    if (kind == 'F' || kind == 'f') {
        status = read_pfm(input, header, error);
    } else if (kind == '7') {
        status = read_pam(input, header, error);
    } else {
        status = read_pnm(input, header, error);
    }
    if (status == GF_OK)
        status = gf_check_pixels(header->format.width, header->format.height, limits, input->name,
                                 error);
    if (status == GF_OK)
        status = gf_format_check(&header->format, input->name, error);
    return status;
}
