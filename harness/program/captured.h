// Programs that are captured once and replayed, as CUDA graphs are: all values they make have fixed
// addresses in memory that is reserved for them permanently. An execution pass sets this as an
// attribute of the first op; code that runs a Program obeys it.
#pragma once

#include <optional>

#include "harness/program/program.h"

namespace headroom {

// The owner of that memory: all captured Programs together, which never run at the same time, or
// this Program alone.
enum class CapturePool : std::uint8_t { shared, own };

// `lowered` must have ops, already in their final order.
Program capture(Program lowered, CapturePool pool);
// Absent when the Program is not captured.
std::optional<CapturePool> captured_into(const Program& program);

}  // namespace headroom
