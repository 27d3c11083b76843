/* Reads and writes headers of NumPy files. The text of a header is a Python literal with three
 * keys. It is parsed here: all that images need is strings, booleans and a tuple of numbers. */
#include "io/npy.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/error.h"

/* Size of the magic and of the version. */
enum { NPY_MAGIC = 6, NPY_VERSION = 2 };

/* ---- writing --------------------------------------------------------------------------------- */

const char *gf_npy_dtype(gf_type type) {
    static const char *const names[] = {"|u1", "<u2", "<f4", "|u1", ">u2", ">f4"};
    return names[type + (gf_host_is_little() ? 0 : 3)];
}

size_t gf_npy_put_header(char to[GF_NPY_HEADER_BYTES], const char *descr, const uint64_t *shape,
                         size_t dimensions) {
    enum { PREFIX = NPY_MAGIC + NPY_VERSION + 2, ALIGN = 64, DIGITS = 21 };
    char text[GF_NPY_HEADER_BYTES];
    int length =
        snprintf(text, sizeof text, "{'descr': %s, 'fortran_order': False, 'shape': (", descr);
    int digits = 0; /* of the first dimension */
    for (size_t i = 0; i < dimensions; i++) {
        const char *comma = i == 0 || i + 1 < dimensions ? "," : "";
        const int used = snprintf(text + length, sizeof text - (size_t)length, "%s%" PRIu64 "%s",
                                  i == 0 ? "" : " ", shape[i], comma);
        digits = i == 0 ? used - 1 : digits;
        length += used;
    }
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
    NPY_MAX_TEXT = 10000, /* max bytes of the text, as in numpy.load */
    NPY_MAX_WORD = 32,    /* max bytes of a key or dtype with its NUL */
    NPY_MAX_DIMENSIONS = 3
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

static bool npy_parse_bool(const char **at, bool *value) {
    npy_skip_space(at);
    *value = strncmp(*at, "True", 4) == 0;
    if (!*value && strncmp(*at, "False", 5) != 0)
        return false;
    *at += *value ? 4 : 5;
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
        comma = npy_skip(at, ',');
    }
    return comma || array->dimensions != 1;
}

/* Parse the value of a key that is not set yet. */
static bool npy_parse_value(const char **at, const char *key, npy_array *array) {
    if (strcmp(key, "descr") == 0 && !array->has_dtype) {
        array->has_dtype = true;
        npy_skip_space(at);
        array->structured = **at == '[' || **at == '(';
        return !array->structured && npy_parse_string(at, array->dtype);
    }
    if (strcmp(key, "fortran_order") == 0 && !array->has_order) {
        array->has_order = true;
        return npy_parse_bool(at, &array->fortran_order);
    }
    if (strcmp(key, "shape") == 0 && !array->has_shape) {
        array->has_shape = true;
        return npy_parse_shape(at, array);
    }
    return false;
}

/* Parse a dictionary of exactly three keys that fills the text. */
static bool npy_parse(const char *text, size_t size, npy_array *array) {
    const char *at = text;
    bool comma = true;
    if (!npy_skip(&at, '{'))
        return false;
    while (!npy_skip(&at, '}')) {
        char key[NPY_MAX_WORD];
        if (!comma || !npy_parse_string(&at, key) || !npy_skip(&at, ':') ||
            !npy_parse_value(&at, key, array))
            return false;
        comma = npy_skip(&at, ',');
    }
    npy_skip_space(&at);
    return at == text + size && array->has_dtype && array->has_order && array->has_shape;
}

/* ---- checking the array ---------------------------------------------------------------------- */

static gf_status npy_fail_dtype(const char *name, const char *dtype, gf_error *error) {
    static const char to_float[] = "array.astype(numpy.float32)";
    static const struct {
        char kind;
        const char *name, *advice;
    } kinds[] = {{'b', "bool", "array.astype(numpy.uint8) * 255"},
                 {'i', "int", to_float},
                 {'u', "uint", to_float},
                 {'f', "float", to_float},
                 {'c', "complex", "abs(array).astype(numpy.float32)"}};
    const char *advice = "numbers of one of these";
    char type[NPY_MAX_WORD + 2];
    snprintf(type, sizeof type, "'%s'", dtype);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *digits = dtype + 2;
        uint64_t bytes;
        if (*dtype == '\0' || dtype[1] != kinds[i].kind || !gf_parse_digits(&digits, &bytes) ||
            *digits != '\0' || bytes > 32)
            continue;
        advice = kinds[i].advice;
        snprintf(type, sizeof type, "%s", kinds[i].name);
        if (kinds[i].kind != 'b')
            snprintf(type, sizeof type, "%s%" PRIu64, kinds[i].name, 8 * bytes);
    }
    return gf_fail(error, GF_FAILED,
                   "%s: has dtype %s, only uint8, uint16 and float32 are supported; save %s", name,
                   type, advice);
}

static gf_status npy_set_dtype(const char *name, const char *dtype, gf_row_order *order,
                               gf_error *error) {
    static const struct {
        const char *dtype;
        gf_type type;
        bool little;
    } types[] = {
        {"|u1", GF_U8, true},  {"<u1", GF_U8, true}, /* not written by NumPy, but by cnpy */
        {"<u2", GF_U16, true}, {">u2", GF_U16, false},
        {"<f4", GF_F32, true}, {">f4", GF_F32, false}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(dtype, types[i].dtype) == 0) {
            order->format.type = types[i].type;
            order->little = types[i].little;
            return GF_OK;
        }
    return npy_fail_dtype(name, dtype, error);
}

static gf_status npy_set_shape(const char *name, const npy_array *array, gf_row_order *order,
                               gf_error *error) {
    const uint64_t *shape = array->shape, dimensions = array->dimensions;
    if (dimensions < 2 || dimensions > 3)
        return gf_fail(error, GF_FAILED,
                       "%s: is %" PRIu64 "-dimensional, images have 2 or 3 dimensions; save %s",
                       name, dimensions,
                       dimensions < 2 ? "array.reshape(height, width)"
                                      : "each image in its own file");
    const uint64_t channels = dimensions == 3 ? shape[2] : 1;
    if (channels < 1 || channels > GF_MAX_CHANNELS)
        return gf_fail(error, GF_FAILED,
                       "%s: has %" PRIu64
                       " channels, the last dimension; images have 1 to 4; "
                       "save %s",
                       name, channels,
                       shape[0] <= GF_MAX_CHANNELS ? "numpy.moveaxis(array, 0, -1)"
                                                   : "some of them, such as array[:, :, :3]");
    order->format.height = shape[0];
    order->format.width = shape[1];
    order->format.channels = (uint32_t)channels;
    return GF_OK;
}

static gf_status npy_check(const char *name, const npy_array *array, gf_row_order *order,
                           gf_error *error) {
    gf_status status = npy_set_dtype(name, array->dtype, order, error);
    if (!status && array->fortran_order)
        return gf_fail(error, GF_FAILED,
                       "%s: is in Fortran order; save numpy.ascontiguousarray(array)", name);
    return status ? status : npy_set_shape(name, array, order, error);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Read exactly `size` bytes. */
static gf_status npy_read_exactly(gf_input *input, void *data, size_t size, gf_error *error) {
    size_t got;
    gf_status status = gf_input_read(input, data, size, &got, error);
    return !status && got < size ? gf_fail_short(input->name, error) : status;
}

gf_status gf_npy_read_header(gf_input *input, gf_row_order *order, gf_error *error) {
    unsigned char start[NPY_MAGIC + NPY_VERSION], length[4] = {0};
    char text[NPY_MAX_TEXT + 1];
    npy_array array = {0};
    gf_status status = npy_read_exactly(input, start, sizeof start, error);
    if (status)
        return status;
    const unsigned major = start[NPY_MAGIC], minor = start[NPY_MAGIC + 1];
    if (major < 1 || major > 3 || minor != 0)
        return gf_fail(error, GF_FAILED,
                       "%s: version %u.%u of the NumPy format is not supported, only 1.0, 2.0 and "
                       "3.0; save the array again with numpy.save",
                       input->name, major, minor);
    if ((status = npy_read_exactly(input, length, major == 1 ? 2 : 4, error)))
        return status;
    const uint32_t size = gf_little32(length);
    if (size > NPY_MAX_TEXT)
        return gf_fail(error, GF_FAILED,
                       "%s: its NumPy header has %" PRIu32
                       " bytes, over the limit of %d; save the array again with numpy.save",
                       input->name, size, NPY_MAX_TEXT);
    if ((status = npy_read_exactly(input, text, size, error)))
        return status;
    text[size] = '\0';
    if (npy_parse(text, size, &array)) {
        order->start = input->offset;
        return npy_check(input->name, &array, order, error);
    }
    if (array.structured)
        return gf_fail(error, GF_FAILED,
                       "%s: has a structured dtype; save a field of it, such as array['value']",
                       input->name);
    return gf_fail(error, GF_FAILED,
                   "%s: its NumPy header is invalid; save the array again with numpy.save",
                   input->name);
}
