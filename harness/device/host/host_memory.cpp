#include "harness/device/host/host_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include "harness/base/error.h"

#ifndef MADV_POPULATE_WRITE  // Linux 5.14; Debian 12's libc knows it, older ones do not
#define MADV_POPULATE_WRITE 23
#endif

namespace headroom {
namespace {

[[noreturn]] void throw_refused(const char* what, Bytes bytes, int error) {
  throw DeviceError(fmt::format("host memory: the system refused to {} {}: {}", what,
                                format_bytes(bytes), std::strerror(error)));
}

std::byte* map(Bytes bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1,
                    /*offset=*/0);
  if (data == MAP_FAILED) throw_refused("map", bytes, errno);
  return static_cast<std::byte*>(data);
}

// Maps more than wanted and gives the ends back.
std::byte* map_aligned(Bytes bytes, Bytes alignment) {
  std::byte* data = map(bytes + alignment);
  const Bytes head = align_up(reinterpret_cast<std::uintptr_t>(data), alignment) -
                     reinterpret_cast<std::uintptr_t>(data);
  if (head > 0) munmap(data, head);
  if (alignment > head) munmap(data + head + bytes, alignment - head);
  return data + head;
}

void populate(std::byte* data, Bytes bytes) {
  if (madvise(data, bytes, MADV_POPULATE_WRITE) == 0) return;
  const int error = errno;
  if (error != EINVAL) {
    munmap(data, bytes);
    throw_refused("populate", bytes, error);
  }
  // A kernel that does not know the advice: touch every page.
  for (Bytes offset = 0; offset < bytes; offset += kHostGranule)
    *const_cast<volatile std::byte*>(data + offset) = std::byte{0};
}

}  // namespace

std::byte* HostMemory::commit(Bytes bytes) {
  if (bytes < kSegmentAlignment) {
    std::byte* data = map(bytes);
    populate(data, bytes);
    return data;
  }
  std::byte* data = map_aligned(bytes, kSegmentAlignment);
  // Only advice: where huge pages are switched off, small ones serve.
  madvise(data, bytes, MADV_HUGEPAGE);
  populate(data, bytes);
  return data;
}

void HostMemory::release(std::byte* data, Bytes bytes) {
  if (munmap(data, bytes) != 0) throw_refused("unmap", bytes, errno);
}

Bytes physical_memory() {
  return static_cast<Bytes>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
}

Bytes default_host_capacity() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  Bytes kib = 0;
  std::string unit;
  while (file >> key >> kib) {
    if (key == "MemAvailable:") return align_down(kib * kKiB / 2, kSegmentAlignment);
    std::getline(file, unit);
  }
  throw DeviceError(
      "host memory: /proc/meminfo does not say what is available; name a capacity: "
      "host(capacity=4GiB)");
}

}  // namespace headroom
