/* PBM, PGM, PPM, PAM and PFM. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/c_locale.h"
#include "core/error.h"
#include "io/bytes.h"
#include "io/plain/rows.h"

extern const gf_codec gf_pbm_codec, gf_pgm_codec, gf_ppm_codec, gf_pam_codec, gf_pfm_codec;

/* Max bytes of a header word with its NUL. Numbers need 20 digits. */
enum { WORD_BYTES = 64 };

/* Max bytes of a word with the whitespace and comments before it, and of a PAM header. This bounds
 * the time to parse sparse files, which may be huge. */
enum { MAX_TEXT = 1 << 20 };

/* ---- words ----------------------------------------------------------------------------------- */

/* Read one character; a comment reads as its newline. Return EOF at offset `end`, too. */
static int pnm_next_char(gf_input *input, uint64_t end) {
    int c = gf_input_byte(input);
    if (c == '#') {
        do {
            c = gf_input_byte(input);
        } while (c != '\n' && c != '\r' && c != EOF && input->offset < end);
    }
    return input->offset < end ? c : EOF;
}

/* Unlike isspace(), do not depend on the locale. */
static bool pnm_is_space(int c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Read the next word, and the single whitespace character after it into input->last. Return false
 * if the word is too long or not printable ASCII. Set word to "" after a read error, after MAX_TEXT
 * bytes, or if no word is left. */
static bool pnm_next_word(gf_input *input, char word[WORD_BYTES]) {
    const uint64_t end = input->offset + MAX_TEXT;
    size_t length = 0;
    int c;
    do {
        c = pnm_next_char(input, end);
    } while (pnm_is_space(c));
    for (; c != EOF && !pnm_is_space(c); c = pnm_next_char(input, end)) {
        if (length == WORD_BYTES - 1 || c < ' ' || c > '~')
            return false;
        word[length++] = (char)c;
    }
    word[c == EOF && !feof(input->file) ? 0 : length] = '\0';
    return true;
}

static gf_status pnm_fail_end(const gf_input *input, gf_error *error) {
    if (ferror(input->file))
        return gf_input_fail_read(input, errno, error);
    if (!feof(input->file))
        return gf_fail(error, GF_FAILED, "%s: too much text before a number ends; it is damaged",
                       input->name);
    return gf_fail_short(input->name, error);
}

static gf_status pnm_fail_word(const gf_input *input, const char *what, gf_error *error) {
    return gf_fail(error, GF_FAILED, "%s: its %s is not a number; the file is damaged", input->name,
                   what);
}

/* Read a word that must be a number. `what` names it in messages. */
static gf_status pnm_read_word(gf_input *input, const char *what, char word[WORD_BYTES],
                               gf_error *error) {
    if (!pnm_next_word(input, word))
        return pnm_fail_word(input, what, error);
    return *word == '\0' ? pnm_fail_end(input, error) : GF_OK;
}

static gf_status pnm_read_number(gf_input *input, const char *what, uint64_t *number,
                                 gf_error *error) {
    char word[WORD_BYTES];
    const char *rest = word;
    gf_status status = pnm_read_word(input, what, word, error);
    if (!status && (!gf_parse_digits(&rest, number) || *rest != '\0'))
        status = pnm_fail_word(input, what, error);
    return status;
}

/* ---- headers --------------------------------------------------------------------------------- */

static gf_status pnm_set_maxval(gf_plain_source *source, uint64_t maxval, gf_error *error) {
    if (maxval < 1 || maxval > 65535)
        return gf_fail(error, GF_FAILED,
                       "%s: maxval %" PRIu64 " is not in the range 1 to 65535; the file is damaged",
                       source->input.name, maxval);
    source->maxval = (uint32_t)maxval;
    source->base.format.type = maxval < 256 ? GF_U8 : GF_U16;
    return GF_OK;
}

static gf_status pnm_read_header(gf_plain_source *source, gf_error *error) {
    uint64_t maxval = 1;
    gf_status status = GF_OK;
    if (!source->bitmap)
        status = pnm_read_number(&source->input, "maxval", &maxval, error);
    /* At the end of the file the last number may lack digits. */
    if (!status && source->input.last == EOF)
        status = pnm_fail_end(&source->input, error);
    return status ? status : pnm_set_maxval(source, maxval, error);
}

static gf_status pfm_read_header(gf_plain_source *source, gf_error *error) {
    char word[WORD_BYTES];
    char *end = word;
    gf_status status = pnm_read_word(&source->input, "scale", word, error);
    if (status)
        return status;
    gf_c_locale scope = gf_c_locale_enter();
    /* Reject the hexadecimal numbers, infinities and NaNs that strtod accepts. */
    double scale = word[strspn(word, "+-.0123456789eE")] == '\0' ? strtod(word, &end) : 0;
    gf_c_locale_leave(&scope);
    if (*end != '\0' || scale == 0 || !isfinite(scale))
        return gf_fail(error, GF_FAILED,
                       "%s: its scale is not a nonzero number; the file is damaged",
                       source->input.name);
    source->base.format.type = GF_F32;
    source->base.metadata.pfm_scale = fabs(scale);
    source->order.bottom_up = true;
    source->order.little = scale < 0;
    return GF_OK;
}

static gf_status pam_read_header(gf_plain_source *source, gf_error *error) {
    static const struct {
        const char *name;
        uint64_t depth, max;
    } tuples[] = {{"GRAYSCALE", 1, 65535}, {"GRAYSCALE_ALPHA", 2, 65535},
                  {"RGB", 3, 65535},       {"RGB_ALPHA", 4, 65535},
                  {"BLACKANDWHITE", 1, 1}, {"BLACKANDWHITE_ALPHA", 2, 1}};
    gf_format *format = &source->base.format;
    gf_input *input = &source->input;
    const uint64_t end = input->offset + MAX_TEXT;
    uint64_t depth = 0, maxval = 0;
    char key[WORD_BYTES] = "", tuple[WORD_BYTES] = "";
    const struct {
        const char *key;
        uint64_t *number;
    } numbers[] = {{"WIDTH", &format->width},
                   {"HEIGHT", &format->height},
                   {"DEPTH", &depth},
                   {"MAXVAL", &maxval}};
    const size_t count = sizeof numbers / sizeof *numbers;
    gf_status status = GF_OK;
    for (;;) {
        size_t i = 0;
        if (!pnm_next_word(input, key) || input->offset > end)
            return gf_fail(error, GF_FAILED, "%s: a header line is too long or damaged",
                           input->name);
        if (*key == '\0' || input->last == EOF)
            return pnm_fail_end(input, error);
        if (strcmp(key, "ENDHDR") == 0)
            break;
        while (i < count && strcmp(key, numbers[i].key) != 0)
            i++;
        if (i < count)
            status = pnm_read_number(input, key, numbers[i].number, error);
        else if (strcmp(key, "TUPLTYPE") != 0 || tuple[0] != '\0' ||
                 (input->last != '\n' && !pnm_next_word(input, tuple)))
            status = gf_fail(error, GF_FAILED, "%s: unknown header line starting with %.16s",
                             input->name, key);
        if (status)
            return status;
    }
    for (; input->last != '\n'; (void)gf_input_byte(input))
        if (!pnm_is_space(input->last) || input->offset > end)
            return gf_fail(error, GF_FAILED, "%s: ENDHDR is not on a line of its own", input->name);
    if (maxval == 0)
        return gf_fail(error, GF_FAILED, "%s: its header has no MAXVAL; the file is damaged",
                       input->name);
    if ((status = pnm_set_maxval(source, maxval, error)))
        return status;
    format->channels = (uint32_t)depth;
    format->alpha = strstr(tuple, "_ALPHA") != NULL;
    /* Check that the tuple type matches the meaning of gpufilter's channels. */
    for (size_t i = 0; i < sizeof tuples / sizeof *tuples; i++)
        if (depth == tuples[i].depth && maxval <= tuples[i].max &&
            (tuple[0] == '\0' || strcmp(tuple, tuples[i].name) == 0))
            return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: DEPTH %" PRIu64
                   " with TUPLTYPE '%s' is not supported, only 1 GRAYSCALE, "
                   "2 GRAYSCALE_ALPHA, 3 RGB and 4 RGB_ALPHA, or BLACKANDWHITE with MAXVAL 1",
                   input->name, depth, tuple);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Return the max value of an integer type. */
static uint32_t pnm_top(gf_type type) {
    return type == GF_U8 ? 255 : 65535;
}

/* Scale a sample from 0..maxval to 0..top, rounded to nearest. Different samples stay different,
 * because top >= maxval. */
static uint32_t pnm_scale_sample(uint32_t sample, uint32_t maxval, uint32_t top) {
    return (sample * top + maxval / 2) / maxval;
}

/* Convert a row with a maxval of its own. Return false if a sample is greater than that. */
static bool pnm_convert(const gf_plain_source *source, unsigned char *row,
                        const unsigned char *src) {
    const gf_format *format = &source->base.format;
    const uint64_t samples = gf_row_samples(format);
    const uint32_t maxval = source->maxval;
    bool above = false;
    gf_copy_order(row, src, samples, gf_type_bytes(format->type), source->order.little);
    if (format->type == GF_U8) {
        for (uint64_t i = 0; i < samples; i++) {
            above |= row[i] > maxval;
            row[i] = (unsigned char)pnm_scale_sample(row[i], maxval, 255);
        }
        return !above;
    }
    for (uint64_t i = 0; i < samples; i++) {
        uint16_t sample;
        memcpy(&sample, row + 2 * i, sizeof sample);
        above |= sample > maxval;
        sample = (uint16_t)pnm_scale_sample(sample, maxval, 65535);
        memcpy(row + 2 * i, &sample, sizeof sample);
    }
    return !above;
}

/* Expand packed bits, the highest one first: 0 is white (255), 1 is black (0). row may equal src:
 * the last byte is expanded first. */
static bool pbm_convert(const gf_plain_source *source, unsigned char *row,
                        const unsigned char *src) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t i = source->base.format.width;
    for (; i % 8 != 0; i--)
        row[i - 1] = src[i / 8] >> (8 - i % 8) & 1 ? 0 : 255;
    for (; i != 0; i -= 8) { /* 0.15 ns per sample; bit by bit 1.5 ns */
        const uint64_t bits = src[i / 8 - 1] * ones & UINT64_C(0x0102040810204080);
        const uint64_t black = (bits + 0x7f * ones) >> 7 & ones;
        gf_put_little64(row + i - 8, (ones - black) * 255);
    }
    return true;
}

/* Return whether the first sample may be the LF of a header that ends in CR LF. */
static bool pnm_begins_lf(const gf_plain_source *source) {
    return source->header_ends_cr && source->first_byte == '\n';
}

static gf_status pnm_fail_line_feed(const gf_plain_source *source, gf_error *error) {
    return gf_fail(error, GF_FAILED,
                   "%s: its header ends in CR LF, and the LF may be part of the image; "
                   "read it from a file, not from a pipe",
                   source->input.name);
}

static gf_status pnm_fail_above(const gf_plain_source *source, uint64_t y, gf_error *error) {
    if (pnm_begins_lf(source))
        return pnm_fail_line_feed(source, error);
    return gf_fail(error, GF_FAILED,
                   "%s: row %" PRIu64 " of %" PRIu64 " has a sample greater than maxval %" PRIu32
                   "; the file is damaged",
                   source->input.name, y + 1, source->base.format.height, source->maxval);
}

/* Read a sample of a text PBM. Whitespace between samples is optional. */
static gf_status pbm_read_bit(gf_input *input, uint64_t *bit, gf_error *error) {
    const uint64_t end = input->offset + MAX_TEXT;
    int c;
    do {
        c = pnm_next_char(input, end);
    } while (pnm_is_space(c));
    if (c == EOF)
        return pnm_fail_end(input, error);
    *bit = c == '1';
    return c == '0' || c == '1'
               ? GF_OK
               : gf_fail(error, GF_FAILED, "%s: a sample is not 0 or 1; the file is damaged",
                         input->name);
}

static gf_status pnm_read_text(gf_plain_source *source, unsigned char *row, gf_error *error) {
    const gf_format *format = &source->base.format;
    const uint32_t top = pnm_top(format->type);
    for (uint64_t i = 0; i < gf_row_samples(format); i++) {
        uint64_t value = 0;
        gf_status status = source->bitmap
                               ? pbm_read_bit(&source->input, &value, error)
                               : pnm_read_number(&source->input, "sample", &value, error);
        if (status)
            return status;
        if (value > source->maxval)
            return pnm_fail_above(source, source->y, error);
        value = pnm_scale_sample((uint32_t)value, source->maxval, top);
        if (source->bitmap)
            value = top - value;
        if (format->type == GF_U8) {
            row[i] = (unsigned char)value;
        } else {
            uint16_t sample = (uint16_t)value;
            memcpy(row + 2 * i, &sample, sizeof sample);
        }
    }
    return GF_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Skip the LF of a header that ends in CR LF, as text written on Windows does. The format allows
 * one character; skip the second only if the file is exactly one byte too long. */
static gf_status pnm_skip_line_feed(gf_plain_source *source, gf_error *error) {
    unsigned char end[2];
    if (source->read_text || !source->input.regular ||
        source->input.size != gf_plain_end(source) + 1)
        return GF_OK;
    gf_status status =
        gf_input_read_at(&source->input, end, sizeof end, source->order.start - 1, error);
    if (!status && end[0] == '\r' && end[1] == '\n') {
        (void)gf_input_byte(&source->input);
        source->order.start++;
    }
    return status;
}

/* Read a header, and find the rows of its image. */
static gf_status pnm_read(gf_plain_source *source, const gf_limits *limits, uint64_t page,
                          gf_error *error) {
    static const struct {
        const gf_codec *codec;
        gf_status (*read)(gf_plain_source *source, gf_error *error);
        uint32_t channels;
        char magic;
    } kinds[] = {{&gf_pbm_codec, pnm_read_header, 1, '1'}, {&gf_pgm_codec, pnm_read_header, 1, '2'},
                 {&gf_ppm_codec, pnm_read_header, 3, '3'}, {&gf_pbm_codec, pnm_read_header, 1, '4'},
                 {&gf_pgm_codec, pnm_read_header, 1, '5'}, {&gf_ppm_codec, pnm_read_header, 3, '6'},
                 {&gf_pam_codec, pam_read_header, 1, '7'}, {&gf_pfm_codec, pfm_read_header, 1, 'f'},
                 {&gf_pfm_codec, pfm_read_header, 3, 'F'}};
    gf_format *format = &source->base.format;
    gf_input *input = &source->input;
    size_t kind = 0;
    (void)page, (void)gf_input_byte(input); /* 'P', already checked by the caller */
    const int magic = gf_input_byte(input);
    while (kind < sizeof kinds / sizeof *kinds && kinds[kind].magic != magic)
        kind++;
    if (kind == sizeof kinds / sizeof *kinds)
        return gf_fail(error, GF_FAILED, "%s: unknown kind of PNM", input->name);
    source->base.codec = kinds[kind].codec;
    source->bitmap = source->base.codec == &gf_pbm_codec;
    source->read_text = magic >= '1' && magic <= '3' ? pnm_read_text : NULL;
    format->channels = kinds[kind].channels;
    gf_status status = GF_OK;
    if (magic != '7' && !(status = pnm_read_number(input, "width", &format->width, error)))
        status = pnm_read_number(input, "height", &format->height, error);
    if (status || (status = kinds[kind].read(source, error)) ||
        (status = gf_check_pixels(format, limits, input->name, error)))
        return status;
    source->order.format = *format;
    if (source->bitmap)
        source->order.format.width = (format->width + 7) / 8;
    source->order.start = input->offset;
    source->header_ends_cr = !input->regular && !source->read_text && input->last == '\r';
    source->convert = source->bitmap                                              ? pbm_convert
                      : source->maxval && source->maxval != pnm_top(format->type) ? pnm_convert
                                                                                  : NULL;
    const gf_value scale = {.type = GF_VALUE_DOUBLE, .real = source->base.metadata.pfm_scale};
    char number[40] = "", *stored = source->base.stored;
    if (format->type == GF_F32) {
        gf_value_format(&scale, number, sizeof number);
        snprintf(stored, sizeof source->base.stored, "32-bit float, %s-endian, scale %s",
                 source->order.little ? "little" : "big", number);
    } else {
        if (!source->bitmap && source->maxval != pnm_top(format->type))
            snprintf(number, sizeof number, ", maxval %" PRIu32, source->maxval);
        snprintf(stored, sizeof source->base.stored, "%zu-bit %s%s",
                 source->bitmap ? 1 : 8 * gf_type_bytes(format->type),
                 source->read_text ? "text" : "binary", number);
    }
    return pnm_skip_line_feed(source, error);
}

/* Ignore what follows the pixels: netpbm files may contain further images. But if the header ends
 * in CR LF and one byte is left, the LF may have been read as the first sample; report that. */
static gf_status pnm_check_end(gf_plain_source *source, gf_error *error) {
    return pnm_begins_lf(source) && gf_input_byte(&source->input) != EOF &&
                   gf_input_byte(&source->input) == EOF
               ? pnm_fail_line_feed(source, error)
               : GF_OK;
}

static bool pnm_follows(const unsigned char head[8]) {
    return head[0] == 'P' && head[1] && strchr("4567fF", head[1]) && pnm_is_space(head[2]);
}

static gf_status pnm_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                                 gf_error *error) {
    static const gf_plain_format format = {.read = pnm_read,
                                           .follows = pnm_follows,
                                           .fail = pnm_fail_above,
                                           .check_end = pnm_check_end};
    return gf_plain_open(input, &format, NULL, limits, opened, error);
}

/* Match the delimiter after the magic. */
static bool pnm_match(const gf_input *input) {
    return input->head_size >= 3 && (pnm_is_space(input->head[2]) || input->head[2] == '#');
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Format "-SCALE" with the fewest digits that preserve the value, and with a decimal point as other
 * writers do. */
static void pfm_print_scale(char text[32], double scale) {
    gf_c_locale scope = gf_c_locale_enter();
    int length = 0;
    for (int digits = 1; digits <= 17; digits++) {
        length = snprintf(text, 32, "-%.*g", digits, scale);
        if (strtod(text, NULL) == -scale)
            break;
    }
    gf_c_locale_leave(&scope);
    if (!strpbrk(text, ".e"))
        snprintf(text + length, 32 - (size_t)length, ".0");
}

/* PFM stores little-endian f32, the last row first; the others store big-endian integers. */
static gf_status pnm_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    static const char *const tuples[] = {"", "GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"};
    const gf_format *format = setup->format;
    const uint64_t width = format->width, height = format->height;
    const bool pfm = format->type == GF_F32;
    const double scale = setup->metadata->pfm_scale;
    char header[256], number[32];
    int size;
    if (setup->codec == &gf_pam_codec) {
        size = snprintf(header, sizeof header,
                        "P7\nWIDTH %" PRIu64 "\nHEIGHT %" PRIu64 "\nDEPTH %" PRIu32
                        "\nMAXVAL %" PRIu32 "\nTUPLTYPE %s\nENDHDR\n",
                        width, height, format->channels, pnm_top(format->type),
                        tuples[format->channels]);
    } else if (pfm) {
        pfm_print_scale(number, scale > 0 && isfinite(scale) ? scale : 1.0);
        size = snprintf(header, sizeof header, "%s\n%" PRIu64 " %" PRIu64 "\n%s\n",
                        format->channels == 3 ? "PF" : "Pf", width, height, number);
    } else {
        size = snprintf(header, sizeof header, "P%d\n%" PRIu64 " %" PRIu64 "\n%" PRIu32 "\n",
                        format->channels == 1 ? 5 : 6, width, height, pnm_top(format->type));
    }
    const gf_row_order order = {
        .format = *format, .start = (uint64_t)size, .bottom_up = pfm, .little = pfm};
    return gf_rows_sink_open(setup, &order, header, opened, error);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

const gf_codec gf_pbm_codec = {
    .label = "PBM",
    .extensions = {"pbm"},
    .notes = "Black and white, text and binary; read as grey, 8 bits.",
    .magics = {"P1", "P4"},
    .match = pnm_match,
    .open_source = pnm_source_open,
};

const gf_codec gf_pgm_codec = {
    .label = "PGM",
    .extensions = {"pgm", "pnm"},
    .notes =
        "Grey, 8 or 16 bits; reads text and binary, writes binary. Reads any maximum "
        "value, writes 255 or 65535.",
    .magics = {"P2", "P5"},
    .match = pnm_match,
    .open_source = pnm_source_open,
    .open_sink = pnm_sink_open,
    .types = GF_STORES_INTEGERS,
    .channels = GF_STORES_GREY,
    .plain = true,
};

const gf_codec gf_ppm_codec = {
    .label = "PPM",
    .extensions = {"ppm", "pnm"},
    .notes = "RGB, 8 or 16 bits; reads text and binary, writes binary.",
    .magics = {"P3", "P6"},
    .match = pnm_match,
    .open_source = pnm_source_open,
    .open_sink = pnm_sink_open,
    .types = GF_STORES_INTEGERS,
    .channels = GF_STORES_RGB,
    .plain = true,
};

/* The name for outputs that are PGM or PPM. */
const gf_codec gf_pnm_codec = {
    .label = "PNM",
    .extensions = {"pnm"},
    .open_sink = pnm_sink_open,
    .types = GF_STORES_INTEGERS,
    .channels = GF_STORES_GREY | GF_STORES_RGB,
    .plain = true,
};

const gf_codec gf_pam_codec = {
    .label = "PAM",
    .extensions = {"pam"},
    .notes = "1 to 4 channels, 8 or 16 bits.",
    .magics = {"P7"},
    .match = pnm_match,
    .open_source = pnm_source_open,
    .open_sink = pnm_sink_open,
    .types = GF_STORES_INTEGERS,
    .channels = GF_STORES_ANY,
    .plain = true,
};

const gf_codec gf_pfm_codec = {
    .label = "PFM",
    .extensions = {"pfm"},
    .notes = "Grey or RGB, binary32.",
    .magics = {"PF", "Pf"},
    .match = pnm_match,
    .open_source = pnm_source_open,
    .open_sink = pnm_sink_open,
    .types = GF_STORES_F32,
    .channels = GF_STORES_GREY | GF_STORES_RGB,
    .alpha_advice = "write .tif",
    .plain = true,
};
