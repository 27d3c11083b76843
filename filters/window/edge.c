/* The option --edge. */
#include "window/edge.h"

#include "core/error.h"
#include "samples.h"

const char *const gf_edge_names[] = {"replicate", "reflect", "mirror", "constant:V", NULL};

gf_status gf_edge_read(const gf_settings *settings, gf_type type, gf_edge *edge, gf_error *error) {
    const double value = gf_settings_number(settings, "edge"), max = gf_type_max(type);
    edge->mode = (gf_edge_mode)gf_settings_choice(settings, "edge");
    edge->value = (float)value;
    if (type == GF_F32 ? isfinite(edge->value) : value >= 0 && value <= max && value == rint(value))
        return GF_OK;
    if (type == GF_F32)
        return gf_fail(error, GF_USAGE,
                       "--edge 'constant:%g': the value must be finite in binary32", value);
    return gf_fail(
        error, GF_USAGE,
        "--edge 'constant:%g': the value must be an integer from 0 to %.0f, as the samples "
        "of this image",
        value, max);
}
