// round: rounds every request up to a multiple of a size: the effect of a large minimum block on
// the strategy behind. TensorFlow's BFC cuts blocks in multiples of 256 bytes (bfc_allocator.h,
// kMinAllocationBits), PyTorch's caching allocator of 512 (kMinBlockSize); this tests advice to
// raise that to 1 MiB. Cost: an addition per request, and the rounding.
#include <fmt/format.h>

#include <limits>

#include "harness/base/registry.h"
#include "harness/device/poison.h"
#include "strategies/allocator/adaptors/forwarding_allocator.h"

namespace headroom {
namespace {

class Round final : public ForwardingAllocator {
 public:
  Round(const Spec& spec, std::unique_ptr<Allocator> inner, const DeviceMemory& memory)
      : ForwardingAllocator(std::move(inner), memory), to_(spec.bytes("to", 0)) {
    if (to_ == 0) throw InputError("round: give the bytes, as in round(to=1MiB)|bfc");
  }

  Block allocate(Bytes bytes, const AllocationHint& hint) override {
    if (bytes > std::numeric_limits<Bytes>::max() - to_) refuse(bytes, "round");
    Block block = inner().allocate(align_up(bytes, to_), hint);
    const Bytes added = block.requested - bytes;
    block.requested = bytes;  // the rest counts as the strategy's rounding
    if (added > 0 && block.data != nullptr) poison(block.data + bytes, added);
    requested_ += bytes;
    return block;
  }

  void deallocate(const Block& block) override {
    const Block whole = rounded(block);
    if (block.data != nullptr)
      unpoison(block.data + block.requested, whole.requested - block.requested);
    inner().deallocate(whole);
    requested_ -= block.requested;
  }

  void record_stream(const Block& block, StreamId stream) override {
    inner().record_stream(rounded(block), stream);
  }

  AllocatorStatistics statistics() const override {
    AllocatorStatistics result = inner().statistics();
    result.requested = requested_;
    return result;
  }

 private:
  // The block as the strategy behind served it.
  Block rounded(Block block) const {
    block.requested = align_up(block.requested, to_);
    return block;
  }

  Bytes to_;
  Bytes requested_ = 0;  // live bytes before rounding
};

const bool round_is_registered = Registry<AllocatorAdaptor>::instance().add(
    {.name = "round",
     .summary = "Rounds the size of every request up to a multiple of to= bytes, which sets a "
                "minimum block size",
     .parameters = {"to"},
     .examples = {"round(to=4KiB)|bfc"},
     .create = create_adaptor<Round>});

}  // namespace
}  // namespace headroom
