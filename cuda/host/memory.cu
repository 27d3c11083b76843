// Memory that grows: on a device, and page-locked on the host.
#include "cuda/host/devices.cuh"

#include <sys/mman.h>
#include <unistd.h>

static constexpr size_t large_page = size_t{2} << 20;

// Return the bytes of the whole pages that hold `size` bytes.
static size_t memory_page_bytes(size_t size) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return gf_divide_up(size, page) * page;
}

// Map memory and register it: for large sizes this takes less than half the time of cudaHostAlloc.
static void memory_take_host(gf_storage *memory, size_t size, gf_queue *queue) {
    // Map large_page bytes more, to align the start to a huge page.
    const size_t bytes = memory_page_bytes(size);
    void *pages = mmap(nullptr, bytes + large_page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        queue->status = gf_fail_memory(queue->error, "cuda", size, "strips");
        return;
    }
    memory->data = static_cast<unsigned char *>(pages);
    const size_t unaligned =
        (large_page - reinterpret_cast<uintptr_t>(pages) % large_page) % large_page;
    if (unaligned)
        munmap(memory->data, unaligned);
    if (unaligned < large_page)
        munmap(memory->data + unaligned + bytes, large_page - unaligned);
    memory->data += unaligned;
    (void)madvise(memory->data, bytes, MADV_HUGEPAGE); // a hint: small pages also work
    // After a fork, the first process that writes to a page gets a copy. This process must keep the
    // original pages, which are registered with the device.
    (void)madvise(memory->data, bytes, MADV_DONTFORK);
    if (cudaHostRegister(memory->data, bytes, cudaHostRegisterPortable) != cudaSuccess) {
        // The limit on locked memory, or a failed device: the next CUDA call returns that error.
        cudaGetLastError();
        memory->kind = GF_MEMORY_PAGEABLE;
    }
}

static void memory_take(gf_storage *memory, size_t size, gf_memory_kind kind, gf_queue *queue) {
    cudaError_t result = cudaSuccess;
    *memory = gf_storage{nullptr, 0, kind};
    if (kind == GF_MEMORY_HOST)
        memory_take_host(memory, size, queue);
    if (kind == GF_MEMORY_STREAM) {
        result = cudaMallocAsync(&memory->data, size, queue->stream);
        if (result == cudaErrorNotSupported) {
            cudaGetLastError();
            memory->kind = GF_MEMORY_DEVICE;
        }
    }
    if (memory->kind == GF_MEMORY_DEVICE || kind == GF_MEMORY_CLEARED)
        result = cudaMalloc(&memory->data, size);
    gf_queue_check(queue, result, "device memory");
    if (kind == GF_MEMORY_CLEARED)
        gf_queue_clear(queue, memory->data, size);
    memory->size = queue->status ? 0 : size;
}

void gf_memory_free(gf_storage *memory) {
    if (!memory->data)
        return;
    if (memory->kind == GF_MEMORY_HOST)
        cudaHostUnregister(memory->data);
    if (memory->kind == GF_MEMORY_HOST || memory->kind == GF_MEMORY_PAGEABLE)
        munmap(memory->data, memory_page_bytes(memory->size));
    else
        cudaFree(memory->data);
    *memory = gf_storage{};
}

void gf_memory_grow(gf_storage *memory, size_t size, gf_memory_kind kind, gf_queue *queue) {
    if (queue->status || size <= memory->size)
        return;
    if (memory->data && memory->kind == GF_MEMORY_STREAM)
        cudaFreeAsync(memory->data, queue->stream);
    else
        gf_memory_free(memory);
    memory_take(memory, size, kind, queue);
}

void gf_memory_extend(gf_storage *memory, size_t size, size_t used, gf_queue *queue) {
    gf_storage larger;
    if (queue->status || size <= memory->size)
        return;
    memory_take(&larger, size + size / 4, GF_MEMORY_HOST, queue);
    if (used) { // wait for the copies to the old memory
        gf_queue_synchronize(queue, "copy of the file");
        if (!queue->status)
            memcpy(larger.data, memory->data, used);
    }
    if (!queue->status) {
        gf_storage old = *memory;
        *memory = larger;
        larger = old;
    }
    gf_memory_free(&larger);
}
