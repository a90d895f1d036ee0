/* Preloaded into a program and what it starts: the clock of the day is set forward or back by up to
   JUMP_SECONDS before every reading, as somebody may who sets it while a run is under way. Clocks
   that only go forward are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static time_t jump(void) {
  const char* most = getenv("JUMP_SECONDS");
  struct timespec now;
  ((__typeof__(&clock_gettime))dlsym(RTLD_NEXT, "clock_gettime"))(CLOCK_MONOTONIC, &now);
  const long range = most == NULL ? 0 : atol(most);
  return now.tv_nsec / 1000 * 7919 % (2 * range + 1) - range;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int code = ((__typeof__(&clock_gettime))dlsym(RTLD_NEXT, "clock_gettime"))(clock, time);
  if (code == 0 && clock == CLOCK_REALTIME) time->tv_sec += jump();
  return code;
}

time_t time(time_t* result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != NULL) *result = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval* restrict result, void* restrict zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *result = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return 0;
}
