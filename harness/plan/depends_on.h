#pragma once

namespace headroom {

// What a figure depends on: the device it was taken on, the rules of the allocator alone, or the
// software of an engine, which is the same on every device.
enum class DependsOn { device, allocator, software };

}  // namespace headroom
