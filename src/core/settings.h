/* Internal functions of settings, in addition to the public interface. */
#ifndef GF_SETTINGS_H
#define GF_SETTINGS_H

#include "gpufilter_tools.h"

/* Return the index of the first `length` bytes of a text in a NULL-terminated list; that of the
 * NULL if they are none of its choices. */
size_t gf_choice_index(const char *const *choices, const char *text, size_t length);
/* Join the texts of such a list as "a, b or c". Truncate to size bytes. */
void gf_join_choices(const char *const *choices, char *text, size_t size);
/* Return whether these settings were created from this table. */
bool gf_settings_fit(const gf_settings *settings, const gf_param *params);
/* Copy settings. The caller frees the copy. Return NULL if out of memory. */
gf_settings *gf_settings_copy(const gf_settings *settings);
/* Return whether both were created from one table and have the same texts. */
bool gf_settings_same(const gf_settings *a, const gf_settings *b);

#endif
