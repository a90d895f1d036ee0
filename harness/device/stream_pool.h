// Memory that the device's driver allocates block by block in stream order (cudaMallocAsync): the
// only allocator whose decisions Headroom does not make.
#pragma once

#include <cstddef>

#include "harness/base/units.h"

namespace headroom {

struct StreamPoolOptions {
  Bytes release_threshold = 0;  // idle bytes kept when the stream is synchronised
  // Whether memory freed on one stream may be reused on another one, which is the driver's default.
  enum class Reuse { any_stream, same_stream } reuse = Reuse::any_stream;
};

class StreamPool {
 public:
  virtual ~StreamPool() = default;  // gives everything back
  // Returns null when the pool has no room and cannot grow. Aligned to 256 bytes.
  virtual std::byte* take(Bytes bytes) = 0;
  virtual void give(std::byte* data) = 0;
  // Returns idle memory to the device until no more than `keep` is held.
  virtual void trim(Bytes keep) = 0;
  // Bytes that the pool holds of the device, in use or idle, according to the driver.
  virtual Bytes held() const = 0;
};

}  // namespace headroom
