/* Runs untrusted code in a sandboxed child process, which can only compute, write to memory shared
 * with the parent, and exit. docs/security.md gives the reasons for this design. */
#ifndef GF_SANDBOX_H
#define GF_SANDBOX_H

#include "gpufilter.h"

typedef enum gf_sandbox_end {
    GF_SANDBOX_DONE,    /* the child exited with status 0 */
    GF_SANDBOX_STOPPED, /* it crashed, made a forbidden system call, or has no sandbox */
    GF_SANDBOX_TIME     /* it exceeded the limit of CPU time */
} gf_sandbox_end;

typedef void gf_sandbox_work(void *context);

/* Memory shared between parent and child. */
typedef struct gf_sandbox_memory {
    unsigned char *base;
    size_t bytes;
} gf_sandbox_memory;

/* Run work(context) in a child process and wait for it to exit. The child has a copy of the
 * parent's private memory; only writes to `shared` are visible to the parent. Do not trust the
 * contents of `shared`, even after GF_SANDBOX_DONE. The child has no other shared mappings.
 *
 * The child has no open files, and any system call except exit kills it. Therefore the work must
 * not allocate, print or wait for other threads: these do not exist in the child, and locks that
 * they held stay locked.
 *
 * seconds: limit of CPU time. Return GF_FAILED, with a message about `name`, if no child or no
 * sandbox can be created, or if the child cannot be waited for; it is then killed. Any thread may
 * call this function. It does not depend on the handling of SIGCHLD and raises none. */
gf_status gf_sandbox_run(gf_sandbox_work *work, void *context, const gf_sandbox_memory *shared,
                         uint32_t seconds, const char *name, gf_sandbox_end *end, gf_error *error);

/* Allocate shared memory, set to 0. Pages use physical memory once they are touched. Return NULL if
 * out of memory. */
void *gf_sandbox_map(size_t bytes);
/* Release the whole pages between begin and end. They read as 0 afterwards. */
void gf_sandbox_trim(void *begin, void *end);
void gf_sandbox_unmap(void *memory, size_t bytes);

/* In a child: exit at once, without running exit handlers. Status 0: the work is done. */
void gf_sandbox_exit(int code);

/* Sanitizers write to their private shadow memory, so these builds leave it writable. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GF_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GF_SANITIZED 1
#endif
#endif
#ifndef GF_SANITIZED
#define GF_SANITIZED 0
#endif

#endif
