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

#ifndef MREMAP_DONTUNMAP  // Linux 5.7
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_POPULATE_WRITE  // Linux 5.14; Debian 12's libc knows it, older ones do not
#define MADV_POPULATE_WRITE 23
#endif

namespace headroom {
namespace {

[[noreturn]] void throw_refused(const char* what, Bytes bytes, int error) {
  throw DeviceError(fmt::format("host memory: the system refused to {} {}: {}", what,
                                format_bytes(bytes), std::strerror(error)));
}

constexpr int kAccess = PROT_READ | PROT_WRITE;
constexpr int kAddressesOnly = MAP_NORESERVE;  // reserves no swap space

std::byte* map_memory(Bytes bytes, int access = kAccess, int flags = 0) {
  void* data = mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | flags, /*fd=*/-1,
                    /*offset=*/0);
  if (data == MAP_FAILED) throw_refused("map", bytes, errno);
  return static_cast<std::byte*>(data);
}

// Maps more than requested and unmaps both ends.
std::byte* map_aligned(Bytes bytes, Bytes alignment, int access = kAccess, int flags = 0) {
  std::byte* data = map_memory(bytes + alignment, access, flags);
  const Bytes head = align_up(reinterpret_cast<std::uintptr_t>(data), alignment) -
                     reinterpret_cast<std::uintptr_t>(data);
  if (head > 0) munmap(data, head);
  if (alignment > head) munmap(data + head + bytes, alignment - head);
  return data + head;
}

// Discards the mapped pages; the addresses stay reserved.
void make_inaccessible(std::byte* data, Bytes bytes) {
  if (mmap(data, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | kAddressesOnly,
           /*fd=*/-1, /*offset=*/0) == MAP_FAILED)
    throw_refused("take back", bytes, errno);
}

// Returns 0 or the system's error number.
int populate(std::byte* data, Bytes bytes) {
  if (madvise(data, bytes, MADV_POPULATE_WRITE) == 0) return 0;
  if (errno != EINVAL) return errno;
  // Older kernels do not support this advice: touch every page instead.
  for (Bytes offset = 0; offset < bytes; offset += kHostGranule)
    *const_cast<volatile std::byte*>(data + offset) = std::byte{0};
  return 0;
}

// Populates newly mapped memory.
void populate_or_unmap(std::byte* data, Bytes bytes) {
  const int error = populate(data, bytes);
  if (error == 0) return;
  munmap(data, bytes);
  throw_refused("populate", bytes, error);
}

}  // namespace

std::byte* HostMemory::commit(Bytes bytes) {
  if (bytes < kSegmentAlignment) {
    std::byte* data = map_memory(bytes);
    populate_or_unmap(data, bytes);
    return data;
  }
  std::byte* data = map_aligned(bytes, kSegmentAlignment);
  // Huge pages are only advice: where they are disabled, small ones are used.
  madvise(data, bytes, MADV_HUGEPAGE);
  populate_or_unmap(data, bytes);
  return data;
}

void HostMemory::release(std::byte* data, Bytes bytes) {
  if (munmap(data, bytes) != 0) throw_refused("unmap", bytes, errno);
}

Bytes physical_memory() {
  return static_cast<Bytes>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
}

std::byte* HostMemory::reserve_addresses(Bytes bytes) {
  return map_aligned(bytes, kSegmentAlignment, PROT_NONE, kAddressesOnly);
}

void HostMemory::map_pages(std::byte* data, Bytes bytes, Bytes /*unit*/) {
  if (mprotect(data, bytes, kAccess) != 0) throw_refused("map", bytes, errno);
  madvise(data, bytes, MADV_HUGEPAGE);
  const int error = populate(data, bytes);
  if (error == 0) return;
  make_inaccessible(data, bytes);
  throw_refused("populate", bytes, error);
}

void HostMemory::unmap_pages(std::byte* data, Bytes bytes) { make_inaccessible(data, bytes); }

// Moves page by page, because pages mapped by several calls need not be one mapping to the kernel.
// The source stays mapped meanwhile, so that no other thread's mmap can take its addresses.
void HostMemory::move_pages(std::byte* from, std::byte* to, Bytes bytes) {
  for (Bytes offset = 0; offset < bytes; offset += kSegmentAlignment) {
    if (mremap(from + offset, kSegmentAlignment, kSegmentAlignment,
               MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to + offset) == MAP_FAILED)
      throw_refused("move", kSegmentAlignment, errno);
  }
  make_inaccessible(from, bytes);
}

void HostMemory::release_addresses(std::byte* data, Bytes bytes) { release(data, bytes); }

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
