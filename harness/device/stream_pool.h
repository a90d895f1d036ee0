// Memory that the device's own driver hands out block by block, in the order of the work on a
// stream (cudaMallocAsync): the one allocator of Headroom whose decisions are not its own.
#pragma once

#include <cstddef>

#include "harness/base/units.h"

namespace headroom {

struct StreamPoolOptions {
  Bytes release_threshold = 0;  // idle bytes kept when the stream is synchronised
  // What was freed on one stream may serve another one, as the driver does unless told otherwise.
  enum class Reuse { any_stream, same_stream } reuse = Reuse::any_stream;
};

class StreamPool {
 public:
  virtual ~StreamPool() = default;  // gives everything back
  // Null when the pool has no room and gets none. Aligned to 256 bytes.
  virtual std::byte* take(Bytes bytes) = 0;
  virtual void give(std::byte* data) = 0;
  // Gives idle memory back until no more than `keep` is held.
  virtual void trim(Bytes keep) = 0;
  // What it has from the device now, in use or idle, as the driver says.
  virtual Bytes held() const = 0;
};

}  // namespace headroom
