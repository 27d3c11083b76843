/* Raw rows, which the user describes with --raw. They are written little-endian. */
#include <inttypes.h>
#include <stdio.h>

#include "core/error.h"
#include "io/plain/rows.h"

static gf_status raw_read(gf_plain_source *source, const gf_limits *limits, uint64_t page,
                          gf_error *error) {
    const gf_raw *raw = limits->raw;
    const char *name = source->input.name;
    char offset[40] = "";
    (void)page;
    gf_status status = gf_check_pixels(&raw->format, limits, name, error);
    if (status)
        return status;
    source->base.format = raw->format;
    source->order =
        (gf_row_order){.format = raw->format, .start = raw->offset, .little = !raw->big_endian};
    if (raw->offset > INT64_MAX || gf_plain_end(source) > INT64_MAX)
        return gf_fail(error, GF_FAILED,
                       "%s: --raw specifies more bytes than any file can have; correct its shape",
                       name);
    if (raw->offset != 0)
        snprintf(offset, sizeof offset, ", offset %" PRIu64, raw->offset);
    gf_plain_describe(source, " raw", offset);
    /* Reject a wrong shape, which would give wrong pixels, if the size of the file is known. */
    if (!gf_plain_has_size(source) || source->input.size == gf_plain_end(source))
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: has %" PRIu64 " bytes, but --raw specifies %" PRIu64 "; correct its shape",
                   name, source->input.size, gf_plain_end(source));
}

/* Check that a pipe with raw rows has ended: a wrong shape can leave bytes unread. */
static gf_status raw_check_end(gf_plain_source *source, gf_error *error) {
    unsigned char byte;
    size_t got;
    const gf_status status = gf_input_read(&source->input, &byte, 1, &got, error);
    if (status || got == 0)
        return status;
    return gf_fail(error, GF_FAILED,
                   "%s: contains more than the %" PRIu64
                   " bytes that --raw specifies; correct its shape",
                   source->input.name, gf_plain_end(source));
}

static gf_status raw_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                                 gf_error *error) {
    static const gf_plain_format format = {.read = raw_read, .check_end = raw_check_end};
    return gf_plain_open(input, &format, NULL, limits, opened, error);
}

static gf_status raw_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    const gf_row_order order = {.format = *setup->format, .little = true};
    return gf_rows_sink_open(setup, &order, NULL, opened, error);
}

const gf_codec gf_raw_codec = {
    .label = "raw rows",
    .extensions = {"raw"},
    .notes = "Headerless samples; read with --raw, written little-endian.",
    .headerless = true,
    .open_source = raw_source_open,
    .open_sink = raw_sink_open,
    .types = GF_STORES_INTEGERS | GF_STORES_F32,
    .channels = GF_STORES_ANY | GF_STORES_DATA,
    .associated_alpha = true, /* the user says what they mean */
    .plain = true,
};

static bool raw_skip(const char **text, char c) {
    if (**text != c)
        return false;
    ++*text;
    return true;
}

/* Parse a type and its byte order, which is little-endian by default. */
static bool raw_type(const char **text, gf_raw *raw) {
    for (gf_type type = GF_U8; type <= GF_F32; type++) {
        const char *name = gf_type_name(type);
        if (strncmp(*text, name, strlen(name)) != 0)
            continue;
        *text += strlen(name);
        raw->format.type = type;
        raw->big_endian = type != GF_U8 && strncmp(*text, "be", 2) == 0;
        if (raw->big_endian || (type != GF_U8 && strncmp(*text, "le", 2) == 0))
            *text += 2;
        return true;
    }
    return false;
}

gf_status gf_raw_parse(const char *text, gf_raw *raw, gf_error *error) {
    gf_raw parsed = {0};
    uint64_t channels = 1;
    const char *at = text;
    const bool valid = gf_parse_digits(&at, &parsed.format.width) && raw_skip(&at, 'x') &&
                       gf_parse_digits(&at, &parsed.format.height) &&
                       (!raw_skip(&at, 'x') || gf_parse_digits(&at, &channels)) &&
                       channels <= GF_MAX_CHANNELS && raw_skip(&at, ':') &&
                       raw_type(&at, &parsed) &&
                       (!raw_skip(&at, '+') || gf_parse_digits(&at, &parsed.offset)) && *at == '\0';
    parsed.format.channels = (uint32_t)channels;
    if (!valid || parsed.offset > INT64_MAX || gf_format_check(&parsed.format, "", NULL))
        return gf_fail(error, GF_USAGE,
                       "--raw '%s': must be WIDTHxHEIGHT[xCHANNELS]:TYPE[+OFFSET], such as "
                       "4096x3072:u16be+512; TYPE is u8, u16, u16le, u16be, f32, f32le or f32be, "
                       "CHANNELS 1 to 4",
                       text);
    *raw = parsed;
    return GF_OK;
}
