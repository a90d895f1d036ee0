// arena: RMM's arena_memory_resource. Every stream has an arena that cuts blocks from superblocks
// of at least 256 KiB, which it borrows from a global arena and returns, after waiting for the
// stream, as soon as a merged free block is that large again; both arenas serve the lowest block
// that fits. A block returns to the arena it came from, whichever stream frees it. Before a request
// is refused, all streams are waited for and all arenas give everything free back. Rules:
// include/rmm/mr/device/detail/arena.hpp of rapidsai/rmm at 0390808, arena_memory_resource.hpp at
// 03696b5. Cost: a scan of the free blocks per allocation, as in the original; memory: the device,
// from the second growth on.
//
// The original leaves 64 MiB to the device; here it is at most 1/16 of the device, so that small
// devices work. The first segment is allocated at the first request.
#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "harness/base/registry.h"
#include "strategies/allocator/parts/chunked_allocator.h"

namespace headroom {
namespace {

class Arena final : public ChunkedAllocator {
 public:
  Arena(const Spec& spec, DeviceMemory& memory)
      : ChunkedAllocator(spec.to_string(), memory),
        superblock_(align_up(spec.bytes("superblock", 256 * kKiB), kBlockAlignment)),
        maximum_(align_down(memory.capacity() - std::min(64 * kMiB, memory.capacity() / 16),
                            kBlockAlignment)),
        initial_(align_down(std::min(maximum_, spec.bytes("initial", memory.capacity() / 2)),
                            kBlockAlignment)) {
    if (superblock_ == 0 || initial_ == 0)
      throw InputError(spec.to_string() + ": superblock and initial must be above 0");
  }

  Block allocate(Bytes bytes, const AllocationHint& hint) override {
    if (bytes == 0) return {};
    if (bytes > maximum_) throw_out_of_memory(bytes);  // too large to be rounded up
    const Bytes size = align_up(bytes, kBlockAlignment);
    const Owner mine = hint.stream + 1U;
    if (mine >= free_.size()) free_.resize(mine + 1);
    Handle handle = serve(mine, size);
    if (handle == kNone) {
      defragment();
      handle = serve(mine, size);
    }
    if (handle == kNone) throw_out_of_memory(bytes);
    return hand_out(handle, bytes);
  }

  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    const Handle freed = take_back(block);
    const Owner mine = chunk(freed).tag;
    const Handle merged = merge(mine, freed);
    if (chunk(merged).size < superblock_) return add(mine, merged);
    add(kGlobal, merge(kGlobal, merged));
  }

  void trim() override {
    for (const Handle segment : idle_segments()) {
      free_[chunk(segment).tag].erase(chunk(segment).address);
      free_segment(segment);
    }
  }

 private:
  using Owner = std::uint32_t;  // a chunk's tag: the global arena or a stream's
  static constexpr Owner kGlobal = 0;

  Bytes largest_free() const override {
    Bytes largest = 0;
    for (const auto& blocks : free_) {
      for (const auto& [address, handle] : blocks) largest = std::max(largest, chunk(handle).size);
    }
    return largest;
  }

  Handle serve(Owner mine, Bytes size) {
    if (size < superblock_) {
      if (const Handle handle = first_fit(mine, size); handle != kNone) return handle;
    }
    const Handle borrowed = borrow(std::max(size, superblock_));
    if (borrowed == kNone) return kNone;
    add(mine, merge(mine, borrowed));
    return first_fit(mine, size);
  }

  void defragment() {
    for (Owner owner = kGlobal + 1; owner < free_.size(); ++owner) {
      const std::map<Address, Handle> blocks = std::exchange(free_[owner], {});
      for (const auto& [address, handle] : blocks) add(kGlobal, merge(kGlobal, handle));
    }
  }

  // Takes the lowest block that holds `size` out of the index and splits off the rest.
  Handle first_fit(Owner owner, Bytes size) {
    const auto found =
        std::find_if(free_[owner].begin(), free_[owner].end(),
                     [&](const auto& free) { return chunk(free.second).size >= size; });
    if (found == free_[owner].end()) return kNone;
    const Handle handle = found->second;
    free_[owner].erase(found);
    if (chunk(handle).size > size) add(owner, split(handle, size));
    return handle;
  }

  Handle borrow(Bytes size) {
    if (const Handle found = first_fit(kGlobal, size); found != kNone) return found;
    const Bytes left = maximum_ - std::min(maximum_, held());
    if (size > left) return kNone;
    const Handle grown = add_segment(held() == 0 ? std::max(initial_, size) : left);
    if (grown == kNone) return kNone;
    add(kGlobal, grown);
    return first_fit(kGlobal, size);
  }

  // Merges with free neighbours of that owner, which are removed from the index.
  Handle merge(Owner owner, Handle handle) {
    chunk(handle).tag = owner;
    const auto joins = [&](Handle other) { return is_free(other) && chunk(other).tag == owner; };
    if (const Handle next = chunk(handle).next; joins(next)) {
      free_[owner].erase(chunk(next).address);
      absorb_next(handle);
    }
    if (const Handle previous = chunk(handle).previous; joins(previous)) {
      free_[owner].erase(chunk(previous).address);
      absorb_next(previous);
      handle = previous;
    }
    return handle;
  }

  void add(Owner owner, Handle handle) {
    chunk(handle).tag = owner;
    free_[owner].emplace(chunk(handle).address, handle);
  }

  Bytes superblock_;
  Bytes maximum_;
  Bytes initial_;
  std::vector<std::map<Address, Handle>> free_{1};  // by owner
};

const bool arena_is_registered = Registry<AllocatorStrategy>::instance().add(
    {.name = "arena",
     .summary = "RMM's arena: cuts blocks, first fit, from superblocks of 256 KiB and more; free "
                "superblocks return to a global arena. Takes half of the device at once "
                "(initial=), then all of it",
     .parameters = {"initial", "superblock"},
     .examples = {"arena", "arena(superblock=1MiB)"},
     .linear_because = "it imitates RMM's first fit, a scan of the free blocks by address",
     .create = create_strategy<Arena>});

}  // namespace
}  // namespace headroom
