// The seam every memory strategy implements: serve and take back blocks over DeviceMemory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/spec.h"
#include "harness/device/device_memory.h"
#include "harness/program/op.h"

namespace headroom {

// Which of the program's queues of work a block is for; numbered from 0 in order of appearance.
using StreamId = std::uint8_t;

struct Block {
  Address address = 0;        // logical; unique among live blocks
  Bytes requested = 0;        // bytes asked for
  Bytes size = 0;             // bytes taken (≥ requested)
  std::byte* data = nullptr;  // null on meta and for zero bytes
  // Private to whoever served the block; handed back unchanged on deallocate.
  std::uint32_t handle = 0;      // of the strategy: finds its book-keeping without a search
  std::uint32_t id = 0;          // of the RecordingAllocator: the block's number in the trace
  Role role = Role::activation;  // of the RecordingAllocator: what the hint said
  StreamId stream = 0;           // likewise
};

// What a strategy may use to place a block better. Never needed for correctness by a program that
// has one stream.
struct AllocationHint {
  Role role = Role::activation;
  Phase phase = Phase::initialize;
  std::uint32_t op = ~std::uint32_t{0};
  bool persistent = false;
  // Of the op, or of the value where no op runs: "layer1.0.conv1.backward_data". Its dotted parts
  // are modules. "" = unknown; valid during the call.
  std::string_view name = {};
  StreamId stream = 0;  // that the block is for, and whose work is done with it when it is freed
};

struct AllocatorStatistics {
  Bytes requested = 0;     // Σ requested of live blocks
  Bytes allocated = 0;     // Σ size of live blocks
  Bytes pending = 0;       // Σ size of freed blocks that wait for a stream
  Bytes reserved = 0;      // held from the device, as it charges them
  Bytes largest_free = 0;  // largest hole inside reserved
  std::uint64_t live_blocks = 0;
  std::uint64_t segments = 0;
  std::uint64_t splits = 0;
  std::uint64_t merges = 0;
};

// One allocating thread. Requests of zero bytes get a null block that costs nothing.
// Every block is aligned to 256 bytes, in logical address and in data.
class Allocator {
 public:
  virtual ~Allocator() = default;  // gives every segment back
  // Throws OutOfMemory, after which the allocator still serves what fits.
  virtual Block allocate(Bytes bytes, const AllocationHint& hint) = 0;
  // Takes the block as it was returned. Throws Error for one that is not live here.
  virtual void deallocate(const Block& block) = 0;
  virtual AllocatorStatistics statistics() const = 0;
  // Gives idle memory back to the device, as far as the strategy can (torch.cuda.empty_cache).
  virtual void trim() {}
  // The device has finished everything handed to it so far: the end of a step.
  virtual void synchronized() {}
  // The live block is used by one more stream: freed, it serves nobody before that stream has
  // reached the point of the free. Without effect where a strategy does not know streams.
  virtual void record_stream(const Block&, StreamId) {}
  // That stream has finished everything handed to it so far.
  virtual void stream_synchronized(StreamId) {}
  // What this strategy must have done for a result under its name to count ("" = engaged).
  // Asked after the run: growth must have grown, preallocation must hold its one segment.
  virtual std::string why_not_engaged() const { return ""; }
};

struct Trace;

struct AllocatorStrategy {
  static constexpr std::string_view kKind = "allocator";
  std::string name;
  std::string summary;                  // what it is, source, cost: one or two sentences
  std::vector<std::string> parameters;  // known keys
  std::vector<std::string> examples;    // specs that conformance tests and lists use
  // Specs that people choose between, for a comparison of all strategies: the name alone where
  // there are none.
  std::vector<std::string> settings = {};
  // Why the cost of an allocation grows faster than the logarithm of the blocks; "" = it does not.
  std::string linear_because = {};
  // Whether what one stream has freed is kept from all others. Where not, somebody must wait for
  // that stream first: the strategy, where its source says so, or the program.
  bool keeps_streams_apart = false;
  std::function<std::unique_ptr<Allocator>(const Spec&, DeviceMemory&)> create;
  // What the recorded run itself must show for a result under this name to count ("" = engaged):
  // asked beside the strategy, which speaks for itself in Allocator::why_not_engaged().
  std::function<std::string(const Spec&, const Trace&)> why_not_engaged = {};
};

// `create` of a strategy that is built from its spec and the memory.
template <typename Strategy>
std::unique_ptr<Allocator> create_strategy(const Spec& spec, DeviceMemory& memory) {
  return std::make_unique<Strategy>(spec, memory);
}

// Stands in front of a strategy, as in `limit(4GiB)|caching`: sees every request and every block,
// and passes them on.
struct AllocatorAdaptor {
  static constexpr std::string_view kKind = "allocator adaptor";
  // Builds what stands behind the adaptor over `memory`, anew with every call.
  using MakeInner = std::function<std::unique_ptr<Allocator>(DeviceMemory& memory)>;
  std::string name;
  std::string summary;
  std::vector<std::string> parameters;
  std::vector<std::string> examples;  // whole compositions, which conformance tests and lists use
  std::function<std::unique_ptr<Allocator>(const Spec&, const MakeInner&, DeviceMemory&)> create;
};

// `create` of an adaptor that is built from its spec, what stands behind it, and the memory.
template <typename Adaptor>
std::unique_ptr<Allocator> create_adaptor(const Spec& spec,
                                          const AllocatorAdaptor::MakeInner& make_inner,
                                          DeviceMemory& memory) {
  return std::make_unique<Adaptor>(spec, make_inner(memory), memory);
}

// Whether names and parameters are registered and stand in an order that works: adaptors first, one
// strategy last. Throws InputError that names the place.
void check_allocator(const Spec& spec);

// Builds the composition `spec` names over `memory`, after checking it.
std::unique_ptr<Allocator> make_allocator(const Spec& spec, DeviceMemory& memory);

// The examples of every strategy and every adaptor.
std::vector<std::string> allocator_examples();

}  // namespace headroom
