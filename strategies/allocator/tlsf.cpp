// tlsf: two-level segregated fit (Masmano, Ripoll, Crespo, Real, ECRTS 2004, doi
// 10.1109/EMRTS.2004.1311009). Free blocks are kept in lists, 32 per power of two; two bitmaps find
// the first list in which every block is large enough. Cost: constant, independent of the live
// blocks; memory: good fit, not best fit, since blocks in the request's own list are skipped even
// if they fit.
#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include "harness/base/registry.h"
#include "strategies/allocator/parts/growing_regions.h"

namespace headroom {
namespace {

class Tlsf final : public GrowingRegions {
 public:
  Tlsf(const Spec& spec, DeviceMemory& memory) : GrowingRegions(spec, memory) {}

  Block allocate(Bytes bytes, const AllocationHint&) override {
    if (bytes == 0) return {};
    if (bytes > memory_.capacity()) throw_out_of_memory(bytes);  // too large to be rounded up
    const Bytes size = align_up(bytes, kBlockAlignment);
    Handle handle = find(size);
    if (handle == kNone) handle = add_region(size);
    if (handle == kNone) throw_out_of_memory(bytes);
    if (chunk(handle).size > size) add(split(handle, size));
    return hand_out(handle, bytes);
  }

  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    add(coalesce(take_back(block), [this](Handle free) { forget(free); }));
  }

 private:
  static constexpr int kStepBits = 5;
  static constexpr std::size_t kSteps = 1 << kStepBits;
  static constexpr std::size_t kPowers = 64;

  struct List {
    std::size_t power, step;
  };

  // Sizes are at least 256 bytes, so there are always enough bits for the steps.
  static List list_of(Bytes size) {
    const auto power = static_cast<std::size_t>(std::bit_width(size)) - 1;
    return {power, static_cast<std::size_t>(size >> (power - kStepBits)) & (kSteps - 1)};
  }

  // Takes the head of the first list in which every block has at least `size`.
  Handle find(Bytes size) {
    const Bytes step = Bytes{1} << (std::bit_width(size) - 1 - kStepBits);
    List list = list_of(size + step - 1);
    std::uint32_t steps = steps_used_[list.power] & (~std::uint32_t{0} << list.step);
    if (steps == 0) {
      const std::uint64_t powers =
          list.power + 1 == kPowers ? 0 : powers_used_ & (~std::uint64_t{0} << (list.power + 1));
      if (powers == 0) return kNone;
      list.power = static_cast<std::size_t>(std::countr_zero(powers));
      steps = steps_used_[list.power];
    }
    list.step = static_cast<std::size_t>(std::countr_zero(steps));
    const Handle handle = heads_[list.power][list.step];
    forget(handle);
    return handle;
  }

  void add(Handle handle) {
    const List list = list_of(chunk(handle).size);
    Handle& head = heads_[list.power][list.step];
    chunk(handle).previous_in_list = kNone;
    chunk(handle).next_in_list = head;
    chunk(head).previous_in_list = handle;
    head = handle;
    steps_used_[list.power] |= std::uint32_t{1} << list.step;
    powers_used_ |= std::uint64_t{1} << list.power;
  }

  void forget(Handle handle) override {
    const Handle previous = chunk(handle).previous_in_list;
    const Handle next = chunk(handle).next_in_list;
    chunk(next).previous_in_list = previous;
    if (previous != kNone) {
      chunk(previous).next_in_list = next;
      return;
    }
    const List list = list_of(chunk(handle).size);
    heads_[list.power][list.step] = next;
    if (next != kNone) return;
    steps_used_[list.power] &= ~(std::uint32_t{1} << list.step);
    if (steps_used_[list.power] == 0) powers_used_ &= ~(std::uint64_t{1} << list.power);
  }

  Bytes largest_free() const override {
    if (powers_used_ == 0) return 0;
    const auto power = static_cast<std::size_t>(std::bit_width(powers_used_)) - 1;
    const auto step = static_cast<std::size_t>(std::bit_width(steps_used_[power])) - 1;
    Bytes largest = 0;
    for (Handle handle = heads_[power][step]; handle != kNone; handle = chunk(handle).next_in_list)
      largest = std::max(largest, chunk(handle).size);
    return largest;
  }

  std::uint64_t powers_used_ = 0;
  std::array<std::uint32_t, kPowers> steps_used_{};
  std::array<std::array<Handle, kSteps>, kPowers> heads_{};
};

const bool tlsf_is_registered = Registry<AllocatorStrategy>::instance().add(
    {.name = "tlsf",
     .summary = "Two-level segregated fit: constant time and a good fit. Regions of 64 MiB "
                "(region=); idle regions are given back when memory runs short",
     .parameters = {"region"},
     .examples = {"tlsf", "tlsf(region=8MiB)"},
     .create = create_strategy<Tlsf>});

}  // namespace
}  // namespace headroom
