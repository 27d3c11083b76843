/* JSON, to a stream. */
#ifndef GF_CLI_JSON_H
#define GF_CLI_JSON_H

#include <stdio.h>

#include "gpufilter.h"

/* Print text, quoted and escaped; bytes that are no UTF-8 become U+FFFD. */
void gf_json_text(FILE *file, const char *text);
/* Print "KEY": and a file's name. One that is no UTF-8 follows once more, exactly, as
 * "KEY_encoded": its bytes percent-encoded. */
void gf_json_name(FILE *file, const char *key, const char *name);
/* Print names likewise as an array; where one is no UTF-8, a second array has all of them encoded.
 */
void gf_json_names(FILE *file, const char *key, const char *const *names, size_t count);
/* A number; quoted where JSON cannot hold it exactly: integers above 2^53, "nan", "inf", "-inf". */
void gf_json_value(FILE *file, const gf_value *value);
/* {"width": 768, "height": 512, "channels": 3, "type": "u8"} */
void gf_json_format(FILE *file, const gf_format *format);

#endif
