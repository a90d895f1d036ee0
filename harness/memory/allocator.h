// The interface of every memory strategy: it allocates and frees blocks on top of DeviceMemory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/spec.h"
#include "harness/device/device_memory.h"
#include "harness/program/op.h"

namespace headroom {

// The stream, or queue of work, that uses a block. Streams are numbered from 0 in order of first
// use.
using StreamId = std::uint8_t;

struct Block {
  Address address = 0;        // logical; unique among live blocks
  Bytes requested = 0;        // bytes requested
  Bytes size = 0;             // bytes used by the block (≥ requested)
  std::byte* data = nullptr;  // null on meta and for zero bytes
  // Private to the layer that set them; the caller passes them back unchanged on deallocate.
  std::uint32_t handle = 0;      // strategy: index into its own bookkeeping
  std::uint32_t id = 0;          // RecordingAllocator: the block's number in the trace
  Role role = Role::activation;  // RecordingAllocator: role from the hint
  StreamId stream = 0;           // RecordingAllocator: stream from the hint
};

// Optional information that helps a strategy place a block. A program with one stream is correct
// without it.
struct AllocationHint {
  Role role = Role::activation;
  Phase phase = Phase::initialize;
  std::uint32_t op = ~std::uint32_t{0};
  bool persistent = false;
  // Name of the op, or of the value when no op is running: "layer1.0.conv1.backward_data". The
  // dotted parts are modules. "" means unknown. Valid only during the call.
  std::string_view name = {};
  StreamId stream = 0;  // uses the block; has submitted all work on it when the block is freed
};

struct AllocatorStatistics {
  Bytes requested = 0;     // Σ requested of live blocks
  Bytes allocated = 0;     // Σ size of live blocks
  Bytes pending = 0;       // Σ size of freed blocks still waiting for a stream
  Bytes reserved = 0;      // obtained from the device, as the device charges it
  Bytes largest_free = 0;  // largest hole inside reserved
  std::uint64_t live_blocks = 0;
  std::uint64_t segments = 0;
  std::uint64_t splits = 0;
  std::uint64_t merges = 0;
};

// Used from one thread. A request of zero bytes returns a null block that costs nothing. Every
// block is aligned to 256 bytes, in its logical address and in data.
class Allocator {
 public:
  virtual ~Allocator() = default;  // returns every segment to the device
  // Throws OutOfMemory; afterwards the allocator can still serve requests that fit.
  virtual Block allocate(Bytes bytes, const AllocationHint& hint) = 0;
  // Frees a block exactly as allocate() returned it. Throws Error if it is not live here.
  virtual void deallocate(const Block& block) = 0;
  virtual AllocatorStatistics statistics() const = 0;
  // Returns idle memory to the device, as far as the strategy can (like torch.cuda.empty_cache).
  virtual void trim() {}
  // Called at the end of a step, when the device has finished all work submitted so far.
  virtual void synchronized() {}
  // Declares that one more stream uses this live block. After it is freed, it is not reused until
  // that stream has reached the point of the free. No effect in strategies that ignore streams.
  virtual void record_stream(const Block&, StreamId) {}
  // Called when that stream has finished all work submitted so far.
  virtual void stream_synchronized(StreamId) {}
  // Why a result under this strategy's name would not count. Asked after training: for example, a
  // growing strategy must have grown, and preallocation must hold exactly one segment.
  virtual Reason why_not_engaged() const { return std::nullopt; }
};

// Throws OutOfMemory for a request that `allocator`, with these statistics, cannot serve.
[[noreturn]] void refuse_request(Bytes bytes, const DeviceMemory& memory,
                                 const AllocatorStatistics& now, const std::string& allocator);

struct Trace;

struct AllocatorStrategy {
  static constexpr std::string_view kKind = "allocator";
  std::string name;
  // Says what the strategy is, its source and its cost, in one or two sentences.
  std::string summary;
  std::vector<std::string> parameters;  // known keys
  std::vector<std::string> examples;    // specs for conformance tests and lists
  // Specs that people choose between, for comparisons of all strategies. When empty, the bare name
  // is used.
  std::vector<std::string> settings = {};
  // Why an allocation costs more than O(log blocks); "" when it does not.
  std::string linear_because = {};
  // Whether memory freed by one stream is kept from all other streams. If not, the strategy (where
  // its source says so) or the program must wait for that stream before reuse.
  bool keeps_streams_apart = false;
  std::function<std::unique_ptr<Allocator>(const Spec&, DeviceMemory&)> create;
  // Checks the recorded trace: why a result under this name does not count.
  // Complements Allocator::why_not_engaged(), which asks the strategy itself.
  std::function<Reason(const Spec&, const Trace&)> why_not_engaged = {};
};

// Default `create` for a strategy that is constructed from its spec and the memory.
template <typename Strategy>
std::unique_ptr<Allocator> create_strategy(const Spec& spec, DeviceMemory& memory) {
  return std::make_unique<Strategy>(spec, memory);
}

// An adaptor in front of a strategy, as in `limit(4GiB)|caching`. It sees every request and every
// block and passes them on.
struct AllocatorAdaptor {
  static constexpr std::string_view kKind = "allocator adaptor";
  // Builds the allocator behind the adaptor over `memory`; each call builds a new one.
  using MakeInner = std::function<std::unique_ptr<Allocator>(DeviceMemory& memory)>;
  std::string name;
  std::string summary;
  std::vector<std::string> parameters;
  std::vector<std::string> examples;  // whole compositions, for conformance tests and lists
  std::function<std::unique_ptr<Allocator>(const Spec&, const MakeInner&, DeviceMemory&)> create;
};

// Default `create` for an adaptor that is constructed from its spec, the inner allocator factory
// and the memory.
template <typename Adaptor>
std::unique_ptr<Allocator> create_adaptor(const Spec& spec,
                                          const AllocatorAdaptor::MakeInner& make_inner,
                                          DeviceMemory& memory) {
  return std::make_unique<Adaptor>(spec, make_inner(memory), memory);
}

// Checks that names and parameters are registered and in a valid order: adaptors first, then one
// strategy. Throws InputError that names the place.
void check_allocator(const Spec& spec);

// Checks `spec` and builds the allocator that it names over `memory`.
std::unique_ptr<Allocator> make_allocator(const Spec& spec, DeviceMemory& memory);

// The examples of every strategy and every adaptor.
std::vector<std::string> allocator_examples();

}  // namespace headroom
