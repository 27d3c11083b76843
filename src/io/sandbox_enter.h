/* What a child does on its way into the sandbox, by system calls alone. */
#ifndef GF_SANDBOX_ENTER_H
#define GF_SANDBOX_ENTER_H

#include <stdint.h>
#include <sys/types.h>

#include "io/sandbox.h"

/* As fork, but what the process or its libraries want done at a fork is not: the child calls none
 * of them. Nor is there a SIGCHLD when it ends; wait for it with __WALL. */
pid_t gf_sandbox_fork(void);

/* Gives up all that a process has but its private memory and `shared`, which may be NULL;
 * afterwards any system call but exit is its end. If that cannot be had, leaves with an errno as
 * its code. */
void gf_sandbox_enter(pid_t parent, const gf_sandbox_memory *shared, uint32_t seconds);

/* Does not return, nor does it run what is to run at exit. */
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
