#include "version.h"

#include "gpufilter.h"

const char *gf_version(void) {
    return GF_VERSION_STRING;
}

bool gf_version_fits(int header) {
    return gf_version_serves(GF_VERSION, header);
}
