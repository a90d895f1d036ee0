// Images whose channels are innermost in memory: N, H, W, C. Their shape stays N, C, H, W, and they
// take as many bytes as row-major ones.
#pragma once

#include "harness/program/value.h"

namespace headroom {

inline constexpr const char* kChannelsLast = "nhwc";  // as Value::layout

inline bool is_channels_last(const Value& value) { return value.layout == kChannelsLast; }

}  // namespace headroom
