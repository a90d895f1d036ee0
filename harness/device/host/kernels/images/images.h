// Images as loops of our own read them, in whatever blocks of channels they come.
#pragma once

#include <cstdint>

#include "harness/program/onednn/layout.h"
#include "harness/program/program.h"

namespace headroom::host {

using onednn::ImageLayout;

// Channels, so that what belongs to one block fits on the stack.
inline constexpr std::int64_t kLargestBlock = 64;

// Of an operand of `op`. Throws Error where it lies otherwise, which lowering does not let happen.
ImageLayout image_layout(const Op& op, const Value& value);

}  // namespace headroom::host
