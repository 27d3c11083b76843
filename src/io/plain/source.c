/* Input of plain files: PBM, PGM, PPM, PAM, PFM and NPY, whose header describes the rows, and raw
 * rows, which the user describes. Several threads read a regular file directly into the caller's
 * rows. */
#define _GNU_SOURCE /* preadv, 64-bit offsets */

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/c_locale.h"
#include "core/error.h"
#include "core/thread.h"
#include "io/bytes.h"
#include "io/formats.h"
#include "io/plain/npy.h"
#include "io/stream/convert.h"

typedef struct plain_source {
    gf_source base;
    gf_input input;
    gf_row_order order;   /* rows of the file; those of a binary PBM are packed bits in u8 */
    uint32_t maxval;      /* PNM and PAM: max value of a sample in the file; others: 0 */
    bool bitmap;          /* PBM: a sample is one bit, 1 is black */
    gf_pool *pool;        /* reads rows in any order; NULL: read them in the order of the file */
    uint32_t threads;     /* threads in the pool */
    uint32_t max_used;    /* max threads that read at the same time */
    uint64_t y;           /* next row */
    bool text;            /* samples are decimal numbers */
    bool header_ends_cr;  /* the input is a pipe and its header ends in CR */
    bool rows_begin_lf;   /* header_ends_cr, and the first byte after the header is LF */
    bool raw;             /* no header; nothing may follow the rows */
    size_t cut_bytes;     /* of a row of the file, before the columns to read */
    uint64_t images, end; /* of the header that was read: its images, and where they end */
} plain_source;

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

/* Read a number in a header. At the end of the file it may lack digits, which is an error. */
static gf_status pnm_read_field(gf_input *input, const char *what, uint64_t *number,
                                gf_error *error) {
    gf_status status = pnm_read_number(input, what, number, error);
    return !status && input->last == EOF ? pnm_fail_end(input, error) : status;
}

static gf_status pnm_read_size(plain_source *source, gf_error *error) {
    gf_format *format = &source->base.format;
    gf_status status = pnm_read_field(&source->input, "width", &format->width, error);
    return status ? status : pnm_read_field(&source->input, "height", &format->height, error);
}

static gf_status pnm_set_maxval(plain_source *source, uint64_t maxval, gf_error *error) {
    if (maxval < 1 || maxval > 65535)
        return gf_fail(error, GF_FAILED,
                       "%s: maxval %" PRIu64 " is not in the range 1 to 65535; the file is damaged",
                       source->input.name, maxval);
    source->maxval = (uint32_t)maxval;
    source->base.format.type = maxval < 256 ? GF_U8 : GF_U16;
    return GF_OK;
}

static gf_status pnm_read_header(plain_source *source, gf_error *error) {
    uint64_t maxval = 1;
    gf_status status = pnm_read_size(source, error);
    if (!status && !source->bitmap)
        status = pnm_read_field(&source->input, "maxval", &maxval, error);
    return status ? status : pnm_set_maxval(source, maxval, error);
}

static gf_status pfm_read_header(plain_source *source, gf_error *error) {
    char word[WORD_BYTES];
    char *end = word;
    gf_status status = pnm_read_size(source, error);
    if (!status)
        status = pnm_read_word(&source->input, "scale", word, error);
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

typedef struct pam_fields {
    uint64_t width, height, depth, maxval; /* 0: not set yet */
    char tuple[WORD_BYTES];
} pam_fields;

/* Read the value after a key. */
static gf_status pam_read_field(gf_input *input, const char *key, pam_fields *fields,
                                gf_error *error) {
    const struct {
        const char *key;
        uint64_t *number;
    } numbers[] = {{"WIDTH", &fields->width},
                   {"HEIGHT", &fields->height},
                   {"DEPTH", &fields->depth},
                   {"MAXVAL", &fields->maxval}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i].key) == 0)
            return pnm_read_field(input, key, numbers[i].number, error);
    if (strcmp(key, "TUPLTYPE") == 0 && fields->tuple[0] == '\0' &&
        (input->last == '\n' || pnm_next_word(input, fields->tuple)))
        return GF_OK;
    return gf_fail(error, GF_FAILED, "%s: unknown header line starting with %.16s", input->name,
                   key);
}

static gf_status pam_read_fields(gf_input *input, pam_fields *fields, gf_error *error) {
    const uint64_t end = input->offset + MAX_TEXT;
    char key[WORD_BYTES];
    gf_status status = GF_OK;
    while (!status) {
        if (!pnm_next_word(input, key) || input->offset > end)
            return gf_fail(error, GF_FAILED, "%s: a header line is too long or damaged",
                           input->name);
        if (*key == '\0' || input->last == EOF)
            return pnm_fail_end(input, error);
        if (strcmp(key, "ENDHDR") == 0)
            break;
        status = pam_read_field(input, key, fields, error);
    }
    while (!status && input->last != '\n') {
        if (!pnm_is_space(input->last) || input->offset > end)
            return gf_fail(error, GF_FAILED, "%s: ENDHDR is not on a line of its own", input->name);
        (void)gf_input_byte(input);
    }
    return status;
}

/* Check that the tuple type matches the meaning of gpufilter's channels. */
static gf_status pam_check_tuple(const gf_input *input, const pam_fields *fields, gf_error *error) {
    static const struct {
        const char *name;
        uint64_t depth, max;
    } tuples[] = {{"GRAYSCALE", 1, 65535}, {"GRAYSCALE_ALPHA", 2, 65535},
                  {"RGB", 3, 65535},       {"RGB_ALPHA", 4, 65535},
                  {"BLACKANDWHITE", 1, 1}, {"BLACKANDWHITE_ALPHA", 2, 1}};
    for (size_t i = 0; i < sizeof tuples / sizeof *tuples; i++)
        if (fields->depth == tuples[i].depth && fields->maxval <= tuples[i].max &&
            (fields->tuple[0] == '\0' || strcmp(fields->tuple, tuples[i].name) == 0))
            return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: DEPTH %" PRIu64
                   " with TUPLTYPE '%s' is not supported, only 1 GRAYSCALE, "
                   "2 GRAYSCALE_ALPHA, 3 RGB and 4 RGB_ALPHA, or BLACKANDWHITE with MAXVAL 1",
                   input->name, fields->depth, fields->tuple);
}

static gf_status pam_read_header(plain_source *source, gf_error *error) {
    gf_format *format = &source->base.format;
    pam_fields fields = {0};
    gf_status status = pam_read_fields(&source->input, &fields, error);
    if (!status && fields.maxval == 0)
        return gf_fail(error, GF_FAILED, "%s: its header has no MAXVAL; the file is damaged",
                       source->input.name);
    if (status || (status = pnm_set_maxval(source, fields.maxval, error)) ||
        (status = pam_check_tuple(&source->input, &fields, error)))
        return status;
    format->width = fields.width;
    format->height = fields.height;
    format->channels = (uint32_t)fields.depth;
    format->alpha = strstr(fields.tuple, "_ALPHA") != NULL;
    return GF_OK;
}

static gf_status pnm_read_any_header(plain_source *source, gf_error *error) {
    static const struct {
        const char *kind;
        gf_status (*read)(plain_source *source, gf_error *error);
        uint32_t channels;
        char magic;
    } kinds[] = {{"pbm", pnm_read_header, 1, '1'}, {"pgm", pnm_read_header, 1, '2'},
                 {"ppm", pnm_read_header, 3, '3'}, {"pbm", pnm_read_header, 1, '4'},
                 {"pgm", pnm_read_header, 1, '5'}, {"ppm", pnm_read_header, 3, '6'},
                 {"pam", pam_read_header, 1, '7'}, {"pfm", pfm_read_header, 1, 'f'},
                 {"pfm", pfm_read_header, 3, 'F'}};
    (void)gf_input_byte(&source->input); /* 'P', already checked by the caller */
    const int magic = gf_input_byte(&source->input);
    source->text = magic >= '1' && magic <= '3';
    source->bitmap = magic == '1' || magic == '4';
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].magic != magic)
            continue;
        snprintf(source->base.kind, sizeof source->base.kind, "%s", kinds[i].kind);
        source->base.format.channels = kinds[i].channels;
        return kinds[i].read(source, error);
    }
    return gf_fail(error, GF_FAILED, "%s: unknown kind of PNM", source->input.name);
}

/* ---- rows of files --------------------------------------------------------------------------- */

static gf_status plain_fail_short(const plain_source *source, uint64_t y, gf_error *error) {
    return gf_fail(error, GF_FAILED,
                   "%s: the file ends too early, in row %" PRIu64 " of %" PRIu64
                   "; get a complete copy",
                   source->input.name, y + 1, source->base.format.height);
}

/* Fail for a pipe whose header ends in CR LF: the LF may have been read as the first sample. */
static gf_status plain_fail_line_feed(const plain_source *source, gf_error *error) {
    return gf_fail(error, GF_FAILED,
                   "%s: its header ends in CR LF, and the LF may be part of the image; "
                   "read it from a file, not from a pipe",
                   source->input.name);
}

static gf_status plain_fail_above(const plain_source *source, uint64_t y, gf_error *error) {
    if (source->rows_begin_lf)
        return plain_fail_line_feed(source, error);
    return gf_fail(error, GF_FAILED,
                   "%s: row %" PRIu64 " of %" PRIu64 " has a sample greater than maxval %" PRIu32
                   "; the file is damaged",
                   source->input.name, y + 1, source->base.format.height, source->maxval);
}

/* Files without a known size (in /proc) report size 0. */
static bool plain_has_size(const plain_source *source) {
    return source->input.regular && source->input.size != 0;
}

/* Return the bytes of a row that are read: all, or those of the columns that are not cut. */
static size_t plain_part_bytes(const plain_source *source) {
    return gf_row_bytes(source->bitmap ? &source->order.format : &source->base.format);
}

/* Return the offset after the last row. */
static uint64_t plain_end(const plain_source *source) {
    const gf_format *format = &source->order.format;
    return source->order.start + format->height * (uint64_t)gf_row_bytes(format);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Return the max value of an integer type. */
static uint32_t plain_top(gf_type type) {
    return type == GF_U8 ? 255 : 65535;
}

/* Scale a sample from 0..maxval to 0..top, rounded to nearest. Different samples stay different,
 * because top >= maxval. */
static uint32_t plain_scale_sample(uint32_t sample, uint32_t maxval, uint32_t top) {
    return (sample * top + maxval / 2) / maxval;
}

/* Scale samples in native order, in place. Return false if one is greater than maxval. */
static bool plain_scale_row(unsigned char *row, uint64_t samples, gf_type type, uint32_t maxval) {
    bool above = false;
    if (type == GF_U8) {
        for (uint64_t i = 0; i < samples; i++) {
            above |= row[i] > maxval;
            row[i] = (unsigned char)plain_scale_sample(row[i], maxval, 255);
        }
        return !above;
    }
    for (uint64_t i = 0; i < samples; i++) {
        uint16_t sample;
        memcpy(&sample, row + 2 * i, sizeof sample);
        above |= sample > maxval;
        sample = (uint16_t)plain_scale_sample(sample, maxval, 65535);
        memcpy(row + 2 * i, &sample, sizeof sample);
    }
    return !above;
}

/* Expand packed bits, the highest one first: 0 is white (255), 1 is black (0). dst may equal src:
 * the last byte is expanded first. */
static void pbm_expand(unsigned char *dst, const unsigned char *src, uint64_t width) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t i = width;
    for (; i % 8 != 0; i--)
        dst[i - 1] = src[i / 8] >> (8 - i % 8) & 1 ? 0 : 255;
    for (; i != 0; i -= 8) { /* 0.15 ns per sample; bit by bit 1.5 ns */
        const uint64_t bits = src[i / 8 - 1] * ones & UINT64_C(0x0102040810204080);
        const uint64_t black = (bits + 0x7f * ones) >> 7 & ones;
        gf_put_little64(dst + i - 8, (ones - black) * 255);
    }
}

/* Convert a row of the file to the image. row may equal src. Return false if a sample is greater
 * than maxval. */
static bool plain_convert_row(const plain_source *source, unsigned char *row,
                              const unsigned char *src) {
    const gf_format *format = &source->base.format;
    if (source->bitmap) {
        pbm_expand(row, src, format->width);
        return true;
    }
    gf_copy_order(row, src, gf_row_samples(format), gf_type_bytes(format->type),
                  source->order.little);
    return !source->maxval || source->maxval == plain_top(format->type) ||
           plain_scale_row(row, gf_row_samples(format), format->type, source->maxval);
}

/* ---- reading rows in any order, with several threads ----------------------------------------- */

enum {
    VECTORS = 256,              /* rows per preadv call */
    READ_PART_BYTES = 1 << 18,  /* min bytes per part */
    READ_MAX_PARTS = 4,         /* parts per thread; slow threads process fewer */
    READ_PIECE_BYTES = 1 << 18, /* bytes to read and then reorder while they are in the cache */
    READ_NARROW_BYTES = 512,    /* shorter rows: reading into a buffer and copying is faster */
    READ_BUFFER_BYTES = 1 << 15,
    CUT_MIN_BYTES = 1 << 14 /* of a row that are left out: they take longer than a call */
};
#define READ_MAX_THREADS 16u /* they saturate the bus to a GPU */

/* Rows of one read call, and the results of its parts. */
typedef struct read_job {
    const plain_source *source;
    unsigned char *dst;
    size_t stride;
    uint64_t rows;
    uint32_t parts;
    struct read_part {
        int cause; /* errno; 0: none */
        /* Another failure, in this row of the file; NULL: none. */
        gf_status (*fail)(const plain_source *source, uint64_t row, gf_error *error);
        uint64_t row;
    } results[READ_MAX_PARTS * READ_MAX_THREADS];
} read_job;

/* Fill all vectors from the file. Return the number of bytes read; it is smaller at the end of the
 * file, or on a failure, which sets *cause. */
static size_t plain_read_vectors(int fd, struct iovec *vectors, int count, uint64_t offset,
                                 int *cause) {
    size_t all = 0;
    while (count > 0) {
        const ssize_t got = preadv(fd, vectors, count, (off_t)(offset + all));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            *cause = got < 0 ? errno : 0;
            break;
        }
        all += (size_t)got;
        size_t rest = (size_t)got;
        for (; count > 0 && rest >= vectors->iov_len; vectors++, count--)
            rest -= vectors->iov_len;
        if (count > 0) {
            vectors->iov_base = (unsigned char *)vectors->iov_base + rest;
            vectors->iov_len -= rest;
        }
    }
    return all;
}

/* Make vectors for consecutive rows of the file, in its order. Use one vector if the rows are also
 * consecutive in memory. */
static int plain_make_vectors(const read_job *job, unsigned char *dst, uint64_t rows,
                              struct iovec vectors[VECTORS]) {
    const size_t row_bytes = plain_part_bytes(job->source);
    const bool bottom_up = job->source->order.bottom_up;
    if (!bottom_up && job->stride == row_bytes) {
        vectors[0] = (struct iovec){dst, rows * row_bytes};
        return 1;
    }
    for (uint64_t i = 0; i < rows; i++) {
        const uint64_t row = bottom_up ? rows - 1 - i : i;
        vectors[i] = (struct iovec){dst + row * job->stride, row_bytes};
    }
    return (int)rows;
}

/* Read rows into dst; narrow rows are read into a buffer first. Return the number of bytes read. */
static size_t plain_read_rows(const read_job *job, unsigned char *dst, uint64_t rows, bool narrow,
                              uint64_t offset, struct read_part *result) {
    const plain_source *source = job->source;
    const gf_row_order *order = &source->order;
    const size_t row_bytes = plain_part_bytes(source);
    unsigned char buffer[READ_BUFFER_BYTES];
    struct iovec vectors[VECTORS];
    vectors[0] = (struct iovec){buffer, rows * row_bytes};
    const int count = narrow ? 1 : plain_make_vectors(job, dst, rows, vectors);
    const size_t got =
        plain_read_vectors(fileno(source->input.file), vectors, count, offset, &result->cause);
    for (uint64_t i = 0; got == rows * row_bytes && i < rows; i++) {
        unsigned char *row = dst + (order->bottom_up ? rows - 1 - i : i) * job->stride;
        if (plain_convert_row(source, row, narrow ? buffer + i * row_bytes : row))
            continue;
        result->fail = plain_fail_above;
        result->row = (offset - order->start) / gf_row_bytes(&order->format) + i;
        break;
    }
    return got;
}

static void plain_read_part(void *context, uint32_t task, uint32_t thread) {
    read_job *job = context;
    const plain_source *source = job->source;
    const gf_row_order *order = &source->order;
    const size_t row_bytes = plain_part_bytes(source);
    const bool cut = row_bytes != gf_row_bytes(&order->format);
    const bool narrow = row_bytes < READ_NARROW_BYTES && row_bytes != job->stride;
    const uint64_t piece = READ_PIECE_BYTES / row_bytes + 1;
    const uint64_t max = cut               ? 1
                         : narrow          ? READ_BUFFER_BYTES / row_bytes
                         : piece < VECTORS ? piece
                                           : VECTORS;
    const uint64_t end = gf_share(job->rows, task + 1, job->parts);
    struct read_part *result = &job->results[task];
    (void)thread;
    for (uint64_t i = gf_share(job->rows, task, job->parts), rows; i < end; i += rows) {
        rows = end - i < max ? end - i : max;
        const uint64_t offset = gf_row_order_offset(order, source->y + i, rows) + source->cut_bytes;
        const size_t got =
            plain_read_rows(job, job->dst + i * job->stride, rows, narrow, offset, result);
        if (result->fail)
            return;
        if (got < rows * row_bytes) {
            result->fail = plain_fail_short;
            result->row = (offset + got - order->start) / gf_row_bytes(&order->format);
            return;
        }
    }
}

static uint32_t plain_count_parts(const plain_source *source, uint64_t rows, uint32_t max) {
    const uint64_t parts = rows * plain_part_bytes(source) / READ_PART_BYTES;
    return parts < 1 ? 1 : parts < max ? (uint32_t)parts : max;
}

static gf_status plain_read_shared(plain_source *source, void *dst, size_t stride, uint64_t rows,
                                   gf_error *error) {
    read_job job = {.source = source,
                    .dst = dst,
                    .stride = stride,
                    .rows = rows,
                    .parts = plain_count_parts(source, rows, READ_MAX_PARTS * source->threads)};
    gf_work work = {.run = plain_read_part, .context = &job, .count = job.parts};
    const uint32_t used = job.parts < source->threads ? job.parts : source->threads;
    if (used > source->max_used)
        source->max_used = used;
    gf_pool_run(source->pool, &work);
    for (uint32_t i = 0; i < job.parts; i++) {
        const struct read_part *result = &job.results[i];
        if (result->cause != 0)
            return gf_input_fail_read(&source->input, result->cause, error);
        if (result->fail)
            return result->fail(source, result->row, error);
    }
    return GF_OK;
}

/* ---- reading rows in the order of the file --------------------------------------------------- */

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

static gf_status plain_read_text(plain_source *source, unsigned char *row, gf_error *error) {
    const gf_format *format = &source->base.format;
    const uint32_t top = plain_top(format->type);
    for (uint64_t i = 0; i < gf_row_samples(format); i++) {
        uint64_t value = 0;
        gf_status status = source->bitmap
                               ? pbm_read_bit(&source->input, &value, error)
                               : pnm_read_number(&source->input, "sample", &value, error);
        if (status)
            return status;
        if (value > source->maxval)
            return plain_fail_above(source, source->y, error);
        value = plain_scale_sample((uint32_t)value, source->maxval, top);
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

static gf_status plain_read_binary(plain_source *source, unsigned char *row, gf_error *error) {
    const size_t size = gf_row_bytes(&source->order.format);
    size_t got;
    const gf_status status = gf_input_read(&source->input, row, size, &got, error);
    if (status)
        return status;
    if (got < size)
        return plain_fail_short(source, source->y, error);
    if (source->y == 0)
        source->rows_begin_lf = source->header_ends_cr && *row == '\n';
    return plain_convert_row(source, row, row) ? GF_OK : plain_fail_above(source, source->y, error);
}

static gf_status plain_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                            gf_error *error) {
    plain_source *source = (plain_source *)base;
    unsigned char *out = dst;
    gf_status status = GF_OK;
    if (source->pool) {
        status = plain_read_shared(source, dst, stride, rows, error);
        source->y += rows;
        return status;
    }
    for (; rows != 0 && !status; rows--, out += stride, source->y++)
        status = (source->text ? plain_read_text : plain_read_binary)(source, out, error);
    base->bytes = source->input.offset;
    return status;
}

/* Check that a pipe with raw rows has ended: a wrong shape can leave bytes unread. */
static gf_status plain_check_end(plain_source *source, gf_error *error) {
    unsigned char byte;
    size_t got;
    const gf_status status = gf_input_read(&source->input, &byte, 1, &got, error);
    if (status || got == 0)
        return status;
    return gf_fail(error, GF_FAILED,
                   "%s: contains more than the %" PRIu64
                   " bytes that --raw specifies; correct its shape",
                   source->input.name, plain_end(source));
}

/* Ignore what follows the pixels: netpbm files may contain further images. But if the header ends
 * in CR LF and one byte is left, the LF may have been read as the first sample; report that. */
static gf_status plain_finish(gf_source *base, gf_error *error) {
    plain_source *source = (plain_source *)base;
    if (source->rows_begin_lf && gf_input_byte(&source->input) != EOF &&
        gf_input_byte(&source->input) == EOF)
        return plain_fail_line_feed(source, error);
    if (source->pool)
        gf_input_skip_to(&source->input, plain_end(source));
    else if (source->raw && plain_check_end(source, error))
        return GF_FAILED;
    if (base->threads != 0) {
        base->threads = source->max_used;
        base->busy_seconds = gf_pool_busy(source->pool);
    }
    base->bytes = source->input.offset;
    return GF_OK;
}

static void plain_close(gf_source *base) {
    plain_source *source = (plain_source *)base;
    gf_metadata_clear(&base->metadata);
    gf_pool_close(source->pool);
    gf_input_close(&source->input);
    free(source);
}

static void plain_seek(gf_source *base, uint64_t y) {
    ((plain_source *)base)->y = y;
}

/* Leave out columns if a call per row is faster than reading them. */
static bool plain_cut(gf_source *base, uint64_t x, uint64_t width) {
    plain_source *source = (plain_source *)base;
    const size_t pixel = gf_row_bytes(&base->format) / (size_t)base->format.width;
    if (source->bitmap || (base->format.width - width) * pixel < CUT_MIN_BYTES)
        return false;
    source->cut_bytes = (size_t)x * pixel;
    base->format.width = width;
    return true;
}

/* ---- headers of images ----------------------------------------------------------------------- */

/* Describe samples: "16-bit, big-endian". word: inserted after the type. */
static void plain_describe(plain_source *source, const gf_samples *samples, const char *word,
                           const char *tail) {
    gf_source *base = &source->base;
    snprintf(base->stored, sizeof base->stored, "%" PRIu32 "-bit%s%s%s%s", 8 * samples->bytes,
             samples->kind == 'f'   ? " float"
             : samples->kind == 'i' ? " signed"
             : samples->kind == 'b' ? " bool"
                                    : "",
             word,
             samples->bytes == 1 ? ""
             : samples->little   ? ", little-endian"
                                 : ", big-endian",
             tail);
}

static void pnm_describe(const plain_source *source, char *text, size_t size) {
    const gf_value scale = {.type = GF_VALUE_DOUBLE, .real = source->base.metadata.pfm_scale};
    const gf_type type = source->base.format.type;
    const int bits = source->bitmap ? 1 : type == GF_U8 ? 8 : 16;
    char number[40] = "";
    gf_value_format(&scale, number, sizeof number);
    if (type == GF_F32) {
        snprintf(text, size, "32-bit float, %s-endian, scale %s",
                 source->order.little ? "little" : "big", number);
        return;
    }
    snprintf(number, sizeof number, ", maxval %" PRIu32, source->maxval);
    snprintf(text, size, "%d-bit %s%s", bits, source->text ? "text" : "binary",
             source->bitmap || source->maxval == plain_top(type) ? "" : number);
}

/* Read a header, and find the rows of its image. */
static gf_status pnm_read_image(plain_source *source, const gf_limits *limits, gf_error *error) {
    gf_format *format = &source->base.format;
    gf_input *input = &source->input;
    gf_status status = pnm_read_any_header(source, error);
    if (status || (status = gf_check_pixels(format, limits, input->name, error)))
        return status;
    source->order.format = *format;
    if (source->bitmap)
        source->order.format.width = (format->width + 7) / 8;
    source->order.start = input->offset;
    source->header_ends_cr = !input->regular && !source->text && input->last == '\r';
    source->images = 1;
    source->end = plain_end(source);
    pnm_describe(source, source->base.stored, sizeof source->base.stored);
    return GF_OK;
}

/* Read a header, and find the rows of one of its images, from 1. */
static gf_status npy_read_image(plain_source *source, const gf_limits *limits, uint64_t page,
                                gf_error *error) {
    gf_npy npy;
    gf_status status = gf_npy_read_header(&source->input, limits, page, &npy, error);
    gf_format *format = &npy.order.format;
    const gf_samples *samples = &npy.samples;
    if (status)
        return status;
    source->images = npy.images;
    source->end = npy.end;
    plain_describe(source, samples, "", samples->transposed ? ", Fortran order" : "");
    if (samples->transposed || samples->several || !gf_samples_type(samples, &format->type)) {
        source->base.samples = *samples;
        format->channels *= samples->bytes;
        format->type = GF_U8;
    }
    npy.order.little = samples->little;
    source->order = npy.order;
    source->base.format = *format;
    return GF_OK;
}

static bool plain_is_pnm(const plain_source *source) {
    return source->input.head[0] == 'P';
}

/* Return true if another image of the same family follows. */
static bool plain_is_followed(plain_source *source) {
    unsigned char head[8];
    gf_input *input = &source->input;
    if (source->text || !plain_has_size(source) || input->size < sizeof head ||
        source->end > input->size - sizeof head ||
        gf_input_read_at(input, head, sizeof head, source->end, NULL))
        return false;
    return plain_is_pnm(source)
               ? head[0] == 'P' && head[1] && strchr("4567fF", head[1]) && pnm_is_space(head[2])
               : memcmp(head, "\x93NUMPY", 6) == 0;
}

/* Skip the LF of a header that ends in CR LF, as text written on Windows does. The format allows
 * one character; skip the second only if the file is exactly one byte too long. */
static gf_status pnm_skip_line_feed(plain_source *source, gf_error *error) {
    unsigned char end[2];
    if (!plain_is_pnm(source) || source->text || !source->input.regular ||
        source->input.size != plain_end(source) + 1)
        return GF_OK;
    gf_status status =
        gf_input_read_at(&source->input, end, sizeof end, source->order.start - 1, error);
    if (!status && end[0] == '\r' && end[1] == '\n') {
        (void)gf_input_byte(&source->input);
        source->order.start++;
    }
    return status;
}

/* Find the image that limits->page selects, and count those of the file. */
static gf_status plain_find_image(plain_source *source, const gf_limits *limits, gf_error *error) {
    const uint64_t max_counted = limits->place ? 1 << 20 : 4096;
    const uint64_t wanted = limits->page ? limits->page : 1;
    gf_page_place *place = limits->place, at = {.page = 1};
    const plain_source blank = *source;
    plain_source next = blank;
    uint64_t pages = 0;
    bool found = false;
    if (place && place->page && place->page <= wanted) {
        at = *place;
        pages = at.page - 1;
        gf_input_seek(&next.input, at.offset);
    }
    for (;;) {
        const uint64_t before = pages, offset = next.input.offset;
        gf_error *cause = found ? NULL : error;
        const gf_status status =
            plain_is_pnm(source)
                ? pnm_read_image(&next, limits, cause)
                : npy_read_image(&next, limits, found ? 1 : wanted - before, cause);
        if (status && !found)
            return status;
        pages += status ? 0 : next.images;
        if (!found && wanted <= pages) {
            *source = next;
            found = true;
            at = (gf_page_place){.page = before + 1, .pages = at.pages, .offset = offset};
        }
        if (status || (found && (at.pages || pages >= max_counted)) || !plain_is_followed(&next))
            break;
        const uint64_t end = next.end;
        next = blank;
        gf_input_seek(&next.input, end);
    }
    at.pages = at.pages ? at.pages : pages;
    if (!found)
        return gf_fail_page(source->input.name, wanted, pages, error);
    source->base.pages = (uint32_t)at.pages;
    if (place)
        *place = at;
    if (at.pages > 1) {
        const size_t used = strlen(source->base.stored);
        snprintf(source->base.stored + used, sizeof source->base.stored - used,
                 ", page %" PRIu64 " of %" PRIu64 "%s", wanted, at.pages,
                 at.pages < max_counted ? "" : " or more");
        if (source->input.regular)
            gf_input_seek(&source->input, source->order.start);
    }
    return pnm_skip_line_feed(source, error);
}

/* ---- raw rows -------------------------------------------------------------------------------- */

static gf_status raw_find(plain_source *source, const gf_limits *limits, gf_error *error) {
    const gf_raw *raw = limits->raw;
    const char *name = source->input.name;
    char offset[40] = "";
    source->raw = true;
    gf_status status = gf_check_pixels(&raw->format, limits, name, error);
    if (status)
        return status;
    source->base.format = raw->format;
    source->order =
        (gf_row_order){.format = raw->format, .start = raw->offset, .little = !raw->big_endian};
    if (raw->offset > INT64_MAX || plain_end(source) > INT64_MAX)
        return gf_fail(error, GF_FAILED,
                       "%s: --raw specifies more bytes than any file can have; correct its shape",
                       name);
    snprintf(source->base.kind, sizeof source->base.kind, "raw");
    if (raw->offset != 0)
        snprintf(offset, sizeof offset, ", offset %" PRIu64, raw->offset);
    gf_samples samples = gf_samples_of(&source->base);
    samples.little = source->order.little;
    plain_describe(source, &samples, " raw", offset);
    /* Reject a wrong shape, which would give wrong pixels, if the size of the file is known. */
    if (!plain_has_size(source) || source->input.size == plain_end(source))
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: has %" PRIu64 " bytes, but --raw specifies %" PRIu64 "; correct its shape",
                   name, source->input.size, plain_end(source));
}

/* ---- opening --------------------------------------------------------------------------------- */

static gf_status plain_open_readers(plain_source *source, uint32_t threads, gf_error *error) {
    const gf_format *format = &source->order.format;
    if (source->text || !(source->order.bottom_up ? source->input.regular : plain_has_size(source)))
        return GF_OK;
    source->threads = plain_count_parts(source, format->height,
                                        threads < READ_MAX_THREADS ? threads : READ_MAX_THREADS);
    source->base.threads = source->threads > 1 ? source->threads : 0;
    return gf_pool_open(source->threads, &source->pool, error);
}

/* Report a truncated file on opening, not after most of the work, if the size is known. */
static gf_status plain_check_size(const plain_source *source, gf_error *error) {
    const gf_format *format = &source->order.format;
    if (source->text || !plain_has_size(source))
        return GF_OK;
    const uint64_t start = source->order.start, size = source->input.size;
    const uint64_t rows = size < start ? 0 : (size - start) / gf_row_bytes(format);
    return rows < format->height ? plain_fail_short(source, rows, error) : GF_OK;
}

/* Read a pipe up to its rows. */
static gf_status plain_skip_to_rows(plain_source *source, gf_error *error) {
    unsigned char skipped[4096];
    while (source->input.offset < source->order.start) {
        const uint64_t rest = source->order.start - source->input.offset;
        const size_t want = rest < sizeof skipped ? (size_t)rest : sizeof skipped;
        size_t got;
        const gf_status status = gf_input_read(&source->input, skipped, want, &got, error);
        if (status)
            return status;
        if (got < want)
            return plain_fail_short(source, 0, error);
    }
    return GF_OK;
}

/* order: of top-down rows; NULL: the limits or the file have it. */
static gf_status plain_open(const gf_input *input, const gf_row_order *order,
                            const gf_limits *limits, gf_source **opened, gf_error *error) {
    static const gf_source_ops in_order = {
        .read = plain_read, .finish = plain_finish, .close = plain_close};
    static const gf_source_ops in_any_order = {.read = plain_read,
                                               .finish = plain_finish,
                                               .close = plain_close,
                                               .seek = plain_seek,
                                               .cut = plain_cut};
    enum { UPSIDE_DOWN = 4 }; /* orientation */
    plain_source *source = gf_source_new(sizeof *source, &in_order, input->name, error);
    if (!source)
        return GF_FAILED;
    source->base.cost = GF_PLAIN_COST;
    source->input = *input;
    gf_status status = GF_OK;
    if (order) {
        source->order = *order;
        source->base.format = order->format;
    } else {
        status = (limits->raw ? raw_find : plain_find_image)(source, limits, error);
    }
    if (!status)
        status = plain_check_size(source, error);
    if (!status)
        status = plain_open_readers(source, limits->threads, error);
    if (!status && !source->pool)
        status = plain_skip_to_rows(source, error);
    if (source->pool)
        source->base.ops = &in_any_order;
    gf_source *top_down = &source->base;
    if (!status && !source->pool && source->order.bottom_up)
        status = gf_turn_source(&top_down, UPSIDE_DOWN, "a PFM from a pipe", limits->max_memory,
                                source->input.name, error);
    if (status)
        free(source);
    else
        *opened = top_down;
    return status;
}

gf_status gf_plain_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                               gf_error *error) {
    return plain_open(input, NULL, limits, opened, error);
}

gf_status gf_rows_source_open(const gf_input *input, const gf_row_order *order,
                              const gf_limits *limits, gf_source **opened, gf_error *error) {
    return plain_open(input, order, limits, opened, error);
}

/* ---- option --raw ---------------------------------------------------------------------------- */

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

static bool raw_read(const char *text, gf_raw *raw) {
    uint64_t channels = 1;
    if (!gf_parse_digits(&text, &raw->format.width) || !raw_skip(&text, 'x') ||
        !gf_parse_digits(&text, &raw->format.height))
        return false;
    if (raw_skip(&text, 'x') && !gf_parse_digits(&text, &channels))
        return false;
    if (channels > GF_MAX_CHANNELS || !raw_skip(&text, ':') || !raw_type(&text, raw))
        return false;
    raw->format.channels = (uint32_t)channels;
    if (raw_skip(&text, '+') && !gf_parse_digits(&text, &raw->offset))
        return false;
    return *text == '\0' && raw->offset <= INT64_MAX &&
           gf_format_check(&raw->format, "", NULL) == GF_OK;
}

gf_status gf_raw_parse(const char *text, gf_raw *raw, gf_error *error) {
    gf_raw parsed = {0};
    if (!raw_read(text, &parsed))
        return gf_fail(error, GF_USAGE,
                       "--raw '%s': must be WIDTHxHEIGHT[xCHANNELS]:TYPE[+OFFSET], such as "
                       "4096x3072:u16be+512; TYPE is u8, u16, u16le, u16be, f32, f32le or f32be, "
                       "CHANNELS 1 to 4",
                       text);
    *raw = parsed;
    return GF_OK;
}
