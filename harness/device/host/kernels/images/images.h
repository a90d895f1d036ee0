// Images as Headroom's own loops read them, with any channel blocking.
#pragma once

#include <cstdint>

#include "harness/program/onednn/layout.h"
#include "harness/program/program.h"

namespace headroom::host {

using onednn::ImageLayout;

// Limit on the channels of a block, so that the data of one block fits on the stack.
inline constexpr std::int64_t kLargestBlock = 64;

// Layout of an operand of `op`. Throws Error for any other layout, which lowering rules out.
ImageLayout image_layout(const Op& op, const Value& value);

}  // namespace headroom::host
