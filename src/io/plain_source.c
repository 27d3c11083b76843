/* Plain files in: PGM, PPM, PAM and PFM, whose header says what the rows behind it are, and raw
 * rows, of which the user says it. Rows of a regular file go straight to where they are wanted,
 * read by several threads at a time. */
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

typedef struct pnm_header {
    gf_format format;
    const char *kind; /* "pgm", "ppm", "pam" or "pfm" */
    bool plain;       /* samples are decimal text */
    bool little;      /* PFM: byte order of the samples */
    double pfm_scale; /* PFM: magnitude of the scale, over 0; 1 elsewhere */
} pnm_header;

typedef struct plain_source {
    gf_source base;
    gf_input input;
    pnm_header header;
    uint64_t max_memory;
    gf_row_order order;
    gf_pool *pool;          /* of threads that read rows in any order; NULL: only in the file's */
    uint32_t threads;       /* of the pool */
    uint32_t widest;        /* threads that have read at a time */
    size_t left, row_bytes; /* of a row: bytes that are skipped, and those that are read */
    uint64_t y;             /* of the next row */
    unsigned char *held;    /* a PFM that cannot be read backwards, once read */
    bool returned;          /* from a pipe: the header ends in CR, */
    bool fed;               /* and the first byte behind it is LF */
    bool raw;               /* no header: rows are all that there may be */
} plain_source;

/* Longest word or line of a header, in bytes, with its end. Numbers need 20. */
enum { WORD_BYTES = 64, LINE_BYTES = 256 };

/* Most bytes of a number with the blanks and comments before it, and of a PAM's header: a file with
 * a hole may be longer than anybody can wait for. */
enum { MOST_TEXT = 1 << 20 };

/* ---- characters ------------------------------------------------------------------------------ */

/* One character; a comment reads as the newline that ends it. EOF also where the text goes on to
 * offset `end`. */
static int pnm_next_char(gf_input *input, uint64_t end) {
    int c = gf_input_byte(input);
    if (c == '#') {
        do {
            c = gf_input_byte(input);
        } while (c != '\n' && c != '\r' && c != EOF && input->offset < end);
    }
    return input->offset < end ? c : EOF;
}

/* Not isspace(): that depends on the locale. */
static bool pnm_is_space(int c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static gf_status pnm_fail_end(const gf_input *input, gf_error *error) {
    if (ferror(input->file))
        return gf_fail(error, GF_FAILED, "%s: cannot read: %s", input->name, strerror(errno));
    if (!feof(input->file))
        return gf_fail(error, GF_FAILED, "%s: has too much text for one number; it is damaged",
                       input->name);
    return gf_fail_short(input->name, error);
}

/* The next word between white space; the one character after it is read as well, as the formats
 * want. */
static gf_status pnm_read_word(gf_input *input, const char *what, char word[WORD_BYTES],
                               gf_error *error) {
    const uint64_t end = input->offset + MOST_TEXT;
    size_t length = 0;
    int c;
    do {
        c = pnm_next_char(input, end);
    } while (pnm_is_space(c));
    while (c != EOF && !pnm_is_space(c)) {
        if (length == WORD_BYTES - 1 || c < ' ' || c > '~')
            return gf_fail(error, GF_FAILED, "%s: its %s is not a number; the file is damaged",
                           input->name, what);
        word[length++] = (char)c;
        c = pnm_next_char(input, end);
    }
    word[length] = '\0';
    return length == 0 ? pnm_fail_end(input, error) : GF_OK;
}

/* Parse digits, past which *text then points; a number over UINT64_MAX counts as that. Not
 * strtoull(): it takes signs, spaces and what the locale adds. */
static bool plain_parse(const char **text, uint64_t *number) {
    const char *at = *text;
    uint64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            value = UINT64_MAX;
    *number = value;
    const bool found = at != *text;
    *text = at;
    return found;
}

/* Read the next decimal number, past white space and comments, and the one character after it,
 * which input->last then is. what names it in messages. */
static gf_status pnm_read_number(gf_input *input, uint64_t max, const char *what, uint64_t *number,
                                 gf_error *error) {
    const uint64_t end = input->offset + MOST_TEXT;
    uint64_t value = 0;
    int c;
    do {
        c = pnm_next_char(input, end);
    } while (pnm_is_space(c));
    if (c == EOF)
        return pnm_fail_end(input, error);
    if (c < '0' || c > '9')
        return gf_fail(error, GF_FAILED, "%s: its %s is not a number; the file is damaged",
                       input->name, what);
    do {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(c - '0'), &value) || value > max)
            return gf_fail(error, GF_FAILED, "%s: its %s is over %" PRIu64 "; the file is damaged",
                           input->name, what, max);
        c = pnm_next_char(input, end);
    } while (c >= '0' && c <= '9');
    if (c == EOF && !feof(input->file))
        return pnm_fail_end(input, error);
    if (c != EOF && !pnm_is_space(c))
        return gf_fail(error, GF_FAILED, "%s: its %s is not a number; the file is damaged",
                       input->name, what);
    *number = value;
    return GF_OK;
}

/* ---- what headers have in common ------------------------------------------------------------- */

/* A number of a header: one that the file ends with may have lost digits. */
static gf_status pnm_read_field(gf_input *input, const char *what, uint64_t *number,
                                gf_error *error) {
    gf_status status = pnm_read_number(input, UINT64_MAX, what, number, error);
    return !status && input->last == EOF ? pnm_fail_end(input, error) : status;
}

static gf_status pnm_read_size(gf_input *input, gf_format *format, gf_error *error) {
    gf_status status = pnm_read_field(input, "width", &format->width, error);
    if (!status)
        status = pnm_read_field(input, "height", &format->height, error);
    return status;
}

static gf_status pnm_set_maxval(const gf_input *input, uint64_t maxval, gf_format *format,
                                gf_error *error) {
    if (maxval != 255 && maxval != 65535)
        return gf_fail(error, GF_FAILED,
                       "%s: maxval %" PRIu64
                       ": only 255 and 65535 keep values exact here; "
                       "rescale it first, e.g. with pamdepth 65535",
                       input->name, maxval);
    format->type = maxval == 255 ? GF_U8 : GF_U16;
    return GF_OK;
}

/* ---- the four kinds of headers --------------------------------------------------------------- */

static gf_status pnm_read_header(gf_input *input, pnm_header *header, gf_error *error) {
    uint64_t maxval;
    gf_status status = pnm_read_size(input, &header->format, error);
    if (!status)
        status = pnm_read_field(input, "maxval", &maxval, error);
    return status ? status : pnm_set_maxval(input, maxval, &header->format, error);
}

static gf_status pfm_read_header(gf_input *input, pnm_header *header, gf_error *error) {
    char word[WORD_BYTES];
    char *end = word;
    gf_status status = pnm_read_size(input, &header->format, error);
    if (!status)
        status = pnm_read_word(input, "scale", word, error);
    if (status)
        return status;
    gf_c_locale scope = gf_c_locale_enter();
    /* strtod also knows hexadecimal, infinity and NaN: not wanted here. */
    double scale = word[strspn(word, "+-.0123456789eE")] == '\0' ? strtod(word, &end) : 0;
    gf_c_locale_leave(&scope);
    if (*end != '\0' || scale == 0 || !isfinite(scale))
        return gf_fail(error, GF_FAILED,
                       "%s: its scale is not a number other than 0; the file is damaged",
                       input->name);
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
static gf_status pam_read_line(gf_input *input, char line[LINE_BYTES], char **text,
                               gf_error *error) {
    size_t length = 0;
    int c;
    while ((c = gf_input_byte(input)) != '\n') {
        if (c == EOF)
            return pnm_fail_end(input, error);
        if ((length == LINE_BYTES - 1 && line[strspn(line, " \t")] != '#') ||
            input->offset > MOST_TEXT)
            return gf_fail(error, GF_FAILED, "%s: a line of its header is too long or damaged",
                           input->name);
        /* Comments may be longer; only their start matters. */
        if (length < LINE_BYTES - 1)
            line[length++] = (char)c;
    }
    while (length != 0 && pnm_is_space((unsigned char)line[length - 1]))
        length--;
    line[length] = '\0';
    for (*text = line; pnm_is_space((unsigned char)**text); (*text)++) {
    }
    return GF_OK;
}

static gf_status pam_set_field(const gf_input *input, pam_fields *fields, const char *key,
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
            if (!plain_parse(&value, numbers[i].number) || *value)
                return gf_fail(error, GF_FAILED, "%s: its %s is not a number; the file is damaged",
                               input->name, key);
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
static gf_status pam_check_tuple(const gf_input *input, const pam_fields *fields, gf_error *error) {
    static const char *const tuples[] = {"GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"};
    if (fields->depth >= 1 && fields->depth <= 4 &&
        (fields->tuple[0] == '\0' || strcmp(fields->tuple, tuples[fields->depth - 1]) == 0))
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: DEPTH %" PRIu64
                   " with TUPLTYPE '%s' is not read; it can be 1 GRAYSCALE, "
                   "2 GRAYSCALE_ALPHA, 3 RGB or 4 RGB_ALPHA",
                   input->name, fields->depth, fields->tuple);
}

static gf_status pam_read_header(gf_input *input, pnm_header *header, gf_error *error) {
    pam_fields fields = {0};
    char line[LINE_BYTES] = "";
    char *key = line;
    gf_status status;
    while ((status = pam_read_line(input, line, &key, error)) == GF_OK) {
        if (*key == '#' || *key == '\0')
            continue;
        if (strcmp(key, "ENDHDR") == 0)
            break;
        char *value = key;
        while (*value != '\0' && !pnm_is_space((unsigned char)*value))
            value++;
        while (pnm_is_space((unsigned char)*value))
            *value++ = '\0';
        if ((status = pam_set_field(input, &fields, key, value, error)))
            break;
    }
    if (!status && fields.maxval == 0)
        return gf_fail(error, GF_FAILED, "%s: its header has no MAXVAL; the file is damaged",
                       input->name);
    if (status || (status = pnm_set_maxval(input, fields.maxval, &header->format, error)) ||
        (status = pam_check_tuple(input, &fields, error)))
        return status;
    header->format.width = fields.width;
    header->format.height = fields.height;
    header->format.channels = (uint32_t)fields.depth;
    return GF_OK;
}

static gf_status pnm_read_any_header(gf_input *input, const gf_limits *limits, pnm_header *header,
                                     gf_error *error) {
    gf_status status;
    *header = (pnm_header){.format.channels = 1, .pfm_scale = 1.0};
    (void)gf_input_byte(input); /* the P, which the caller saw */
    const int kind = gf_input_byte(input);
    header->plain = kind == '2' || kind == '3';
    header->kind = kind == '7'                  ? "pam"
                   : kind == 'F' || kind == 'f' ? "pfm"
                   : kind == '3' || kind == '6' ? "ppm"
                                                : "pgm";
    if (kind == '3' || kind == '6' || kind == 'F')
        header->format.channels = 3;
    if (kind == '1' || kind == '4')
        return gf_fail(error, GF_FAILED,
                       "%s: is a bitmap (PBM); convert it first, e.g. with pnmdepth 255 or "
                       "pbmtopgm 1 1",
                       input->name);
    if (kind == 'F' || kind == 'f')
        status = pfm_read_header(input, header, error);
    else
        status = (kind == '7' ? pam_read_header : pnm_read_header)(input, header, error);
    if (!status)
        status = gf_check_pixels(header->format.width, header->format.height, limits, input->name,
                                 error);
    if (!status)
        status = gf_format_check(&header->format, input->name, error);
    return status;
}

/* ---- rows of files --------------------------------------------------------------------------- */

static gf_status plain_fail_short(const plain_source *source, uint64_t y, gf_error *error) {
    return gf_fail(error, GF_FAILED,
                   "%s: the file ends too early, in row %" PRIu64 " of %" PRIu64
                   "; get a complete copy",
                   source->input.name, y + 1, source->base.format.height);
}

/* Files that know no size (in /proc) call themselves empty. */
static bool plain_knows_size(const plain_source *source) {
    return source->input.regular && source->input.size != 0;
}

/* Offset behind the last row. */
static uint64_t plain_end(const plain_source *source) {
    return source->order.start +
           source->base.format.height * (uint64_t)gf_row_bytes(&source->base.format);
}

/* ---- rows in any order, by several threads --------------------------------------------------- */

enum {
    VECTORS = 256,              /* rows in one call to the system */
    READ_PART_BYTES = 1 << 18,  /* read by a thread at a time, at least */
    READ_MOST_PARTS = 4,        /* a thread: who is late does fewer of them */
    READ_PIECE_BYTES = 1 << 18, /* read, and while still in the cache put in order */
    READ_NARROW_BYTES = 512,    /* a shorter row is copied sooner than the system is told of it */
    READ_BUFFER_BYTES = 1 << 15
};
#define READ_MAX_THREADS GF_PLAIN_DECODE_THREADS

/* Rows of one call, and what became of it. */
typedef struct read_job {
    const plain_source *source;
    unsigned char *dst;
    size_t stride;
    uint64_t rows;
    uint32_t parts;
    struct read_part {
        int cause; /* errno, 0 for none */
        bool ended;
        uint64_t row; /* of the file, where it ended */
    } results[READ_MOST_PARTS * READ_MAX_THREADS];
} read_job;

/* Fills all vectors from the file. Returns the bytes that are there: fewer at its end, or on a
 * failure, which is in *cause. */
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

/* Vectors for rows that lie together in the file, in its order: one where they do so in memory. */
static int plain_make_vectors(const read_job *job, unsigned char *dst, uint64_t rows,
                              struct iovec vectors[VECTORS]) {
    const size_t row_bytes = job->source->row_bytes;
    const bool upwards = job->source->order.upwards;
    if (!upwards && job->stride == row_bytes) {
        vectors[0] = (struct iovec){dst, rows * row_bytes};
        return 1;
    }
    for (uint64_t i = 0; i < rows; i++) {
        const uint64_t row = upwards ? rows - 1 - i : i;
        vectors[i] = (struct iovec){dst + row * job->stride, row_bytes};
    }
    return (int)rows;
}

/* Reads rows to where they belong. Returns how many bytes were there. */
static size_t plain_read_wide(const read_job *job, unsigned char *dst, uint64_t rows,
                              uint64_t offset, int *cause) {
    struct iovec vectors[VECTORS];
    const gf_row_order *order = &job->source->order;
    const size_t row_bytes = job->source->row_bytes;
    const int count = plain_make_vectors(job, dst, rows, vectors);
    const size_t got =
        plain_read_vectors(fileno(job->source->input.file), vectors, count, offset, cause);
    for (uint64_t i = 0; got == rows * row_bytes && !gf_row_order_plain(order) && i < rows; i++)
        gf_row_order_copy(order, dst + i * job->stride, dst + i * job->stride,
                          row_bytes / gf_type_bytes(order->format.type));
    return got;
}

/* The same through a buffer that holds them all. */
static size_t plain_read_narrow(const read_job *job, unsigned char *dst, uint64_t rows,
                                uint64_t offset, int *cause) {
    const gf_row_order *order = &job->source->order;
    const size_t row_bytes = gf_row_bytes(&order->format);
    unsigned char buffer[READ_BUFFER_BYTES];
    struct iovec vector = {buffer, (size_t)rows * row_bytes};
    const size_t got =
        plain_read_vectors(fileno(job->source->input.file), &vector, 1, offset, cause);
    for (uint64_t i = 0; got == rows * row_bytes && i < rows; i++) {
        const uint64_t row = order->upwards ? rows - 1 - i : i;
        gf_row_order_copy(order, dst + row * job->stride, buffer + i * row_bytes,
                          gf_row_samples(&order->format));
    }
    return got;
}

static void plain_read_part(void *context, uint32_t task, uint32_t thread) {
    read_job *job = context;
    const plain_source *source = job->source;
    const gf_row_order *order = &source->order;
    const size_t row_bytes = source->row_bytes;
    const bool whole = row_bytes == gf_row_bytes(&order->format);
    const bool narrow = whole && row_bytes < READ_NARROW_BYTES && row_bytes != job->stride;
    const uint64_t piece = READ_PIECE_BYTES / row_bytes + 1;
    const uint64_t most = !whole            ? 1
                          : narrow          ? READ_BUFFER_BYTES / row_bytes
                          : piece < VECTORS ? piece
                                            : VECTORS;
    const uint64_t end = gf_share(job->rows, task + 1, job->parts);
    struct read_part *result = &job->results[task];
    (void)thread;
    for (uint64_t i = gf_share(job->rows, task, job->parts), rows; i < end; i += rows) {
        rows = end - i < most ? end - i : most;
        const uint64_t offset = gf_row_order_offset(order, source->y + i, rows) + source->left;
        const size_t got = (narrow ? plain_read_narrow : plain_read_wide)(
            job, job->dst + i * job->stride, rows, offset, &result->cause);
        if (got < rows * row_bytes) {
            result->ended = result->cause == 0;
            result->row = (offset + got - order->start) / gf_row_bytes(&order->format);
            return;
        }
    }
}

static uint32_t plain_count_parts(const plain_source *source, uint64_t rows, uint32_t most) {
    const uint64_t parts = rows * source->row_bytes / READ_PART_BYTES;
    return parts < 1 ? 1 : parts < most ? (uint32_t)parts : most;
}

static gf_status plain_read_shared(plain_source *source, void *dst, size_t stride, uint64_t rows,
                                   gf_error *error) {
    read_job job = {.source = source,
                    .dst = dst,
                    .stride = stride,
                    .rows = rows,
                    .parts = plain_count_parts(source, rows, READ_MOST_PARTS * source->threads)};
    gf_work work = {.run = plain_read_part, .context = &job, .count = job.parts};
    const uint32_t width = job.parts < source->threads ? job.parts : source->threads;
    if (width > source->widest)
        source->widest = width;
    gf_pool_run(source->pool, &work);
    for (uint32_t i = 0; i < job.parts; i++) {
        const struct read_part *result = &job.results[i];
        if (result->cause != 0)
            return gf_fail(error, GF_FAILED, "%s: cannot read: %s", source->input.name,
                           strerror(result->cause));
        if (result->ended)
            return plain_fail_short(source, result->row, error);
    }
    return GF_OK;
}

/* ---- rows in the file's order -----------------------------------------------------------------
 */

/* Reads exactly size bytes that hold rows from row y on. */
static gf_status plain_read_exactly(plain_source *source, void *data, size_t size, uint64_t y,
                                    gf_error *error) {
    size_t got;
    gf_status status = gf_input_read(&source->input, data, size, &got, error);
    if (!status && got < size)
        status = plain_fail_short(source, y + got / gf_row_bytes(&source->base.format), error);
    if (!status && y == 0)
        source->fed = source->returned && *(const unsigned char *)data == '\n';
    return status;
}

static gf_status plain_read_text(plain_source *source, unsigned char *row, gf_error *error) {
    const gf_format *format = &source->base.format;
    uint64_t max = format->type == GF_U8 ? 255 : 65535;
    for (uint64_t i = 0; i < gf_row_samples(format); i++) {
        uint64_t value = 0;
        gf_status status = pnm_read_number(&source->input, max, "sample", &value, error);
        if (status)
            return status;
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
    const gf_format *format = &source->base.format;
    gf_status status = plain_read_exactly(source, row, gf_row_bytes(format), source->y, error);
    if (!status)
        gf_row_order_copy(&source->order, row, row, gf_row_samples(format));
    return status;
}

/* The file has the last row first: a pipe must be held before the first row is known. */
static gf_status plain_hold(plain_source *source, gf_error *error) {
    size_t row_bytes = gf_row_bytes(&source->base.format);
    uint64_t bytes = row_bytes * source->base.format.height;
    gf_status status =
        gf_check_memory(bytes, source->max_memory, source->input.name, "a PFM from a pipe", error);
    if (status)
        return status;
    source->held = malloc((size_t)bytes); /* NOLINT: an image has at least one sample */
    if (!source->held)
        return gf_fail_memory(error, source->input.name, bytes, "a PFM from a pipe");
    return plain_read_exactly(source, source->held, (size_t)bytes, 0, error);
}

static gf_status plain_read_held(plain_source *source, unsigned char *row, gf_error *error) {
    const gf_format *format = &source->base.format;
    const gf_row_order *order = &source->order;
    gf_status status = !source->held ? plain_hold(source, error) : GF_OK;
    if (!status)
        gf_row_order_copy(order, row,
                          source->held + gf_row_order_offset(order, source->y, 1) - order->start,
                          gf_row_samples(format));
    return status;
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
    for (uint64_t i = 0; i < rows && !status; i++, source->y++) {
        unsigned char *row = out + i * stride;
        if (source->order.upwards)
            status = plain_read_held(source, row, error);
        else if (source->header.plain)
            status = plain_read_text(source, row, error);
        else
            status = plain_read_binary(source, row, error);
    }
    return status;
}

/* Raw rows from a pipe: with a wrong shape there may be more of them. */
static gf_status plain_check_end(plain_source *source, gf_error *error) {
    unsigned char byte;
    size_t got;
    const gf_status status = gf_input_read(&source->input, &byte, 1, &got, error);
    if (status || got == 0)
        return status;
    return gf_fail(error, GF_FAILED,
                   "%s: holds more than the %" PRIu64 " bytes that --raw says; give its real shape",
                   source->input.name, plain_end(source));
}

/* Nothing follows the pixels that would matter: netpbm files may hold further images. But a single
 * byte may mean that what was taken for the first sample was the header's. */
static gf_status plain_finish(gf_source *base, gf_error *error) {
    plain_source *source = (plain_source *)base;
    if (source->fed && gf_input_byte(&source->input) != EOF && gf_input_byte(&source->input) == EOF)
        return gf_fail(error, GF_FAILED,
                       "%s: its header ends in CR LF, which may be part of the image; give it as a "
                       "file, not by a pipe",
                       source->input.name);
    if (source->pool)
        gf_input_skip_to(&source->input, plain_end(source));
    else if (source->raw && plain_check_end(source, error))
        return GF_FAILED;
    if (base->threads != 0) {
        base->threads = source->widest;
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
    free(source->held);
    free(source);
}

static void plain_seek(gf_source *base, uint64_t y) {
    ((plain_source *)base)->y = y;
}

/* ---- opening --------------------------------------------------------------------------------- */

static gf_status plain_open_readers(plain_source *source, uint32_t threads, gf_error *error) {
    const gf_format *format = &source->order.format;
    if (source->header.plain ||
        !(source->order.upwards ? source->input.regular : plain_knows_size(source)))
        return GF_OK;
    source->row_bytes = gf_row_bytes(format);
    source->threads = plain_count_parts(source, format->height,
                                        threads < READ_MAX_THREADS ? threads : READ_MAX_THREADS);
    source->base.threads = source->threads > 1 ? source->threads : 0;
    return gf_pool_open(source->threads, &source->pool, error);
}

/* Finds out what the rows are and where: format, order and all else that is not 0. */
typedef gf_status plain_find_rows(plain_source *source, const gf_limits *limits, gf_error *error);

static gf_status plain_open(plain_find_rows *find, const gf_input *input, const gf_limits *limits,
                            gf_source **opened, gf_error *error) {
    static const gf_source_ops in_order = {plain_read, plain_finish, plain_close, NULL};
    static const gf_source_ops in_any_order = {plain_read, plain_finish, plain_close, plain_seek};
    plain_source *source = gf_source_new(sizeof *source, &in_order, input->name, error);
    if (!source)
        return GF_FAILED;
    source->base.cost = GF_PLAIN_COST;
    source->input = *input;
    source->max_memory = limits->max_memory;
    gf_status status = find(source, limits, error);
    if (status) {
        free(source);
        return status;
    }
    if (source->pool)
        source->base.ops = &in_any_order;
    *opened = &source->base;
    return GF_OK;
}

/* ---- opening by a header --------------------------------------------------------------------- */

/* Headers that were written as text on Windows end in two characters, of which the format knows
 * one. Where the file is longer than it should be by just that one, it is no sample. */
static gf_status pnm_skip_line_feed(plain_source *source, gf_error *error) {
    const gf_format *format = &source->base.format;
    unsigned char end[2];
    if (source->header.plain || !source->input.regular ||
        source->input.size != source->order.start + format->height * gf_row_bytes(format) + 1)
        return GF_OK;
    gf_status status =
        gf_input_read_at(&source->input, end, sizeof end, source->order.start - 1, error);
    if (!status && end[0] == '\r' && end[1] == '\n') {
        (void)gf_input_byte(&source->input);
        source->order.start++;
    }
    return status;
}

/* A truncated file is told at once where its size is known, not after most of the work. */
static gf_status pnm_check_size(const plain_source *source, gf_error *error) {
    const gf_format *format = &source->base.format;
    if (source->header.plain || !plain_knows_size(source))
        return GF_OK;
    const uint64_t rows = (source->input.size - source->order.start) / gf_row_bytes(format);
    return rows < format->height ? plain_fail_short(source, rows, error) : GF_OK;
}

static void pnm_describe(plain_source *source) {
    const pnm_header *header = &source->header;
    gf_source *base = &source->base;
    const gf_value scale = {.type = GF_VALUE_DOUBLE, .real = header->pfm_scale};
    char text[40];
    snprintf(base->kind, sizeof base->kind, "%s", header->kind);
    gf_value_format(&scale, text, sizeof text);
    if (base->format.type == GF_F32)
        snprintf(base->stored, sizeof base->stored, "32-bit float, %s-endian, scale %s",
                 header->little ? "little" : "big", text);
    else
        snprintf(base->stored, sizeof base->stored, "%d-bit %s",
                 base->format.type == GF_U8 ? 8 : 16, header->plain ? "text" : "binary");
}

static gf_status pnm_open(plain_source *source, const gf_limits *limits, gf_error *error) {
    const pnm_header *header = &source->header;
    gf_status status = pnm_read_any_header(&source->input, limits, &source->header, error);
    if (status)
        return status;
    source->base.format = header->format;
    source->base.metadata.pfm_scale = header->pfm_scale;
    source->order = (gf_row_order){.format = header->format,
                                   .start = source->input.offset,
                                   .upwards = header->format.type == GF_F32,
                                   .little = header->little};
    source->returned = !source->input.regular && !header->plain && source->input.last == '\r';
    pnm_describe(source);
    status = pnm_check_size(source, error);
    if (!status)
        status = pnm_skip_line_feed(source, error);
    return status ? status : plain_open_readers(source, limits->threads, error);
}

gf_status gf_pnm_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                             gf_error *error) {
    return plain_open(pnm_open, input, limits, opened, error);
}

/* ---- opening raw rows ------------------------------------------------------------------------ */

/* A wrong shape would give wrong pixels: it is told where it can be. */
static gf_status raw_check_size(const plain_source *source, gf_error *error) {
    if (!plain_knows_size(source) || source->input.size == plain_end(source))
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: holds %" PRIu64 " bytes, and --raw says %" PRIu64 "; give its real shape",
                   source->input.name, source->input.size, plain_end(source));
}

static gf_status raw_skip_to_rows(plain_source *source, gf_error *error) {
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

static void raw_describe(const gf_raw *raw, gf_source *base) {
    static const char *const types[] = {"8-bit", "16-bit", "32-bit float"};
    char offset[40] = "";
    snprintf(base->kind, sizeof base->kind, "raw");
    if (raw->offset != 0)
        snprintf(offset, sizeof offset, ", from byte %" PRIu64, raw->offset);
    snprintf(base->stored, sizeof base->stored, "%s raw%s%s", types[raw->format.type],
             raw->format.type == GF_U8 ? ""
             : raw->big                ? ", big-endian"
                                       : ", little-endian",
             offset);
}

static gf_status raw_open(plain_source *source, const gf_limits *limits, gf_error *error) {
    const gf_raw *raw = limits->raw;
    const char *name = source->input.name;
    source->raw = true;
    gf_status status = gf_check_pixels(raw->format.width, raw->format.height, limits, name, error);
    if (!status)
        status = gf_format_check(&raw->format, name, error);
    if (status)
        return status;
    source->base.format = raw->format;
    source->order =
        (gf_row_order){.format = raw->format, .start = raw->offset, .little = !raw->big};
    if (raw->offset > INT64_MAX || plain_end(source) > INT64_MAX)
        return gf_fail(error, GF_FAILED,
                       "%s: no file is as long as --raw says; give its real shape", name);
    raw_describe(raw, &source->base);
    status = raw_check_size(source, error);
    if (!status)
        status = plain_open_readers(source, limits->threads, error);
    return !status && !source->pool ? raw_skip_to_rows(source, error) : status;
}

gf_status gf_raw_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                             gf_error *error) {
    return plain_open(raw_open, input, limits, opened, error);
}

static bool raw_skip(const char **text, char c) {
    if (**text != c)
        return false;
    ++*text;
    return true;
}

static bool raw_type(const char **text, gf_raw *raw) {
    static const struct {
        const char *name;
        gf_type type;
        bool big;
    } types[] = {{"u8", GF_U8, false},    {"u16", GF_U16, false}, {"u16le", GF_U16, false},
                 {"u16be", GF_U16, true}, {"f32", GF_F32, false}, {"f32le", GF_F32, false},
                 {"f32be", GF_F32, true}};
    const size_t length = strcspn(*text, "+");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strlen(types[i].name) != length || memcmp(*text, types[i].name, length) != 0)
            continue;
        raw->format.type = types[i].type;
        raw->big = types[i].big;
        *text += length;
        return true;
    }
    return false;
}

static bool raw_read(const char *text, gf_raw *raw) {
    uint64_t channels = 1;
    if (!plain_parse(&text, &raw->format.width) || !raw_skip(&text, 'x') ||
        !plain_parse(&text, &raw->format.height))
        return false;
    if (raw_skip(&text, 'x') && !plain_parse(&text, &channels))
        return false;
    if (channels > GF_MAX_CHANNELS || !raw_skip(&text, ':') || !raw_type(&text, raw))
        return false;
    raw->format.channels = (uint32_t)channels;
    if (raw_skip(&text, '+') && !plain_parse(&text, &raw->offset))
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
