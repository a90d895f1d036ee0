#include "harness/machine/heap_witness.h"

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HEADROOM_HEAP_WITNESS 1
#endif

namespace headroom {
namespace {

// These are initialised at compile time because the first allocations precede all constructors.
constinit std::atomic<Bytes> live{0};
constinit std::atomic<Bytes> peak{0};
constinit std::atomic<std::uint64_t> allocations{0};

#ifdef HEADROOM_HEAP_WITNESS

void count_bytes(Bytes added) {
  const Bytes now = live.fetch_add(added, std::memory_order_relaxed) + added;
  Bytes highest = peak.load(std::memory_order_relaxed);
  while (now > highest && !peak.compare_exchange_weak(highest, now, std::memory_order_relaxed)) {
  }
}

void* served(void* data) {
  if (data != nullptr) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    count_bytes(malloc_usable_size(data));
  }
  return data;
}

void given_back(void* data) {
  if (data != nullptr) live.fetch_sub(malloc_usable_size(data), std::memory_order_relaxed);
}

bool is_power_of_two(std::size_t value) { return value != 0 && (value & (value - 1)) == 0; }

#endif

}  // namespace

bool heap_witness_available() {
#ifdef HEADROOM_HEAP_WITNESS
  return true;
#else
  return false;
#endif
}

HeapCounters heap_counters() {
  return {.live_bytes = live.load(std::memory_order_relaxed),
          .peak_bytes = peak.load(std::memory_order_relaxed),
          .allocations = allocations.load(std::memory_order_relaxed)};
}

void restart_heap_peak() {
  peak.store(live.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace headroom

#ifdef HEADROOM_HEAP_WITNESS

// Interposition as glibc's manual describes it ("Replacing malloc"): the whole malloc family is
// defined here and forwards to glibc's own entry points. There are no locks and no state but the
// counters, so threads, start-up and fork need no special handling.
// NOLINTBEGIN(clang-diagnostic-reserved-identifier,readability-identifier-naming)
extern "C" {

void* __libc_malloc(std::size_t);
void __libc_free(void*);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* __libc_valloc(std::size_t);
void* __libc_pvalloc(std::size_t);

void* malloc(std::size_t bytes) noexcept { return headroom::served(__libc_malloc(bytes)); }

void free(void* data) noexcept {
  headroom::given_back(data);
  __libc_free(data);
}

void* calloc(std::size_t count, std::size_t bytes) noexcept {
  return headroom::served(__libc_calloc(count, bytes));
}

void* realloc(void* data, std::size_t bytes) noexcept {
  const headroom::Bytes before = data == nullptr ? 0 : malloc_usable_size(data);
  void* moved = __libc_realloc(data, bytes);
  // A failed realloc leaves the old block unchanged; realloc to zero bytes frees it.
  if (moved != nullptr || bytes == 0) headroom::live.fetch_sub(before, std::memory_order_relaxed);
  return headroom::served(moved);
}

void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return headroom::served(__libc_memalign(alignment, bytes));
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return headroom::served(__libc_memalign(alignment, bytes));
}

int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) noexcept {
  if (alignment % sizeof(void*) != 0 || !headroom::is_power_of_two(alignment)) return EINVAL;
  void* data = headroom::served(__libc_memalign(alignment, bytes));
  if (data == nullptr) return ENOMEM;
  *result = data;
  return 0;
}

void* valloc(std::size_t bytes) noexcept { return headroom::served(__libc_valloc(bytes)); }
void* pvalloc(std::size_t bytes) noexcept { return headroom::served(__libc_pvalloc(bytes)); }

}  // extern "C"
// NOLINTEND(clang-diagnostic-reserved-identifier,readability-identifier-naming)

#endif
