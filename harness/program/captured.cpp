#include "harness/program/captured.h"

namespace headroom {
namespace {

constexpr const char* kCaptured = "captured_into";

}  // namespace

Program capture(Program lowered, CapturePool pool) {
  lowered.ops.at(0).attributes[kCaptured] = static_cast<std::int64_t>(pool);
  return lowered;
}

std::optional<CapturePool> captured_into(const Program& program) {
  if (program.ops.empty() || !program.ops[0].attributes.contains(kCaptured)) return std::nullopt;
  return static_cast<CapturePool>(program.ops[0].integer(kCaptured));
}

}  // namespace headroom
