#pragma once

namespace headroom {

// Says what a figure depends on: the device it was measured on, the rules of the allocator alone,
// or an engine's software, which behaves the same on every device.
enum class DependsOn { device, allocator, software };

}  // namespace headroom
