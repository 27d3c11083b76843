/* Runs code that is not trusted where it can do no harm: in a child process that may compute, write
 * to memory that it shares with us, and end. docs/security.md says why it is made like this. */
#ifndef GF_SANDBOX_H
#define GF_SANDBOX_H

#include <sys/types.h>

#include "gpufilter.h"

typedef enum gf_sandbox_end {
    GF_SANDBOX_DONE,    /* it says that it has done its work */
    GF_SANDBOX_STOPPED, /* it crashed, or wanted what it may not */
    GF_SANDBOX_TIME     /* it took too many seconds */
} gf_sandbox_end;

typedef void gf_sandbox_work(void *context);

/* Memory that a child shares with us. */
typedef struct gf_sandbox_memory {
    unsigned char *base;
    size_t bytes;
} gf_sandbox_memory;

/* Runs work(context) in a child and waits for its end. The child sees a copy of all private memory;
 * what it writes is lost, but for what it writes to `shared`. Nothing there is to be believed: not
 * even after GF_SANDBOX_DONE. Other memory that is mapped shared, by whomever, is not there.
 *
 * The child has no files and any system call is its end. So the work may not allocate, print, or
 * wait for anybody: other threads are not there, and what they had locked stays so.
 *
 * seconds: of CPU time, until it is stopped. GF_FAILED with a message about `name` if there can be
 * no child, or no sandbox, or if the child cannot be waited for: it is killed then. May be called
 * by any thread; the process's handling of SIGCHLD does not matter and sees nothing of it. */
gf_status gf_sandbox_run(gf_sandbox_work *work, void *context, const gf_sandbox_memory *shared,
                         uint32_t seconds, const char *name, gf_sandbox_end *end, gf_error *error);

/* Memory for that, all 0: pages cost something only when they are touched. NULL if there is none.
 */
void *gf_sandbox_map(size_t bytes);
/* Gives pages of it back that lie wholly in between; they are 0 then. */
void gf_sandbox_trim(void *begin, void *end);
void gf_sandbox_unmap(void *memory, size_t bytes);

/* What a child does on its way into the sandbox, by system calls alone. */

/* As fork, but what the process or its libraries want done at a fork is not: the child calls none
 * of them. Nor is there a SIGCHLD when it ends; wait for it with __WALL. */
pid_t gf_sandbox_fork(void);

/* Gives up all that a process has but its private memory and `shared`, which may be NULL;
 * afterwards any system call but exit is its end. If that cannot be had, leaves with an errno as
 * its code. */
void gf_sandbox_enter(pid_t parent, const gf_sandbox_memory *shared, uint32_t seconds);

/* Ends the child at once: does not return, nor does it run what is to run at exit. Its work is done
 * if the code is 0. */
void gf_sandbox_exit(int code);

/* Sanitizers write to private memory of their own all the time: there the child may, too. */
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
