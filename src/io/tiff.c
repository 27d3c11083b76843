/* Loading of libtiff. */
#define _GNU_SOURCE /* RTLD_DEFAULT */

#include "io/tiff.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "core/error.h"

static gf_tiff_library functions;
static char failure[256]; /* reason why libtiff cannot be loaded; "" if it is */

static void tiff_load(void) {
    /* A wheel contains libtiff under another name, as a dependency of this library. */
    const bool present = dlsym(RTLD_DEFAULT, "TIFFClientOpen");
    void *library = present ? RTLD_DEFAULT : dlopen(GF_LIBTIFF, RTLD_NOW);
    void *function = NULL;
    if (!present && !library) {
        gf_error error;
        gf_fail(&error, GF_FAILED, "%s", dlerror());
        memcpy(failure, error.message, sizeof failure - 1);
        return;
    }
    /* memcpy, because ISO C has no cast from object to function pointers. */
#define LOAD(name)                                                                                 \
    function = dlsym(library, #name);                                                              \
    if (!function)                                                                                 \
        memcpy(failure, "it has no function " #name, sizeof "it has no function " #name);          \
    memcpy(&functions.name, &function, sizeof function);
    GF_TIFF_FUNCTIONS(LOAD)
}

gf_status gf_tiff_load(const gf_tiff_library **library, const char *file, gf_error *error) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, tiff_load);
    *library = &functions;
    if (!*failure)
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: TIFF needs " GF_LIBTIFF ": %s; install the package libtiff6", file,
                   failure);
}
