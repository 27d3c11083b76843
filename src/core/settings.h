/* What the library asks of settings beside its public interface. */
#ifndef GF_SETTINGS_H
#define GF_SETTINGS_H

#include "gpufilter_tools.h"

/* Were these settings made of this very table? */
bool gf_settings_fit(const gf_settings *settings, const gf_param *params);
/* A copy, to be freed; NULL if out of memory. */
gf_settings *gf_settings_copy(const gf_settings *settings);

#endif
