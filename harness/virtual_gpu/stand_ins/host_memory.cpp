#include "harness/virtual_gpu/stand_ins/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

#include "harness/virtual_gpu/stand_ins/account.h"

namespace headroom::virtual_gpu {
namespace {

using Blocks = std::map<std::uintptr_t, std::size_t>;

std::mutex host_mutex;
Blocks locked;
Blocks registered;
Blocks managed;

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

bool is_in(const Blocks& blocks, const void* address) {
  const auto behind = blocks.upper_bound(number_of(address));
  if (behind == blocks.begin()) return false;
  const auto& [begin, bytes] = *std::prev(behind);
  return number_of(address) - begin < bytes;
}

// Returns nullptr for zero bytes and when the machine has no memory left.
void* take(Blocks& blocks, std::size_t bytes, int flags) {
  if (bytes == 0) return nullptr;
  void* address =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (address == MAP_FAILED) return nullptr;
  blocks[number_of(address)] = bytes;
  return address;
}

// Returns the bytes of the block, or 0 if there is none at `address`.
std::size_t give_back(Blocks& blocks, void* address) {
  const auto found = blocks.find(number_of(address));
  if (found == blocks.end()) return 0;
  const std::size_t bytes = found->second;
  munmap(address, bytes);
  blocks.erase(found);
  return bytes;
}

}  // namespace

void* allocate_host(std::size_t bytes) {
  const std::lock_guard lock(host_mutex);
  return take(locked, bytes, 0);
}

bool release_host(void* address) {
  const std::lock_guard lock(host_mutex);
  return give_back(locked, address) > 0;
}

void register_host(void* address, std::size_t bytes) {
  const std::lock_guard lock(host_mutex);
  registered[number_of(address)] = bytes;
}

void unregister_host(void* address) {
  const std::lock_guard lock(host_mutex);
  registered.erase(number_of(address));
}

bool is_page_locked(const void* address) {
  const std::lock_guard lock(host_mutex);
  return is_in(locked, address) || is_in(registered, address);
}

void* allocate_managed(std::size_t bytes) {
  const std::lock_guard lock(host_mutex);
  void* address = take(managed, bytes, MAP_NORESERVE);
  if (address == nullptr) return nullptr;
  Record& account = record();
  account.managed_bytes += bytes;
  account.managed_peak_bytes =
      std::max(account.managed_peak_bytes.load(), account.managed_bytes.load());
  return address;
}

bool release_managed(void* address) {
  const std::lock_guard lock(host_mutex);
  const std::size_t bytes = give_back(managed, address);
  record().managed_bytes -= bytes;
  return bytes > 0;
}

bool is_managed(const void* address) {
  const std::lock_guard lock(host_mutex);
  return is_in(managed, address);
}

}  // namespace headroom::virtual_gpu
