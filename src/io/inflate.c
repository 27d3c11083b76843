/* Decompression of PNG image data, from IDAT chunks to filtered rows. */
#include "io/inflate.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/error.h"
#include "io/bytes.h"

gf_status gf_png_fail_damaged(gf_error *error, const char *name, const char *what) {
    return gf_fail(error, GF_FAILED, "%s: the PNG is damaged (%s); get an intact copy", name, what);
}

gf_status gf_png_fail_short(gf_error *error, const char *name) {
    return gf_fail(error, GF_FAILED, "%s: the PNG ends too early; get a complete copy", name);
}

/* ---- IDAT chunks ----------------------------------------------------------------------------- */

enum {
    NAME_CRC = 0x35af061e, /* CRC-32 of "IDAT" */
    SMALL_BYTES = 8        /* below this size ISA-L takes up to twice as long as zlib */
};

static uint32_t idat_crc(uint32_t crc, const unsigned char *data, size_t size) {
    return size < SMALL_BYTES ? (uint32_t)crc32(crc, data, (uInt)size)
                              : crc32_gzip_refl(crc, data, size);
}

bool gf_png_idat_is(const unsigned char header[GF_PNG_CHUNK_HEADER]) {
    return memcmp(header + 4, "IDAT", 4) == 0 && header[0] < 0x80;
}

void gf_png_idat_start(gf_png_idat *idat, gf_input *input,
                       const unsigned char header[GF_PNG_CHUNK_HEADER]) {
    /* header may be idat->header. */
    *idat = (gf_png_idat){.input = input, .remaining = gf_big32(header), .crc = NAME_CRC};
}

/* Check the CRC of a chunk and read the header of the next one. */
static gf_status idat_next_chunk(gf_png_idat *idat, gf_error *error) {
    unsigned char end[4 + GF_PNG_CHUNK_HEADER];
    size_t got;
    gf_status status = gf_input_read(idat->input, end, sizeof end, &got, error);
    if (status)
        return status;
    if (got >= 4 && gf_big32(end) != idat->crc)
        return gf_png_fail_damaged(error, idat->input->name, "IDAT: CRC error");
    if (got < sizeof end)
        return gf_png_fail_short(error, idat->input->name);
    memcpy(idat->header, end + 4, sizeof idat->header);
    /* libpng rejects invalid chunk headers. */
    idat->ended = !gf_png_idat_is(idat->header);
    if (!idat->ended)
        gf_png_idat_start(idat, idat->input, idat->header);
    return GF_OK;
}

gf_status gf_png_idat_read(gf_png_idat *idat, void *data, size_t size, size_t *got,
                           gf_error *error) {
    unsigned char *bytes = data;
    *got = 0;
    while (*got < size && !idat->ended) {
        const size_t capacity = size - *got;
        const size_t wanted = capacity < idat->remaining ? capacity : idat->remaining;
        size_t received;
        gf_status status = gf_input_read(idat->input, bytes + *got, wanted, &received, error);
        if (!status && received < wanted)
            return gf_png_fail_short(error, idat->input->name);
        if (status)
            return status;
        idat->crc = idat_crc(idat->crc, bytes + *got, wanted);
        idat->remaining -= (uint32_t)wanted;
        *got += wanted;
        if (idat->remaining == 0 && (status = idat_next_chunk(idat, error)))
            return status;
    }
    return GF_OK;
}

/* ---- block headers --------------------------------------------------------------------------- */

enum {
    MAX_BITS = 15, /* maximum length of a literal, length or distance code */
    END_OF_BLOCK = 256,
    MAX_LITERALS = 286,
    MAX_DISTANCES = 30,
    LENGTH_CODES = 19, /* code length alphabet */
    LENGTH_BITS = 7,
    FIRST_TABLE_BITS = 12,
    MAX_BYTES = 288,     /* maximum size of a header */
    LOOKAHEAD_BYTES = 16 /* read beyond the bits used */
};

/* Bit buffer. MAX_BYTES + LOOKAHEAD_BYTES are readable: no bounds are checked. */
typedef struct bit_reader {
    const unsigned char *next;
    uint64_t bits;
    uint32_t count; /* valid bits in `bits` */
} bit_reader;

/* Refill to at least 56 bits. */
static inline void header_load(bit_reader *reader) {
    reader->bits |= gf_little64(reader->next) << reader->count;
    reader->next += (63 - reader->count) / 8;
    reader->count |= 56;
}

static inline void header_drop_bits(bit_reader *reader, uint32_t n) {
    reader->count -= n;
    reader->bits >>= n;
}

/* Read up to 16 bits. */
static inline uint32_t header_read_bits(bit_reader *reader, uint32_t n) {
    header_load(reader);
    const uint32_t value = (uint32_t)reader->bits & ((1u << n) - 1);
    header_drop_bits(reader, n);
    return value;
}

/* Return true if zlib accepts a code with counts[n] codewords of n bits: a complete code, a single
 * codeword of one bit, or no codeword. */
static bool header_code_is_valid(const uint32_t counts[MAX_BITS + 1]) {
    uint32_t total = 0, kraft = 0;
    for (uint32_t bits = 1; bits <= MAX_BITS; bits++) {
        total += counts[bits];
        kraft += counts[bits] << (MAX_BITS - bits);
    }
    return kraft == 1 << MAX_BITS || total == 0 || (total == 1 && counts[1] == 1);
}

/* Decoding table, indexed by the next LENGTH_BITS bits. */
typedef struct length_code {
    struct {
        uint8_t symbol, bits;
    } entries[1 << LENGTH_BITS];
} length_code;

/* Read the code of the code length alphabet. Return false if it is incomplete. */
static bool header_length_code(bit_reader *reader, uint32_t count, length_code *code) {
    static const uint8_t order[LENGTH_CODES] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                11, 4,  12, 3, 13, 2, 14, 1, 15};
    static const uint8_t reversed4[16] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
    uint8_t lengths[LENGTH_CODES] = {0};
    /* The next codeword of each length, with its first bit at LENGTH_BITS - 1. */
    uint32_t next_code[LENGTH_BITS + 2] = {0};
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t bits = header_read_bits(reader, 3);
        lengths[order[i]] = (uint8_t)bits;
        next_code[bits + 1] += (1u << LENGTH_BITS) >> bits;
    }
    next_code[1] = 0; /* unused symbols */
    for (uint32_t bits = 1; bits <= LENGTH_BITS; bits++)
        next_code[bits + 1] += next_code[bits];
    if (next_code[LENGTH_BITS + 1] != 1 << LENGTH_BITS)
        return false;
    for (uint32_t symbol = 0; symbol < LENGTH_CODES; symbol++) {
        const uint32_t bits = lengths[symbol];
        if (bits == 0)
            continue;
        const uint32_t first =
            (uint32_t)reversed4[next_code[bits] & 15] << 3 | reversed4[next_code[bits] >> 4] >> 1;
        for (uint32_t i = first; i < 1 << LENGTH_BITS; i += 1u << bits) {
            code->entries[i].symbol = (uint8_t)symbol;
            code->entries[i].bits = (uint8_t)bits;
        }
        next_code[bits] += (1u << LENGTH_BITS) >> bits;
    }
    return true;
}

/* Read n code lengths into zeroed `lengths` and count each length. Return false if there is no
 * length to repeat or a repetition exceeds n. */
static bool header_lengths(bit_reader *from, const length_code *code, uint8_t *lengths, uint32_t n,
                           uint32_t counts[MAX_BITS + 1]) {
    static const struct {
        uint8_t min, extra;
    } repetitions[3] = {{3, 2}, {3, 3}, {11, 7}}; /* symbols 16, 17 and 18 */
    bit_reader reader = *from;                    /* a copy is kept in registers */
    bool valid = true;
    for (uint32_t i = 0; i < n && valid;) {
        header_load(&reader);
        const uint32_t index = (uint32_t)reader.bits & ((1 << LENGTH_BITS) - 1);
        const uint8_t symbol = code->entries[index].symbol;
        header_drop_bits(&reader, code->entries[index].bits);
        if (symbol < 16) {
            lengths[i++] = symbol;
            counts[symbol]++;
            continue;
        }
        const uint32_t times = repetitions[symbol - 16].min +
                               header_read_bits(&reader, repetitions[symbol - 16].extra);
        const uint8_t repeated = symbol == 16 && i != 0 ? lengths[i - 1] : 0;
        valid = times <= n - i && (symbol != 16 || i != 0);
        if (valid && symbol == 16) /* symbols 17 and 18 repeat 0 */
            memset(lengths + i, repeated, times);
        counts[repeated] += times;
        i += times;
    }
    *from = reader;
    return valid;
}

static uint32_t header_long_codes(const uint8_t *lengths, uint32_t literals,
                                  const uint32_t counts[MAX_BITS + 1]) {
    uint32_t count = counts[13] + counts[14] + counts[15];
    /* Each of 265 to 284 encodes 2, 4, 8, 16 or 32 match lengths. */
    for (uint32_t i = 265; i < literals && i < 285; i++) {
        const uint32_t extra = (i - 261) / 4;
        if (lengths[i] + extra > FIRST_TABLE_BITS)
            count += (1u << extra) - (lengths[i] > FIRST_TABLE_BITS);
    }
    return count;
}

static bool header_dynamic(bit_reader *reader, gf_inflate_header *header) {
    uint8_t lengths[MAX_LITERALS + MAX_DISTANCES] = {0};
    uint32_t counts[MAX_BITS + 1] = {0}, distance_counts[MAX_BITS + 1] = {0};
    length_code code;
    const uint32_t literals = END_OF_BLOCK + 1 + header_read_bits(reader, 5),
                   distances = 1 + header_read_bits(reader, 5);
    const uint32_t count = 4 + header_read_bits(reader, 4);
    if (literals > MAX_LITERALS || distances > MAX_DISTANCES ||
        !header_length_code(reader, count, &code) ||
        !header_lengths(reader, &code, lengths, literals + distances, counts))
        return false;
    for (uint32_t i = 0; i < distances; i++) {
        counts[lengths[literals + i]]--;
        distance_counts[lengths[literals + i]]++;
    }
    header->long_codes = header_long_codes(lengths, literals, counts);
    return lengths[END_OF_BLOCK] != 0 && header_code_is_valid(counts) &&
           header_code_is_valid(distance_counts);
}

gf_inflate_result gf_inflate_header_read(const unsigned char *data, size_t size, unsigned bit,
                                         gf_inflate_header *header) {
    unsigned char padded[MAX_BYTES + LOOKAHEAD_BYTES] = {0};
    bool valid = true;
    if (size < sizeof padded)
        data = memcpy(padded, data, size);
    bit_reader reader = {.next = data};
    (void)header_read_bits(&reader, bit);
    *header = (gf_inflate_header){.last = header_read_bits(&reader, 1) != 0};
    const uint32_t kind = header_read_bits(&reader, 2);
    if (kind == GF_INFLATE_STORED) {
        (void)header_read_bits(&reader, reader.count % 8);
        header->stored = header_read_bits(&reader, 16);
        valid = header->stored == (header_read_bits(&reader, 16) ^ 0xffff);
    } else if (kind == GF_INFLATE_DYNAMIC) {
        valid = header_dynamic(&reader, header);
    } else {
        valid = kind == GF_INFLATE_FIXED;
    }
    header->kind = (gf_inflate_kind)kind;
    header->bytes = (uint32_t)(reader.next - data) - reader.count / 8;
    return header->bytes > size ? GF_INFLATE_TRUNCATED
           : valid              ? GF_INFLATE_VALID
                                : GF_INFLATE_INVALID;
}

/* ---- the stream ------------------------------------------------------------------------------ */

enum {
    WINDOW = 1 << 15, /* maximum match distance in bytes */
    KEPT_BYTES = 8,   /* input bytes that ISA-L may have read ahead */
    IN_BYTES = 1 << 16,
    /* Minimum input and free output at the start of a block. The input contains the header. With
     * less than 4 KiB of input, ISA-L builds a slower table. Most blocks need no more; ISA-L copies
     * two windows each time it stops within a block: 1 % of a run. */
    MIN_INPUT = 1 << 15,
    MIN_OUTPUT = 3 << 15,
    /* Rows stay in the L2 cache until they are unfiltered. Small images pay for each page. */
    OUT_BYTES = 3 << 16,
    MAX_REQUEST = 1 << 30, /* bytes of output per request */
    MAX_SURPLUS = 1 << 20  /* bytes after the last row */
};

/* Cost of blocks. ISA-L builds its tables for each block and compares every long code with every
 * other. Streams of small blocks, or of blocks with many long codes, take up to 50 times zlib's
 * time. Each block is charged and its output is credited, both in bytes of output. One byte stands
 * for 1 ns, the minimum that libpng takes per byte. When the credit is used up, zlib decodes the
 * rest of the stream. Measured on a core at 3.7 GHz. */
enum {
    STORED_COST = 40,  /* 36 ns */
    CODED_COST = 1200, /* 1.1 us for a block with fixed codes, 2 us for a dynamic block */
    LONG_CODES = 4,    /* 0.17 to 0.29 ns per pair of long codes: count squared / LONG_CODES */
    MAX_CREDIT = 1 << 18
};

/* Current part of the stream. */
typedef enum png_inflate_stage {
    AT_HEADER,   /* block header */
    IN_STORED,   /* data of a stored block */
    IN_CODED,    /* data of a coded block, decoded by ISA-L */
    IN_ZLIB,     /* all remaining blocks, decoded by zlib */
    AT_CHECKSUM, /* Adler-32 */
    AT_END
} png_inflate_stage;

struct gf_png_inflate {
    gf_png_idat idat;
    size_t row;         /* bytes of a filtered row, with its filter type byte */
    unsigned char *out; /* `capacity` bytes; [begin, end) is not yet returned */
    size_t capacity, begin, end;
    uint32_t adler; /* of all output */
    png_inflate_stage stage;
    gf_inflate_header block; /* current block */
    int64_t credit;
    z_stream zlib;
    bool has_zlib;             /* zlib is initialised */
    unsigned bit;              /* before a header or checksum: used bits of in[at] */
    size_t at, filled;         /* in[at, filled) is the next input */
    struct inflate_state isal; /* large; this and the following are not cleared */
    unsigned char in[KEPT_BYTES + IN_BYTES];
};

bool gf_png_inflate_supports(const unsigned char head[2]) {
    const unsigned deflate_of_32k = 0x78, dictionary = 0x20;
    return head[0] == deflate_of_32k && (head[0] * 256u + head[1]) % 31 == 0 &&
           (head[1] & dictionary) == 0;
}

gf_status gf_png_inflate_open(const gf_png_idat *idat, size_t row_bytes, gf_png_inflate **opened,
                              gf_error *error) {
    gf_png_inflate *rows = malloc(sizeof *rows);
    *opened = NULL;
    if (!rows)
        return gf_fail_memory(error, idat->input->name, sizeof *rows, "a decoder");
    memset(rows, 0, offsetof(gf_png_inflate, isal));
    rows->idat = *idat;
    rows->row = row_bytes + 1;
    rows->capacity = WINDOW + (rows->row < OUT_BYTES ? OUT_BYTES : rows->row);
    rows->adler = 1;
    rows->credit = MAX_CREDIT;
    isal_inflate_init(&rows->isal);
    rows->out = malloc(rows->capacity);
    if (!rows->out) {
        gf_png_inflate_close(rows);
        return gf_fail_memory(error, idat->input->name, row_bytes, "a row");
    }
    *opened = rows;
    return GF_OK;
}

static gf_status inflate_fail(const gf_png_inflate *rows, const char *what, gf_error *error) {
    return gf_png_fail_damaged(error, rows->idat.input->name, what);
}

/* ---- input and output ------------------------------------------------------------------------ */

/* Fill the input buffer as far as data is available. */
static gf_status inflate_read_more(gf_png_inflate *rows, gf_error *error) {
    const size_t from = rows->at < KEPT_BYTES ? 0 : rows->at - KEPT_BYTES;
    size_t got;
    memmove(rows->in, rows->in + from, rows->filled - from);
    rows->at -= from;
    rows->filled -= from;
    gf_status status = gf_png_idat_read(&rows->idat, rows->in + rows->filled,
                                        sizeof rows->in - rows->filled, &got, error);
    rows->filled += got;
    return status;
}

/* Discard returned output that no match can reference, if it exceeds min bytes. */
static void inflate_make_space(gf_png_inflate *rows, size_t min) {
    const size_t window = rows->end < WINDOW ? 0 : rows->end - WINDOW;
    const size_t from = window < rows->begin ? window : rows->begin;
    if (from <= min)
        return;
    memmove(rows->out, rows->out + from, rows->end - from);
    rows->begin -= from;
    rows->end -= from;
}

static uint32_t inflate_capacity(const gf_png_inflate *rows) {
    const size_t capacity = rows->capacity - rows->end;
    return capacity < MAX_REQUEST ? (uint32_t)capacity : MAX_REQUEST;
}

/* Add bytes written to out + end to the output. */
static void inflate_add_output(gf_png_inflate *rows, uint32_t bytes) {
    rows->adler = isal_adler32(rows->adler, rows->out + rows->end, bytes);
    rows->end += bytes;
    rows->credit += bytes;
}

/* Return the window and store its size. */
static unsigned char *inflate_window(gf_png_inflate *rows, uint32_t *size) {
    *size = rows->end < WINDOW ? (uint32_t)rows->end : WINDOW;
    return rows->out + rows->end - *size;
}

/* Return the unused bits of the byte in which a block ended. */
static unsigned inflate_unused_bits(gf_png_inflate *rows) {
    return (unsigned)rows->in[rows->at++] >> rows->bit;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Charge a block. Return false if the charge exceeds the credit. */
static bool inflate_charge(gf_png_inflate *rows) {
    const int64_t codes = rows->block.long_codes;
    rows->credit = rows->credit < MAX_CREDIT ? rows->credit : MAX_CREDIT;
    rows->credit -= rows->block.kind == GF_INFLATE_STORED ? STORED_COST
                                                          : CODED_COST + codes * codes / LONG_CODES;
    return rows->credit >= 0;
}

/* Decode one block with ISA-L as a separate stream: set the final-block flag, and set the window as
 * dictionary. ISA-L then stops at the end of the block. */
static void inflate_start_isal(gf_png_inflate *rows) {
    struct inflate_state *isal = &rows->isal;
    uint32_t size;
    unsigned char *window = inflate_window(rows, &size);
    isal_inflate_reset(isal);
    (void)isal_inflate_set_dict(isal, window, size);
    if (rows->bit == 0) {
        rows->in[rows->at] |= 1;
    } else {
        isal->read_in = inflate_unused_bits(rows) | 1;
        isal->read_in_length = 8 - (int32_t)rows->bit;
    }
    rows->stage = IN_CODED;
}

/* Decode the rest of the stream with zlib. */
static gf_status inflate_start_zlib(gf_png_inflate *rows, gf_error *error) {
    z_stream *zlib = &rows->zlib;
    uint32_t size;
    unsigned char *window = inflate_window(rows, &size);
    *zlib = (z_stream){0};
    rows->has_zlib = inflateInit2(zlib, -15) == Z_OK;
    if (!rows->has_zlib || inflateSetDictionary(zlib, window, size) != Z_OK)
        return gf_fail(error, GF_FAILED, "%s: out of memory", rows->idat.input->name);
    if (rows->bit != 0)
        (void)inflatePrime(zlib, 8 - (int)rows->bit, (int)inflate_unused_bits(rows));
    rows->stage = IN_ZLIB;
    return GF_OK;
}

static gf_status inflate_start_block(gf_png_inflate *rows, gf_error *error) {
    gf_status status;
    if (rows->capacity - rows->end < MIN_OUTPUT)
        inflate_make_space(rows, OUT_BYTES / 2);
    if (rows->filled - rows->at < MIN_INPUT && !rows->idat.ended &&
        (status = inflate_read_more(rows, error)))
        return status;
    switch (gf_inflate_header_read(rows->in + rows->at, rows->filled - rows->at, rows->bit,
                                   &rows->block)) {
    case GF_INFLATE_TRUNCATED:
        return inflate_fail(rows, "Not enough image data", error);
    case GF_INFLATE_INVALID:
        return inflate_fail(rows, "IDAT: invalid block", error);
    case GF_INFLATE_VALID:
        break;
    }
    if (!inflate_charge(rows))
        return inflate_start_zlib(rows, error);
    if (rows->block.kind == GF_INFLATE_STORED) {
        rows->at += rows->block.bytes;
        rows->bit = 0;
        rows->stage = IN_STORED;
    } else {
        inflate_start_isal(rows);
    }
    return GF_OK;
}

static void inflate_end_block(gf_png_inflate *rows) {
    rows->stage = rows->block.last ? AT_CHECKSUM : AT_HEADER;
}

static gf_status inflate_copy_stored(gf_png_inflate *rows, gf_error *error) {
    uint32_t bytes = inflate_capacity(rows);
    if (bytes > rows->block.stored)
        bytes = rows->block.stored;
    if (bytes > rows->filled - rows->at)
        bytes = (uint32_t)(rows->filled - rows->at);
    if (bytes == 0 && rows->block.stored != 0)
        return inflate_fail(rows, "Not enough image data", error);
    memcpy(rows->out + rows->end, rows->in + rows->at, bytes);
    rows->at += bytes;
    rows->block.stored -= bytes;
    inflate_add_output(rows, bytes);
    if (rows->block.stored == 0)
        inflate_end_block(rows);
    return GF_OK;
}

static gf_status inflate_run_isal(gf_png_inflate *rows, gf_error *error) {
    struct inflate_state *isal = &rows->isal;
    const uint32_t given = (uint32_t)(rows->filled - rows->at), capacity = inflate_capacity(rows);
    isal->next_in = rows->in + rows->at;
    isal->avail_in = given;
    isal->next_out = rows->out + rows->end;
    isal->avail_out = capacity;
    const int cause = isal_inflate(isal);
    if (cause != ISAL_DECOMP_OK)
        return inflate_fail(rows,
                            cause == ISAL_INVALID_LOOKBACK ? "IDAT: invalid distance too far back"
                            : cause == ISAL_INVALID_SYMBOL ? "IDAT: invalid code"
                                                           : "IDAT: invalid block",
                            error);
    rows->at = rows->filled - isal->avail_in;
    inflate_add_output(rows, capacity - isal->avail_out);
    if (isal->block_state == ISAL_BLOCK_FINISH) {
        const size_t bits = 8 * rows->at - (size_t)isal->read_in_length;
        rows->at = bits / 8;
        rows->bit = bits % 8;
        inflate_end_block(rows);
    } else if (isal->avail_in == given && isal->avail_out == capacity) {
        return inflate_fail(rows, "Not enough image data", error);
    }
    return GF_OK;
}

static gf_status inflate_run_zlib(gf_png_inflate *rows, gf_error *error) {
    z_stream *zlib = &rows->zlib;
    const uint32_t capacity = inflate_capacity(rows);
    zlib->next_in = rows->in + rows->at;
    zlib->avail_in = (uInt)(rows->filled - rows->at);
    zlib->next_out = rows->out + rows->end;
    zlib->avail_out = capacity;
    const int cause = inflate(zlib, Z_NO_FLUSH);
    rows->at = rows->filled - zlib->avail_in;
    inflate_add_output(rows, capacity - zlib->avail_out);
    if (cause == Z_STREAM_END) {
        rows->bit = 0;
        rows->stage = AT_CHECKSUM;
    } else if (cause == Z_BUF_ERROR) {
        return inflate_fail(rows, "Not enough image data", error);
    } else if (cause == Z_MEM_ERROR) {
        return gf_fail(error, GF_FAILED, "%s: out of memory", rows->idat.input->name);
    } else if (cause != Z_OK) {
        char what[96];
        snprintf(what, sizeof what, "IDAT: %s", zlib->msg ? zlib->msg : "damaged");
        return inflate_fail(rows, what, error);
    }
    return GF_OK;
}

static gf_status inflate_check_adler(gf_png_inflate *rows, gf_error *error) {
    gf_status status;
    rows->at += rows->bit != 0; /* the stream is padded to whole bytes */
    if (rows->filled - rows->at < 4 && (status = inflate_read_more(rows, error)))
        return status;
    if (rows->filled - rows->at < 4)
        return inflate_fail(rows, "Not enough image data", error);
    if (gf_big32(rows->in + rows->at) != rows->adler)
        return inflate_fail(rows, "IDAT: incorrect data check", error);
    rows->stage = AT_END;
    return GF_OK;
}

/* Process the next part of the stream: a header, a checksum, or some data. */
static gf_status inflate_step(gf_png_inflate *rows, gf_error *error) {
    gf_status status;
    if (rows->end == rows->capacity)
        inflate_make_space(rows, 0);
    if (rows->at == rows->filled && (status = inflate_read_more(rows, error)))
        return status;
    switch (rows->stage) {
    case AT_HEADER:
        return inflate_start_block(rows, error);
    case IN_STORED:
        return inflate_copy_stored(rows, error);
    case IN_CODED:
        return inflate_run_isal(rows, error);
    case IN_ZLIB:
        return inflate_run_zlib(rows, error);
    case AT_CHECKSUM:
        return inflate_check_adler(rows, error);
    default:
        return inflate_fail(rows, "Not enough image data", error);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

gf_status gf_png_inflate_row(gf_png_inflate *rows, const unsigned char **row, gf_error *error) {
    while (rows->end - rows->begin < rows->row) {
        gf_status status = inflate_step(rows, error);
        if (status)
            return status;
    }
    *row = rows->out + rows->begin;
    rows->begin += rows->row;
    return GF_OK;
}

gf_status gf_png_inflate_finish(gf_png_inflate *rows, unsigned char header[GF_PNG_CHUNK_HEADER],
                                gf_error *error) {
    gf_status status = GF_OK;
    size_t got = 1, surplus = rows->end - rows->begin;
    /* Skip surplus rows, as libpng does, up to a limit. */
    while (surplus <= MAX_SURPLUS && rows->stage != AT_END) {
        rows->begin = rows->end;
        if ((status = inflate_step(rows, error)))
            return status;
        surplus += rows->end - rows->begin;
    }
    if (surplus > MAX_SURPLUS)
        return inflate_fail(rows, "IDAT: too much data", error);
    while (!status && got != 0)
        status = gf_png_idat_read(&rows->idat, rows->in, IN_BYTES, &got, error);
    memcpy(header, rows->idat.header, GF_PNG_CHUNK_HEADER);
    return status;
}

void gf_png_inflate_close(gf_png_inflate *rows) {
    if (!rows)
        return;
    if (rows->has_zlib)
        (void)inflateEnd(&rows->zlib);
    free(rows->out);
    free(rows);
}
