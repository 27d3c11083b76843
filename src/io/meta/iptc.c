/* Photoshop image resources. */
#include "io/meta/iptc.h"

#include <stdlib.h>
#include <string.h>

#include "io/bytes.h"

bool gf_resource_next(const unsigned char *data, size_t size, gf_resource *resource) {
    enum { NAME = 6, MIN = 12 };
    const size_t start = resource->end, left = size - start;
    const unsigned char *at = data + start;
    const size_t head = left < MIN ? 0 : NAME + (at[NAME] + 2u) / 2 * 2 + 4;
    const size_t bytes = head && head <= left ? gf_big32(at + head - 4) : 0;
    if (!head || head + bytes > left)
        return false;
    const uint32_t id = memcmp(at, "8BIM", 4) == 0 ? (uint32_t)at[4] << 8 | at[5] : 0;
    *resource = (gf_resource){id, start, start + head, start + head + bytes, bytes};
    resource->end += resource->end < size ? bytes % 2 : 0;
    return true;
}

size_t gf_resources_update(unsigned char *data, size_t size) {
    enum { OLD_THUMBNAIL = 1033, THUMBNAIL = 1036 };
    gf_resource r = {0};
    size_t kept = 0;
    while (gf_resource_next(data, size, &r)) {
        if (r.id == OLD_THUMBNAIL || r.id == THUMBNAIL)
            continue;
        memmove(data + kept, data + r.start, r.end - r.start);
        kept += r.end - r.start;
    }
    memmove(data + kept, data + r.end, size - r.end);
    return kept + size - r.end;
}

unsigned char *gf_resources_join(const void *iptc, size_t iptc_size, const void *resources,
                                 size_t size, size_t *joined_size) {
    static const unsigned char head[] = "8BIM\4\4\0"; /* with the NUL of the string: no name */
    enum { HEAD = sizeof head + 4 };
    gf_resource r = {0};
    while (size && gf_resource_next(resources, size, &r))
        iptc_size = r.id == GF_RESOURCE_IPTC ? 0 : iptc_size;
    const size_t before = iptc_size ? HEAD + iptc_size + iptc_size % 2 : 0;
    unsigned char *joined = calloc(1, before + size + 1);
    *joined_size = before + size;
    if (joined && iptc_size) {
        memcpy(joined, head, sizeof head);
        gf_put_big32(joined + sizeof head, (uint32_t)iptc_size);
        memcpy(joined + HEAD, iptc, iptc_size);
    }
    if (joined && size)
        memcpy(joined + before, resources, size);
    return joined;
}
