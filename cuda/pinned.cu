// Large pages, where there are some, make large buffers in less than half the time that the driver
// takes for its own.
#include "pinned.cuh"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr size_t LARGE_PAGE = size_t{2} << 20;
constexpr size_t ALIGNMENT = 64; // of rows

// Memory from the system, in large pages if it has them. NULL if there is none.
void *map_pages(size_t bytes) {
    // As many bytes more as leave room to begin with a large page.
    void *pages = mmap(nullptr, bytes + LARGE_PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return nullptr;
    unsigned char *begin = static_cast<unsigned char *>(pages);
    const size_t before =
        (LARGE_PAGE - reinterpret_cast<uintptr_t>(pages) % LARGE_PAGE) % LARGE_PAGE;
    if (before)
        munmap(begin, before);
    if (before < LARGE_PAGE)
        munmap(begin + before + bytes, LARGE_PAGE - before);
    begin += before;
    (void)madvise(begin, bytes, MADV_HUGEPAGE); // small pages do as well
    // After a fork whoever writes to a page first gets another one: it must not be this process,
    // whose pages the device knows.
    (void)madvise(begin, bytes, MADV_DONTFORK);
    return begin;
}

// Pages of our own; false where the driver does not take them.
bool pin_pages(gf_pinned *pinned, size_t size) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = (size + page - 1) / page * page;
    void *pages = map_pages(bytes);
    if (!pages)
        return false;
    if (cudaHostRegister(pages, bytes, cudaHostRegisterPortable) != cudaSuccess) {
        cudaGetLastError();
        munmap(pages, bytes);
        return false;
    }
    *pinned = gf_pinned{pages, size, bytes, false};
    return true;
}

} // namespace

gf_status gf_pinned_grow(gf_pinned *pinned, size_t size, gf_error *error) {
    if (size <= pinned->size)
        return GF_OK;
    gf_pinned_free(pinned);
    if (size >= LARGE_PAGE && pin_pages(pinned, size))
        return GF_OK;
    if (cudaHostAlloc(&pinned->data, size, cudaHostAllocPortable) != cudaSuccess) {
        // A limit on locked memory, or a device that failed: the next call tells.
        cudaGetLastError();
        pinned->ordinary = true;
        pinned->data = aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    }
    if (!pinned->data) {
        *pinned = gf_pinned{};
        return gf_fail_memory(error, "cuda", size, "bands");
    }
    pinned->size = size;
    return GF_OK;
}

void gf_pinned_free(gf_pinned *pinned) {
    if (pinned->mapped) {
        cudaHostUnregister(pinned->data);
        munmap(pinned->data, pinned->mapped);
    } else if (pinned->ordinary) {
        free(pinned->data);
    } else {
        cudaFreeHost(pinned->data);
    }
    *pinned = gf_pinned{};
}
