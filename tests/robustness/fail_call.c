/* Preloaded into a program: of the calls below, the one with the number FAIL_AT (counted from 1)
   fails with the error number FAIL_WITH, as it may when a disk is full, a limit is reached or a
   signal arrives. The number of calls that were made is written into the file FAIL_COUNT. Programs
   that the program starts are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls;
static long fail_at;
static int fail_with;
static char counted[4096];

__attribute__((constructor)) static void begin(void) {
  if (getenv("FAIL_AT") != NULL) fail_at = atol(getenv("FAIL_AT"));
  if (getenv("FAIL_WITH") != NULL) fail_with = atoi(getenv("FAIL_WITH"));
  if (getenv("FAIL_COUNT") != NULL) strncpy(counted, getenv("FAIL_COUNT"), sizeof counted - 1);
  for (const char** name =
           (const char*[]){"LD_PRELOAD", "FAIL_AT", "FAIL_WITH", "FAIL_COUNT", NULL};
       *name != NULL; ++name)
    unsetenv(*name);
}

__attribute__((destructor)) static void end(void) {
  const long made = atomic_load(&calls);
  fail_at = 0;
  FILE* file = counted[0] == 0 ? NULL : fopen(counted, "w");
  if (file == NULL) return;
  fprintf(file, "%ld\n", made);
  fclose(file);
}

static int fails(void) {
  if (atomic_fetch_add(&calls, 1) + 1 != fail_at) return 0;
  errno = fail_with;
  return 1;
}

/* A signal interrupts only what waits: to open, rename or make something on a disk does not, and
   neither does a new pipe or process. */
static int fails_without_waiting(void) { return fail_with != EINTR && fails(); }

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void* data, size_t size) {
  return fails() ? -1 : NEXT(write)(file, data, size);
}
ssize_t writev(int file, const struct iovec* parts, int count) {
  return fails() ? -1 : NEXT(writev)(file, parts, count);
}
ssize_t read(int file, void* data, size_t size) {
  return fails() ? -1 : NEXT(read)(file, data, size);
}
static int mode_of(int flags, va_list rest) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, int) : 0;
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = mode_of(flags, rest);
  va_end(rest);
  return fails_without_waiting() ? -1 : NEXT(open)(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = mode_of(flags, rest);
  va_end(rest);
  return fails_without_waiting() ? -1 : NEXT(open64)(path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) {
  return fails_without_waiting() ? NULL : NEXT(fopen)(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  return fails_without_waiting() ? NULL : NEXT(fopen64)(path, mode);
}
int fsync(int file) { return fails() ? -1 : NEXT(fsync)(file); }
int rename(const char* from, const char* to) {
  return fails_without_waiting() ? -1 : NEXT(rename)(from, to);
}
int mkdir(const char* path, mode_t mode) {
  return fails_without_waiting() ? -1 : NEXT(mkdir)(path, mode);
}
int pipe2(int ends[2], int flags) {
  return fails_without_waiting() ? -1 : NEXT(pipe2)(ends, flags);
}
int poll(struct pollfd* files, nfds_t count, int timeout) {
  return fails() ? -1 : NEXT(poll)(files, count, timeout);
}
int posix_spawnp(pid_t* child, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const arguments[],
                 char* const variables[]) {
  if (fails_without_waiting()) return errno;
  return NEXT(posix_spawnp)(child, file, actions, attributes, arguments, variables);
}
