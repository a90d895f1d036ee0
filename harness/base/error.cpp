#include "harness/base/error.h"

#include <fmt/format.h>

#include <utility>

namespace headroom {

OutOfMemory::OutOfMemory(OutOfMemoryReport report)
    : Error(fmt::format("out of memory: no room for {} under {}; capacity {}, reserved {}, in use "
                        "{}, free inside {}, largest hole {}",
                        format_bytes(report.requested_bytes), report.allocator,
                        format_bytes(report.capacity_bytes), format_bytes(report.reserved_bytes),
                        format_bytes(report.allocated_bytes), format_bytes(report.free_bytes),
                        format_bytes(report.largest_free_bytes))),
      report_(std::move(report)) {}

OutOfMemory::OutOfMemory(const std::string& why) : Error("out of memory: " + why) {}

}  // namespace headroom
