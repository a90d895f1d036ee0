// poison: detects invalid writes. New blocks are filled with 0xA5, so that nothing relies on their
// old contents; 256 guard bytes before and behind each block must be intact when it is freed; freed
// blocks are filled with 0xDD and quarantined (quarantine=), and must be unchanged when they leave.
// Similar to Perens' efence and the debug heap of MSVC's CRT. Cost: every byte is written twice,
// and 512 bytes per block.
//
// On meta there are no bytes: blocks take the same space, but nothing is filled or detected. Device
// memory that the CPU cannot reach is not supported.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "harness/base/registry.h"
#include "harness/device/poison.h"
#include "strategies/allocator/adaptors/forwarding_allocator.h"

namespace headroom {
namespace {

constexpr Bytes kGuard = kBlockAlignment;
constexpr std::byte kFresh{0xA5};
constexpr std::byte kFence{0xFD};
constexpr std::byte kFreed{0xDD};

class Poison final : public ForwardingAllocator {
 public:
  Poison(const Spec& spec, std::unique_ptr<Allocator> inner, const DeviceMemory& memory)
      : ForwardingAllocator(std::move(inner), memory),
        quarantine_limit_(spec.bytes("quarantine", kMiB)) {}

  Block allocate(Bytes bytes, const AllocationHint& hint) override {
    if (bytes == 0) return {};
    const Block whole = take(bytes, hint);
    Block block = whole;
    block.address += kGuard;
    block.requested = bytes;
    block.size -= 2 * kGuard;
    if (whole.data != nullptr) {
      block.data += kGuard;
      std::memset(whole.data, static_cast<int>(kFence), kGuard);
      std::memset(block.data, static_cast<int>(kFresh), bytes);
      std::memset(block.data + bytes, static_cast<int>(kFence), kGuard);
      poison(whole.data, kGuard);
      poison(block.data + bytes, kGuard);
    }
    live_.emplace(block.address, whole);
    requested_ += bytes;
    allocated_ += block.size;
    return block;
  }

  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    const auto found = live_.find(block.address);
    if (found == live_.end()) throw Error("poison: a block was freed that is not live");
    const Block whole = found->second;
    live_.erase(found);
    requested_ -= block.requested;
    allocated_ -= block.size;
    kept_.push_back(whole);
    kept_bytes_ += whole.size;
    if (whole.data != nullptr) {
      unpoison(whole.data, whole.requested);
      require(whole.data, kGuard, kFence, whole, "was written before its start");
      require(block.data + block.requested, kGuard, kFence, whole, "was written behind its end");
      std::memset(whole.data, static_cast<int>(kFreed), whole.requested);
      poison(whole.data, whole.requested);
    }
    release_down_to(quarantine_limit_);
  }

  void record_stream(const Block& block, StreamId stream) override {
    if (block.size == 0) return;
    const auto found = live_.find(block.address);
    if (found == live_.end()) throw Error("poison: a block is used that is not live");
    inner().record_stream(found->second, stream);
  }

  AllocatorStatistics statistics() const override {
    AllocatorStatistics result = inner().statistics();
    result.requested = requested_;
    result.allocated = allocated_;
    result.live_blocks = live_.size();
    return result;
  }

  void trim() override {
    release_down_to(0);
    inner().trim();
  }

 private:
  // Before a request is refused, the quarantine is emptied.
  Block take(Bytes bytes, const AllocationHint& hint) {
    const Bytes whole = bytes > memory().capacity() ? bytes : bytes + 2 * kGuard;
    try {
      return checked(inner().allocate(whole, hint));
    } catch (const OutOfMemory&) {
      release_down_to(0);
    }
    return checked(allocate_enlarged(bytes, whole, hint));
  }

  Block checked(const Block& block) {
    if (block.data == nullptr || memory().is_host_accessible()) return block;
    inner().deallocate(block);
    throw NotSupported("poison: the CPU cannot write this device's memory; use it on host");
  }

  void release_down_to(Bytes bytes) {
    while (kept_bytes_ > bytes && !kept_.empty()) {
      const Block whole = kept_.front();
      kept_.pop_front();
      kept_bytes_ -= whole.size;
      if (whole.data != nullptr) {
        unpoison(whole.data, whole.requested);
        require(whole.data, whole.requested, kFreed, whole, "was written after it was freed");
      }
      inner().deallocate(whole);
    }
  }

  static void require(const std::byte* data, Bytes bytes, std::byte value, const Block& whole,
                      const char* what) {
    const auto* wrong =
        std::find_if(data, data + bytes, [&](std::byte byte) { return byte != value; });
    if (wrong == data + bytes) return;
    const std::ptrdiff_t offset = wrong - (whole.data + kGuard);
    throw Error(fmt::format("poison: a block of {} ({}) {}, at byte {}",
                            format_bytes(whole.requested - 2 * kGuard), to_string(whole.role), what,
                            offset));
  }

  Bytes quarantine_limit_;
  std::unordered_map<Address, Block>
      live_;                // the whole blocks, by the address returned to the caller
  std::deque<Block> kept_;  // freed, oldest first
  Bytes kept_bytes_ = 0;
  Bytes requested_ = 0;
  Bytes allocated_ = 0;
};

const bool poison_is_registered = Registry<AllocatorAdaptor>::instance().add(
    {.name = "poison",
     .summary = "Detects writes out of bounds and after a free on host: guard bytes around every "
                "block, filled blocks, and freed blocks that are held back (quarantine=, 1MiB)",
     .parameters = {"quarantine"},
     .examples = {"poison|caching", "poison(quarantine=0)|bfc"},
     .create = create_adaptor<Poison>});

}  // namespace
}  // namespace headroom
