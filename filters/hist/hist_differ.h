/* Extracted samples against golden's. */
#ifndef GF_HIST_DIFFER_H
#define GF_HIST_DIFFER_H

#include "hist/hist.h"

/* gf_measure.differ */
bool gf_hist_differ(const gf_plan *plan, uint64_t rows, const gf_payloads *golden,
                    const gf_payloads *got, char *where, size_t size);

#endif
