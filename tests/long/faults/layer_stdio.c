/* Streams. After a failure, the stream's error flag stays set, as in glibc, and the data is
 * discarded. */
#define _GNU_SOURCE

#include "layer_inside.h"

#include <stdarg.h>

#ifndef __GLIBC__
#error "this file sets glibc's error flag of a stream"
#endif

static void fail_stream(FILE *file, int cause) {
    file->_flags |= 0x20; /* _IO_ERR_SEEN, which ferror() tests */
    gf_fault_report(file == stderr ? 2 : file == stdout ? 1 : -1);
    errno = cause;
}

/* Define type NAME(parameters) on a stream; it returns `failure`. */
#define STREAM(type, symbol, parameters, file, call, failure)                                      \
    type __wrap_##symbol parameters;                                                               \
    type __wrap_##symbol parameters {                                                              \
        const gf_fault_decision decision = gf_fault_decide(CALL_##symbol, 0, SITE);                \
        if (decision.action == FAULT_FAIL) {                                                       \
            fail_stream(file, decision.cause);                                                     \
            return failure;                                                                        \
        }                                                                                          \
        type result = call;                                                                        \
        if (decision.action == FAULT_DIE)                                                          \
            gf_fault_die();                                                                        \
        return result;                                                                             \
    }

int __real_fputs(const char *, FILE *);
int __real_fputc(int, FILE *);
int __real_putc(int, FILE *);
int __real_putchar(int);
int __real_puts(const char *);
size_t __real_fwrite(const void *, size_t, size_t, FILE *);
size_t __real_fread(void *, size_t, size_t, FILE *);
int __real_fflush(FILE *);
int __real_fclose(FILE *);
int __real_vfprintf(FILE *, const char *, va_list);
int __real___uflow(FILE *);
ssize_t __real_getline(char **, size_t *, FILE *);
ssize_t __real_getdelim(char **, size_t *, int, FILE *);

STREAM(int, fputs, (const char *text, FILE *file), file, __real_fputs(text, file), EOF)
STREAM(int, fputc, (int c, FILE *file), file, __real_fputc(c, file), EOF)
STREAM(int, putc, (int c, FILE *file), file, __real_putc(c, file), EOF)
STREAM(int, putchar, (int c), stdout, __real_putchar(c), EOF)
STREAM(int, puts, (const char *text), stdout, __real_puts(text), EOF)
STREAM(size_t, fwrite, (const void *data, size_t size, size_t count, FILE *file), file,
       __real_fwrite(data, size, count, file), 0)
STREAM(size_t, fread, (void *data, size_t size, size_t count, FILE *file), file,
       __real_fread(data, size, count, file), 0)
STREAM(int, __uflow, (FILE * file), file, __real___uflow(file), EOF)
STREAM(int, fflush, (FILE * file), file ? file : stdout, __real_fflush(file), EOF)
STREAM(int, vfprintf, (FILE * file, const char *format, va_list args), file,
       __real_vfprintf(file, format, args), -1)

/* On ENOMEM, glibc does not set the error flag of the stream. */
#define LINE(symbol, parameters, call)                                                             \
    ssize_t __wrap_##symbol parameters;                                                            \
    ssize_t __wrap_##symbol parameters {                                                           \
        const gf_fault_decision decision = gf_fault_decide(CALL_##symbol, 0, SITE);                \
        if (decision.action == FAULT_FAIL) {                                                       \
            if (decision.cause != ENOMEM)                                                          \
                fail_stream(file, decision.cause);                                                 \
            errno = decision.cause;                                                                \
            return -1;                                                                             \
        }                                                                                          \
        const ssize_t result = call;                                                               \
        if (decision.action == FAULT_DIE)                                                          \
            gf_fault_die();                                                                        \
        return result;                                                                             \
    }
LINE(getline, (char **line, size_t *capacity, FILE *file), __real_getline(line, capacity, file))
LINE(getdelim, (char **line, size_t *capacity, int end, FILE *file),
     __real_getdelim(line, capacity, end, file))

/* Close the stream even if the call fails. */
int __wrap_fclose(FILE *file);
int __wrap_fclose(FILE *file) {
    const gf_fault_decision decision = gf_fault_decide(CALL_fclose, 0, SITE);
    const int result = __real_fclose(file);
    if (decision.action == FAULT_DIE)
        gf_fault_die();
    if (decision.action != FAULT_FAIL)
        return result;
    errno = decision.cause;
    return EOF;
}

static int print(int symbol, const void *site, FILE *file, const char *format, va_list args) {
    const gf_fault_decision decision = gf_fault_decide(symbol, 0, site);
    if (decision.action == FAULT_FAIL) {
        fail_stream(file, decision.cause);
        return -1;
    }
    const int result = __real_vfprintf(file, format, args);
    if (decision.action == FAULT_DIE)
        gf_fault_die();
    return result;
}

__attribute__((format(printf, 1, 2))) int __wrap_printf(const char *format, ...);
int __wrap_printf(const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int result = print(CALL_printf, SITE, stdout, format, args);
    va_end(args);
    return result;
}

__attribute__((format(printf, 2, 3))) int __wrap___printf_chk(int flag, const char *format, ...);
int __wrap___printf_chk(int flag, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int result = print(CALL___printf_chk, SITE, stdout, format, args);
    va_end(args);
    return result;
}

__attribute__((format(printf, 2, 3))) int __wrap_fprintf(FILE *file, const char *format, ...);
int __wrap_fprintf(FILE *file, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int result = print(CALL_fprintf, SITE, file, format, args);
    va_end(args);
    return result;
}

__attribute__((format(printf, 3, 4))) int __wrap___fprintf_chk(FILE *file, int flag,
                                                               const char *format, ...);
int __wrap___fprintf_chk(FILE *file, int flag, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int result = print(CALL___fprintf_chk, SITE, file, format, args);
    va_end(args);
    return result;
}
