// Programs that are captured once and replayed, as CUDA graphs are: all they make on the way lies
// at fixed places of memory that is theirs for good. Set by an execution pass, followed by whoever
// runs a Program. An attribute of its first op.
#pragma once

#include <optional>

#include "harness/program/program.h"

namespace headroom {

// Whose that memory is: of all captured Programs, which never run at the same time, or the
// Program's own.
enum class CapturePool : std::uint8_t { shared, own };

// `lowered` has ops, in their final order.
Program capture(Program lowered, CapturePool pool);
// Absent where the Program is not captured.
std::optional<CapturePool> captured_into(const Program& program);

}  // namespace headroom
