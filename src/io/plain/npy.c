/* NumPy files (.npy). Their header: magic, version, length of a text, and the text, which describes
 * an array as a Python dictionary with three keys. It is parsed here: all that images need is
 * strings, booleans and a tuple of numbers. */
#include <inttypes.h>
#include <stdio.h>

#include "core/error.h"
#include "io/bytes.h"
#include "io/plain/rows.h"
#include "io/stream/convert.h"

/* Size of the magic and of the version. */
enum { NPY_MAGIC = 6, NPY_VERSION = 2 };

/* ---- writing --------------------------------------------------------------------------------- */

const char *gf_npy_dtype(gf_type type) {
    static const char *const names[] = {"'|u1'", "'<u2'", "'<f4'"};
    return names[type];
}

size_t gf_npy_put_header(char to[GF_NPY_HEADER_BYTES], const char *descr, const uint64_t *shape,
                         size_t dimensions) {
    enum { PREFIX = NPY_MAGIC + NPY_VERSION + 2, ALIGN = 64, DIGITS = 21 };
    char text[GF_NPY_HEADER_BYTES];
    const int digits = snprintf(NULL, 0, "%" PRIu64, shape[0]);
    int length =
        snprintf(text, sizeof text, "{'descr': %s, 'fortran_order': False, 'shape': (%" PRIu64 ",",
                 descr, shape[0]);
    for (size_t i = 1; i < dimensions; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, " %" PRIu64 "%s", shape[i],
                           i + 1 < dimensions ? "," : "");
    length += snprintf(text + length, sizeof text - (size_t)length, "), }");
    /* numpy.save reserves space for DIGITS digits of the first dimension. It adds 1 to 64 bytes
     * and a newline. */
    const int bytes = PREFIX + length + DIGITS - digits + 1;
    const size_t size = (size_t)(bytes / ALIGN + 1) * ALIGN;
    memset(to, ' ', size);
    memcpy(to, "\x93NUMPY\1\0", NPY_MAGIC + NPY_VERSION);
    to[PREFIX - 2] = (char)(size - PREFIX);
    to[PREFIX - 1] = 0;
    memcpy(to + PREFIX, text, (size_t)length);
    to[size - 1] = '\n';
    return size;
}

/* ---- parsing the text ------------------------------------------------------------------------ */

enum {
    NPY_MAX_TEXT = 10000,   /* max bytes of the text, as in numpy.load */
    NPY_MAX_WORD = 32,      /* max bytes of a key or dtype with its NUL */
    NPY_MAX_DIMENSIONS = 64 /* as in NumPy */
};

typedef struct npy_array {
    bool has_dtype, has_order, has_shape;
    bool structured; /* the dtype is not a string; parsing ends there */
    bool fortran_order;
    char dtype[NPY_MAX_WORD];
    uint64_t shape[NPY_MAX_DIMENSIONS];
    uint64_t dimensions; /* may be greater than NPY_MAX_DIMENSIONS */
} npy_array;

static void npy_skip_space(const char **at) {
    *at += strspn(*at, " \t\n");
}

/* Skip whitespace and the character. Return false if another one follows. */
static bool npy_skip(const char **at, char c) {
    npy_skip_space(at);
    if (**at != c)
        return false;
    ++*at;
    return true;
}

/* Parse a string without escapes. */
static bool npy_parse_string(const char **at, char word[NPY_MAX_WORD]) {
    npy_skip_space(at);
    const char quote = **at;
    if (quote != '\'' && quote != '"')
        return false;
    size_t length = 0;
    for (++*at; **at != quote; ++*at) {
        if (**at < ' ' || **at > '~' || **at == '\\' || length == NPY_MAX_WORD - 1)
            return false;
        word[length++] = **at;
    }
    word[length] = '\0';
    ++*at;
    return true;
}

/* Parse a tuple of numbers. A tuple of one number has a comma. */
static bool npy_parse_shape(const char **at, npy_array *array) {
    bool comma = true;
    if (!npy_skip(at, '('))
        return false;
    while (!npy_skip(at, ')')) {
        uint64_t number;
        const char *first = *at;
        if (!comma || !gf_parse_digits(at, &number) || (*first == '0' && *at != first + 1))
            return false;
        if (array->dimensions < NPY_MAX_DIMENSIONS)
            array->shape[array->dimensions] = number;
        array->dimensions++;
        (void)npy_skip(at, 'L'); /* written by Python 2 */
        comma = npy_skip(at, ',');
    }
    return comma || array->dimensions != 1;
}

/* Parse a dictionary of exactly three keys that fills the text. */
static bool npy_parse(const char *text, size_t size, npy_array *array) {
    const char *at = text;
    bool comma = true;
    if (!npy_skip(&at, '{'))
        return false;
    while (!npy_skip(&at, '}')) {
        char key[NPY_MAX_WORD];
        bool valid = false;
        if (!comma || !npy_parse_string(&at, key) || !npy_skip(&at, ':'))
            return false;
        npy_skip_space(&at);
        if (strcmp(key, "descr") == 0 && !array->has_dtype) {
            array->has_dtype = true;
            array->structured = *at == '[' || *at == '(';
            valid = !array->structured && npy_parse_string(&at, array->dtype);
        } else if (strcmp(key, "fortran_order") == 0 && !array->has_order) {
            array->has_order = true;
            array->fortran_order = *at == 'T';
            const char *word = array->fortran_order ? "True" : "False";
            valid = strncmp(at, word, strlen(word)) == 0;
            at += valid ? strlen(word) : 0;
        } else if (strcmp(key, "shape") == 0 && !array->has_shape) {
            array->has_shape = true;
            valid = npy_parse_shape(&at, array);
        }
        if (!valid)
            return false;
        comma = npy_skip(&at, ',');
    }
    npy_skip_space(&at);
    return at == text + size && array->has_dtype && array->has_order && array->has_shape;
}

/* ---- checking the array ---------------------------------------------------------------------- */

/* Set the samples from a dtype: an optional byte order, then a kind and a size. */
static gf_status npy_set_dtype(const char *name, const char *dtype, gf_samples *samples,
                               gf_error *error) {
    static const struct {
        const char *text, *name; /* both are dtypes */
        char kind;               /* b: bool, 0 or 1 */
        uint32_t bytes;
    } types[] = {{"u1", "uint8", 'u', 1},   {"u2", "uint16", 'u', 2},   {"u4", "uint32", 'u', 4},
                 {"u8", "uint64", 'u', 8},  {"i1", "int8", 'i', 1},     {"i2", "int16", 'i', 2},
                 {"i4", "int32", 'i', 4},   {"i8", "int64", 'i', 8},    {"f2", "float16", 'f', 2},
                 {"f4", "float32", 'f', 4}, {"f8", "float64", 'f', 8},  {"b1", "bool", 'b', 1},
                 {"B", "ubyte", 'u', 1},    {"H", "ushort", 'u', 2},    {"b", "byte", 'i', 1},
                 {"h", "short", 'i', 2},    {"e", "half", 'f', 2},      {"f", "single", 'f', 4},
                 {"d", "double", 'f', 8},   {"?", "bool_", 'b', 1},     {"i", "intc", 'i', 4},
                 {"I", "uintc", 'u', 4},    {"l", "int", 'i', 8},       {"L", "uint", 'u', 8},
                 {"q", "longlong", 'i', 8}, {"Q", "ulonglong", 'u', 8}, {"p", "intp", 'i', 8},
                 {"P", "uintp", 'u', 8},    {"float", "float_", 'f', 8}};
    const char *text = dtype + (*dtype && strchr("<>=|", *dtype) ? 1 : 0);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(text, types[i].text) == 0 || strcmp(text, types[i].name) == 0) {
            samples->kind = types[i].kind;
            samples->bytes = types[i].bytes;
            samples->little = *dtype == '<' || (*dtype != '>' && gf_host_is_little());
            return GF_OK;
        }
    return gf_fail(error, GF_FAILED,
                   "%s: has dtype '%s', which is not supported; save %s.astype(numpy.float32)",
                   name, dtype, *text == 'c' ? "abs(array)" : "array");
}

/* Set the image of a page: its size, and where its samples are. The last dimension is that of the
 * channels if there are 1 to 4, or if channels are chosen; the dimensions before rows are those of
 * pages. */
static gf_status npy_set_shape(gf_plain_source *source, const npy_array *array,
                               const gf_limits *limits, uint64_t page, gf_error *error) {
    const char *name = source->input.name;
    const uint64_t *shape = array->shape, last = array->dimensions - 1;
    gf_samples *samples = &source->base.samples;
    if (array->dimensions < 2 || array->dimensions > NPY_MAX_DIMENSIONS)
        return gf_fail(error, GF_FAILED,
                       "%s: is %" PRIu64
                       "-dimensional, images have 2 or more dimensions; save "
                       "array.reshape(height, width)",
                       name, array->dimensions);
    const bool deep =
        last > 1 && shape[last] != 0 && (limits->channels || shape[last] <= GF_MAX_CHANNELS);
    const uint64_t rows = last - 1 - deep, width = shape[rows + 1], height = shape[rows];
    const gf_format pixels = {width, height, 1, GF_U8, false};
    const gf_status status = gf_check_pixels(&pixels, limits, name, error);
    if (status)
        return status;
    const uint64_t max = UINT64_C(1) << 60, max_samples = UINT32_MAX / 8;
    uint64_t bytes = samples->bytes;
    samples->count = deep ? shape[last] : 1;
    source->images = 1;
    for (uint64_t i = 0; i <= last; i++) {
        source->images *= i < rows ? shape[i] : 1;
        if (__builtin_mul_overflow(bytes, shape[i], &bytes) || bytes > max ||
            source->images > max_samples || samples->count > max_samples)
            return gf_fail(error, GF_FAILED, "%s: the array is too large; save a part of it", name);
    }
    if (source->images == 0)
        return gf_fail(error, GF_FAILED, "%s: the array is empty; it needs one image", name);
    source->end = source->order.start + bytes;
    samples->several = samples->count > GF_MAX_CHANNELS;
    samples->width = width;
    samples->step = samples->count;
    samples->plane = 1;
    source->order.format = (gf_format){width, height, (uint32_t)samples->count, GF_U8, false};
    if (!array->fortran_order) {
        source->order.start += (page - 1) * (bytes / source->images);
        return GF_OK;
    }
    /* The first dimension is that of consecutive samples. */
    samples->transposed = true;
    samples->step = source->images;
    samples->plane = source->images * width;
    source->order.format =
        (gf_format){height, width * samples->count, (uint32_t)source->images, GF_U8, false};
    uint64_t rest = page - 1, stride = source->images;
    for (uint64_t i = rows; i-- > 0; rest /= shape[i]) {
        stride /= shape[i];
        samples->first += rest % shape[i] * stride;
    }
    return GF_OK;
}

/* If there are fewer images than `page`, only `images` and `end` are valid. */
static gf_status npy_read(gf_plain_source *source, const gf_limits *limits, uint64_t page,
                          gf_error *error) {
    gf_input *input = &source->input;
    gf_format *format = &source->order.format;
    gf_samples *samples = &source->base.samples;
    unsigned char start[NPY_MAGIC + NPY_VERSION], length[4] = {0};
    char text[NPY_MAX_TEXT + 1];
    npy_array array = {0};
    gf_status status = gf_input_read_exactly(input, start, sizeof start, error);
    if (status)
        return status;
    const unsigned major = start[NPY_MAGIC], minor = start[NPY_MAGIC + 1];
    if (major < 1 || major > 3 || minor != 0)
        return gf_fail(error, GF_FAILED,
                       "%s: version %u.%u of the NumPy format is not supported, only 1.0, 2.0 and "
                       "3.0; save the array again with numpy.save",
                       input->name, major, minor);
    if ((status = gf_input_read_exactly(input, length, major == 1 ? 2 : 4, error)))
        return status;
    const uint32_t size = gf_little32(length);
    if (size > NPY_MAX_TEXT)
        return gf_fail(error, GF_FAILED,
                       "%s: its NumPy header has %" PRIu32
                       " bytes, over the limit of %d; save the array again with numpy.save",
                       input->name, size, NPY_MAX_TEXT);
    if ((status = gf_input_read_exactly(input, text, size, error)))
        return status;
    text[size] = '\0';
    const bool valid = npy_parse(text, size, &array);
    if (array.structured)
        return gf_fail(error, GF_FAILED,
                       "%s: has a structured dtype; save a field of it, such as array['value']",
                       input->name);
    if (!valid)
        return gf_fail(error, GF_FAILED,
                       "%s: its NumPy header is invalid; save the array again with numpy.save",
                       input->name);
    source->order.start = input->offset;
    if ((status = npy_set_dtype(input->name, array.dtype, samples, error)) ||
        (status = npy_set_shape(source, &array, limits, page, error)))
        return status;
    source->order.little = samples->little;
    gf_plain_describe(source, "", samples->transposed ? ", Fortran order" : "");
    if (samples->transposed || samples->several || !gf_samples_type(samples, &format->type)) {
        format->channels *= samples->bytes;
        format->type = GF_U8;
    } else {
        *samples = (gf_samples){0};
    }
    source->base.format = *format;
    return GF_OK;
}

static bool npy_follows(const unsigned char head[8]) {
    return memcmp(head, "\x93NUMPY", NPY_MAGIC) == 0;
}

static gf_status npy_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                                 gf_error *error) {
    static const gf_plain_format format = {.read = npy_read, .follows = npy_follows};
    return gf_plain_open(input, &format, NULL, limits, opened, error);
}

static gf_status npy_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    const gf_format *format = setup->format;
    const uint64_t shape[] = {format->height, format->width, format->channels};
    char header[GF_NPY_HEADER_BYTES];
    const size_t size =
        gf_npy_put_header(header, gf_npy_dtype(format->type), shape, format->channels == 1 ? 2 : 3);
    const gf_row_order order = {.format = *format, .start = size, .little = true};
    return gf_rows_sink_open(setup, &order, header, opened, error);
}

const gf_codec gf_npy_codec = {
    .label = "NPY",
    .extensions = {"npy"},
    .notes =
        "NumPy arrays of u8, u16 or f32, height x width, or height x width x channels with "
        "1 to 4 channels.",
    .magics = {"\x93NUMPY"},
    .open_source = npy_source_open,
    .open_sink = npy_sink_open,
    .types = GF_STORES_INTEGERS | GF_STORES_F32,
    .channels = GF_STORES_ANY | GF_STORES_DATA,
    .plain = true,
};
