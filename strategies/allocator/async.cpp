// async: CUDA's stream-ordered allocator (cudaMallocAsync). On cuda it is the driver's own
// (driver_pool.cpp). On other devices it is the model of gpu_driver/driver_pool.h, which repeats
// what an H200's driver was measured to do: chunks of 32 MiB that move to where a block needs
// them, and freed memory above the release threshold given back when the device is synchronised;
// the threshold is 0 unless set. Not modelled: the driver also notices without being asked that
// work has ended, and reuses memory earlier. Cost: with the default threshold every step takes its
// memory from the system again.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/poison.h"
#include "harness/gpu_driver/driver_pool.h"
#include "strategies/allocator/driver_pool.h"

namespace headroom {
namespace {

constexpr Bytes kChunk = DriverPool::kChunk;

class Async final : public Allocator {
 public:
  Async(const Spec& spec, DeviceMemory& memory)
      : name_(spec.to_string()),
        memory_(memory),
        place_(reserve(memory)),
        pool_(place_.address, place_.size,
              {.take = [this](Bytes offset) { return take_chunk(offset); },
               .give_back = [this](Bytes offset) { memory_.unmap(place_, offset, kChunk); },
               .move = [this](Bytes from, Bytes to) { move_chunk(from, to); }}) {
    pool_.set_release_threshold(spec.bytes("release_threshold", 0));
  }

  ~Async() override {
    pool_.give_back_all();
    memory_.unreserve(place_);
  }

  Block allocate(Bytes bytes, const AllocationHint&) override {
    if (bytes == 0) return {};
    Address address = pool_.take(bytes);
    if (address == 0) {
      trim();
      address = pool_.take(bytes);
    }
    if (address == 0) refuse_request(bytes, memory_, statistics(), name_);
    const Block block{.address = address,
                      .requested = bytes,
                      .size = align_up(bytes, DriverPool::kAlignment),
                      .data = data_at(address - place_.address)};
    unpoison(block.data, bytes);
    statistics_.requested += bytes;
    statistics_.allocated += block.size;
    ++statistics_.live_blocks;
    return block;
  }

  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    if (!pool_.give_back(block.address))
      throw Error(name_ + ": a block was freed that is not live");
    poison(block.data, block.size);
    statistics_.requested -= block.requested;
    statistics_.allocated -= block.size;
    --statistics_.live_blocks;
  }

  AllocatorStatistics statistics() const override {
    AllocatorStatistics result = statistics_;
    result.reserved = pool_.held_bytes();
    result.segments = pool_.held_bytes() / kChunk;
    result.largest_free = pool_.largest_hole();
    return result;
  }

  void trim() override { pool_.trim_to(0); }
  void synchronized() override { pool_.synchronise(); }

 private:
  // Gaps between blocks take addresses, too, so there are more of them than the device has memory.
  static Reservation reserve(DeviceMemory& memory) {
    constexpr Bytes kMost = Bytes{16} << 40;  // four times this is half of what a process has
    return memory.reserve(align_up(4 * std::min(memory.capacity(), kMost), kChunk), kChunk);
  }

  std::byte* data_at(Bytes offset) const {
    return place_.data == nullptr ? nullptr : place_.data + offset;
  }

  bool take_chunk(Bytes offset) {
    try {
      memory_.map(place_, offset, kChunk);
    } catch (const OutOfMemory&) {
      return false;
    }
    poison(data_at(offset), kChunk);
    return true;
  }

  void move_chunk(Bytes from, Bytes to) {
    memory_.move(place_, from, place_, to, kChunk);
    poison(data_at(to), kChunk);
  }

  std::string name_;
  DeviceMemory& memory_;
  Reservation place_;
  DriverPool pool_;
  AllocatorStatistics statistics_;
};

StreamPoolOptions options_of(const Spec& spec) {
  StreamPoolOptions options{.release_threshold = spec.bytes("release_threshold", 0)};
  const std::string reuse = spec.text("reuse", "any_stream");
  if (reuse == "same_stream")
    options.reuse = StreamPoolOptions::Reuse::same_stream;
  else if (reuse != "any_stream")
    throw_unknown_name("value of reuse", reuse, {"any_stream", "same_stream"});
  return options;
}

std::unique_ptr<Allocator> create(const Spec& spec, DeviceMemory& memory) {
  if (auto pool = memory.make_stream_pool(options_of(spec)))
    return make_driver_pool_allocator(memory, std::move(pool));
  if (spec.has("reuse"))
    throw NotSupported(spec.to_string() +
                       ": reuse= is an attribute of the driver's own pool, which only cuda has; "
                       "the model knows one stream. Leave it out here");
  if (!memory.has_virtual_memory() || kChunk % memory.page() != 0)
    throw NotSupported(spec.to_string() +
                       ": the model maps chunks of 32 MiB, which needs a device with virtual "
                       "memory and a granule of at most 32 MiB that is a power of two");
  return std::make_unique<Async>(spec, memory);
}

const bool async_is_registered = Registry<AllocatorStrategy>::instance().add(
    {.name = "async",
     .summary =
         "cudaMallocAsync: the driver's own on cuda, elsewhere a model of what an H200's driver "
         "did. Chunks of 32 MiB move to where a block needs them; memory above "
         "release_threshold= (default 0) is given back at the end of each step",
     .parameters = {"release_threshold", "reuse"},
     .examples = {"async", "async(release_threshold=1TiB)"},
     .settings = {"async", "async(release_threshold=1TiB)"},
     .create = create});

}  // namespace
}  // namespace headroom
