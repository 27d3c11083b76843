/* Internal functions of settings, in addition to the public interface. */
#ifndef GF_SETTINGS_H
#define GF_SETTINGS_H

#include "gpufilter_tools.h"

/* Return whether these settings were created from this table. */
bool gf_settings_fit(const gf_settings *settings, const gf_param *params);
/* Copy settings. The caller frees the copy. Return NULL if out of memory. */
gf_settings *gf_settings_copy(const gf_settings *settings);

#endif
