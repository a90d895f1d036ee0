#include "harness/virtual_gpu/stand_ins/device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "harness/gpu_driver/block_addresses.h"
#include "harness/virtual_gpu/stand_ins/account.h"
#include "harness/virtual_gpu/stand_ins/card.h"
#include "harness/virtual_gpu/stand_ins/contents.h"
#include "harness/virtual_gpu/stand_ins/interface.h"

namespace headroom::virtual_gpu {
namespace {

struct Physical {
  std::size_t bytes = 0;  // 0 if another process has created it
  int device = 0;
  int references = 0;  // the handle and every mapping
};

struct Mapping {
  std::size_t bytes = 0;
  std::uint64_t handle = 0;
};

std::mutex memory_mutex;
std::map<std::uintptr_t, Range> blocks;          // served by allocate()
std::map<std::uintptr_t, Range> uncharged;       // served by allocate_uncharged()
std::map<int, SmallBlocks> small_blocks;         // served by allocate(), by device
std::map<std::uintptr_t, Range> of_pools;        // served by allocate_from_pool()
std::map<int, DriverPool> pools;                 // by device
std::map<std::uintptr_t, std::size_t> reserved;  // address ranges
std::map<std::uintptr_t, Mapping> mappings;
std::map<std::uint64_t, Physical> physical;
std::uint64_t last_handle = 0;
thread_local int device_of_thread = 0;

std::size_t rounded_up(std::size_t bytes) {
  return bytes > SIZE_MAX - kGranule ? SIZE_MAX : (bytes + kGranule - 1) / kGranule * kGranule;
}

// Regions of device addresses descend and are not given back. An allocator that takes the lowest of
// equal blocks therefore decides alike in every process, whatever else the process maps. They
// descend as a real driver's do. The peak of two measured runs depends on it (bench/fidelity:
// distilgpt2 with AdamW and batch 15, GPT-Neo with Adam and batch 25): it is within 0.2 % of the
// measured one here, and would be 10 and 7 % off otherwise. The system chooses addresses only after
// this range is used up.
constexpr std::uintptr_t kFirstAddress = std::uintptr_t{1} << 45;
constexpr std::uintptr_t kBehindLastAddress = std::uintptr_t{5} << 44;
std::uintptr_t lowest_taken = kBehindLastAddress;

// Reserves address space without pages, aligned to the granule; nullptr if there is none left.
void* take_addresses(std::size_t bytes) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  if (bytes <= lowest_taken - kFirstAddress) {
    lowest_taken -= bytes;
    void* wanted = reinterpret_cast<void*>(lowest_taken);
    if (mmap(wanted, bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) == wanted)
      return wanted;
  }
  void* taken = mmap(nullptr, bytes + kGranule, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (taken == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(taken);
  const std::uintptr_t aligned = (begin + kGranule - 1) / kGranule * kGranule;
  if (aligned > begin) munmap(taken, aligned - begin);
  const std::size_t behind = begin + kGranule - aligned;
  if (behind > 0) munmap(reinterpret_cast<void*>(aligned + bytes), behind);
  return reinterpret_cast<void*>(aligned);
}

BlockAddresses block_addresses([](std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(take_addresses(bytes));
});

// The memory of a device that other processes of the run hold.
struct Others {
  std::size_t bytes = 0;  // with the contexts of these processes
  std::size_t processes = 0;
};

Others others_on(int device) {
  Others others;
  for (const Holder& holder : holders_of(card_number(device))) {
    if (holder.pid == getpid()) continue;
    others.bytes += holder.bytes + card().context_bytes;
    ++others.processes;
  }
  return others;
}

// Charges `bytes` to the device, or notes a refusal. The mutex must be held.
bool charge(std::size_t bytes, int device) {
  DeviceRecord& account = record().devices[card_number(device)];
  const CardsLock lock;
  const Others others = others_on(device);
  const std::size_t own = account.used_bytes;
  const std::size_t used = own + others.bytes;
  if (used > card().memory_bytes || bytes > card().memory_bytes - used) {
    ++account.refusals;
    account.refused_bytes = bytes;
    return false;
  }
  account.used_bytes = own + bytes;
  if (used + bytes > account.peak_bytes) {
    account.peak_bytes = used + bytes;
    account.processes_at_peak = others.processes + 1;
  }
  return true;
}

void discharge(std::size_t bytes, int device) {
  record().devices[card_number(device)].used_bytes -= bytes;
}

// Takes whole granules for allocate(). Returns 0 when the card or the address space is full.
std::uintptr_t take_granules(std::size_t bytes, int device) {
  if (!charge(bytes, device)) return 0;
  const std::uintptr_t address = block_addresses.take(bytes);
  if (address == 0) discharge(bytes, device);
  return address;
}

void give_granules_back(std::uintptr_t begin, std::size_t bytes, int device) {
  block_addresses.give_back(begin, bytes);
  discharge(bytes, device);
}

// Gaps between its blocks take addresses, too, so a pool has more of them than the card has memory.
DriverPool& made_pool(int device) {
  const auto found = pools.find(device);
  if (found != pools.end()) return found->second;
  const std::size_t addresses = rounded_up(4 * card().memory_bytes);
  void* begin = take_addresses(addresses);
  return pools
      .try_emplace(
          device, reinterpret_cast<std::uintptr_t>(begin), begin == nullptr ? 0 : addresses,
          DriverPool::Chunks{
              .take = [device](std::size_t) { return charge(DriverPool::kChunk, device); },
              .give_back = [device](std::size_t) { discharge(DriverPool::kChunk, device); },
              .move = [](std::size_t, std::size_t) {}})
      .first->second;
}

std::uintptr_t take_shared(std::size_t bytes, int device) {
  SmallBlocks& small = small_blocks[device];
  if (const std::uintptr_t place = small.take(bytes); place != 0) return place;
  const std::uintptr_t granule = take_granules(kGranule, device);
  if (granule == 0) return 0;
  small.open(granule);
  return small.take(bytes);
}

void drop_reference(std::map<std::uint64_t, Physical>::iterator found) {
  if (--found->second.references > 0) return;
  discharge(found->second.bytes, found->second.device);
  physical.erase(found);
}

template <typename Map>
auto holding(Map& map, std::uintptr_t address) {
  auto found = map.upper_bound(address);
  return found == map.begin() ? map.end() : std::prev(found);
}

}  // namespace

int current_device() { return device_of_thread; }
void set_current_device(int device) { device_of_thread = device; }

void* allocate(std::size_t bytes, int device) {
  if (bytes == 0) return nullptr;
  const bool shared = bytes <= kMostShared;
  const std::size_t size = shared ? bytes : rounded_up(bytes);
  const std::lock_guard lock(memory_mutex);
  const std::uintptr_t begin = shared ? take_shared(size, device) : take_granules(size, device);
  if (begin == 0) return nullptr;
  ++record().devices[card_number(device)].allocations;
  blocks[begin] = {begin, size, device};
  return reinterpret_cast<void*>(begin);
}

void* allocate_from_pool(std::size_t bytes, int device) {
  if (bytes == 0) return nullptr;
  const std::lock_guard lock(memory_mutex);
  const std::uintptr_t begin = made_pool(device).take(bytes);
  if (begin == 0) return nullptr;
  ++record().devices[card_number(device)].allocations;
  of_pools[begin] = {begin, bytes, device};
  return reinterpret_cast<void*>(begin);
}

void with_pool(int device, const std::function<void(DriverPool&)>& use) {
  const std::lock_guard lock(memory_mutex);
  use(made_pool(device));
}

void synchronise_pools() {
  const std::lock_guard lock(memory_mutex);
  for (auto& [device, pool] : pools) pool.synchronise();
}

bool release(void* address) {
  const std::lock_guard lock(memory_mutex);
  const auto of_pool = of_pools.find(reinterpret_cast<std::uintptr_t>(address));
  if (of_pool != of_pools.end()) {
    forget_contents(address, of_pool->second.bytes);
    made_pool(of_pool->second.device).give_back(of_pool->first);
    of_pools.erase(of_pool);
    return true;
  }
  const auto found = blocks.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == blocks.end()) return false;
  const Range block = found->second;
  blocks.erase(found);
  forget_contents(address, block.bytes);
  if (block.bytes > kMostShared)
    give_granules_back(block.begin, block.bytes, block.device);
  else if (const auto granule = small_blocks[block.device].give_back(block.begin))
    give_granules_back(*granule, kGranule, block.device);
  return true;
}

void* allocate_uncharged(std::size_t bytes, int device) {
  const std::size_t size = rounded_up(bytes);
  const std::lock_guard lock(memory_mutex);
  void* address = take_addresses(size);
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (address != nullptr) uncharged[begin] = {begin, size, device};
  return address;
}

void release_uncharged(void* address) {
  const std::lock_guard lock(memory_mutex);
  const auto found = uncharged.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == uncharged.end()) return;
  forget_contents(address, found->second.bytes);
  munmap(address, found->second.bytes);
  uncharged.erase(found);
}

std::optional<Range> find(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(memory_mutex);
  for (const auto* served : {&blocks, &of_pools, &uncharged})
    if (const auto block = holding(*served, at); block != served->end())
      if (at - block->first < block->second.bytes) return block->second;
  if (const auto mapping = holding(mappings, at); mapping != mappings.end())
    if (at - mapping->first < mapping->second.bytes) {
      const auto found = physical.find(mapping->second.handle);
      return Range{mapping->first, mapping->second.bytes,
                   found == physical.end() ? 0 : found->second.device};
    }
  return std::nullopt;
}

std::size_t used_bytes(int device) { return record().devices[card_number(device)].used_bytes; }

// Lets a program read the used bytes of its card at any moment.
HEADROOM_EXPORT std::uint64_t headroom_gpu_used_bytes(int device) {
  return device < 0 || device >= kMaxDevices ? 0 : used_bytes(device);
}

std::size_t free_bytes(int device) {
  const std::size_t used = used_bytes(device) + others_on(device).bytes;
  return used > card().memory_bytes ? 0 : card().memory_bytes - used;
}

void* reserve_addresses(std::size_t bytes) {
  const std::lock_guard lock(memory_mutex);
  void* address = take_addresses(rounded_up(bytes));
  if (address != nullptr) reserved[reinterpret_cast<std::uintptr_t>(address)] = rounded_up(bytes);
  return address;
}

bool free_addresses(void* address) {
  const std::lock_guard lock(memory_mutex);
  const auto found = reserved.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == reserved.end()) return false;
  munmap(address, found->second);
  reserved.erase(found);
  return true;
}

std::uint64_t create_physical(std::size_t bytes, int device) {
  const std::lock_guard lock(memory_mutex);
  const std::size_t size = rounded_up(bytes);
  if (!charge(size, device)) return 0;
  ++record().devices[card_number(device)].allocations;
  physical[++last_handle] = {size, device, 1};
  return last_handle;
}

std::uint64_t import_physical(int device) {
  const std::lock_guard lock(memory_mutex);
  physical[++last_handle] = {0, device, 1};
  return last_handle;
}

bool release_physical(std::uint64_t handle) {
  const std::lock_guard lock(memory_mutex);
  const auto found = physical.find(handle);
  if (found == physical.end()) return false;
  drop_reference(found);
  return true;
}

bool map_physical(void* address, std::size_t bytes, std::uint64_t handle) {
  const std::lock_guard lock(memory_mutex);
  const auto found = physical.find(handle);
  if (found == physical.end()) return false;
  ++found->second.references;
  mappings[reinterpret_cast<std::uintptr_t>(address)] = {bytes, handle};
  return true;
}

bool unmap(void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(memory_mutex);
  bool any = false;
  for (auto at = mappings.lower_bound(begin); at != mappings.end() && at->first < begin + bytes;) {
    const auto found = physical.find(at->second.handle);
    if (found != physical.end()) drop_reference(found);
    at = mappings.erase(at);
    any = true;
  }
  forget_contents(address, bytes);
  return any;
}

std::uint64_t retain_physical(void* address) {
  const std::lock_guard lock(memory_mutex);
  const auto mapping = holding(mappings, reinterpret_cast<std::uintptr_t>(address));
  if (mapping == mappings.end()) return 0;
  ++physical[mapping->second.handle].references;
  return mapping->second.handle;
}

}  // namespace headroom::virtual_gpu
