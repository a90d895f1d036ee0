// align: every block starts at a multiple of to= bytes, for uses that need more than the 256 that
// all strategies guarantee: pages of 4 KiB, rows of 512. As in RMM's aligned_resource_adaptor
// (include/rmm/mr/device/aligned_resource_adaptor.hpp), a request is enlarged by the largest
// possible padding, and the block begins at the first aligned address. Cost: to= minus 256 bytes
// per block, which XLA's BFC (padding split off in bfc_allocator.cc) can give to other blocks
// instead.
#include <fmt/format.h>

#include <bit>
#include <limits>
#include <unordered_map>

#include "harness/base/registry.h"
#include "harness/device/poison.h"
#include "strategies/allocator/adaptors/forwarding_allocator.h"

namespace headroom {
namespace {

constexpr Bytes kMostAlignment = 4 * kKiB;  // a page: guaranteed for segments on every device

class Align final : public ForwardingAllocator {
 public:
  Align(const Spec& spec, std::unique_ptr<Allocator> inner, const DeviceMemory& memory)
      : ForwardingAllocator(std::move(inner), memory), to_(spec.bytes("to", 0)) {
    if (to_ == 0) throw InputError("align: give the bytes, as in align(to=4KiB)|bfc");
    if (!std::has_single_bit(to_) || to_ > kMostAlignment)
      throw InputError(fmt::format("align: to={} must be a power of two of at most {}",
                                   spec.text("to", ""), format_bytes(kMostAlignment)));
  }

  Block allocate(Bytes bytes, const AllocationHint& hint) override {
    if (bytes == 0) return {};
    if (bytes > std::numeric_limits<Bytes>::max() - slack()) refuse(bytes, "align");
    const Block whole = allocate_enlarged(bytes, bytes + slack(), hint);
    const Bytes skipped = align_up(whole.address, to_) - whole.address;
    Block block = whole;
    block.address += skipped;
    if (block.data != nullptr) {
      block.data += skipped;
      check_data(whole, block);
      poison(whole.data, skipped);
      poison(block.data + bytes, whole.requested - skipped - bytes);
    }
    block.requested = bytes;
    block.size -= skipped;
    live_.emplace(block.address, whole);
    requested_ += bytes;
    allocated_ += block.size;
    return block;
  }

  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    inner().deallocate(whole_of(block));
    live_.erase(block.address);
    requested_ -= block.requested;
    allocated_ -= block.size;
  }

  void record_stream(const Block& block, StreamId stream) override {
    if (block.size > 0) inner().record_stream(whole_of(block), stream);
  }

  AllocatorStatistics statistics() const override {
    AllocatorStatistics result = inner().statistics();
    result.requested = requested_;
    result.allocated = allocated_;
    return result;
  }

 private:
  Bytes slack() const { return to_ > kBlockAlignment ? to_ - kBlockAlignment : 0; }

  // This requires that logical addresses and data pointers of segments have the same alignment.
  void check_data(const Block& whole, const Block& block) {
    if (reinterpret_cast<std::uintptr_t>(block.data) % to_ == 0) return;
    inner().deallocate(whole);
    throw NotSupported(
        fmt::format("align: this device's segments are not aligned to {}", format_bytes(to_)));
  }

  const Block& whole_of(const Block& block) const {
    const auto found = live_.find(block.address);
    if (found == live_.end()) throw Error("align: a block is not live");
    return found->second;
  }

  Bytes to_;
  std::unordered_map<Address, Block> live_;  // as the strategy served them, by aligned address
  Bytes requested_ = 0;
  Bytes allocated_ = 0;
};

const bool align_is_registered = Registry<AllocatorAdaptor>::instance().add(
    {.name = "align",
     .summary = "Starts every block at a multiple of to= bytes, a power of two up to 4KiB, by "
                "requesting that many bytes more (RMM's rules)",
     .parameters = {"to"},
     .examples = {"align(to=4KiB)|caching"},
     .create = create_adaptor<Align>});

}  // namespace
}  // namespace headroom
