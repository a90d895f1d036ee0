// What the virtual devices' memory is known to hold. Kernels do nothing, so a result is not known;
// what was copied to the device in small pieces is, and reads back as it was written. Frameworks
// need that for shapes, seeds and the like. Unknown bytes read as zero.
#pragma once

#include <cstddef>

namespace headroom::virtual_gpu {

// Copies above this size are not kept.
inline constexpr std::size_t kKeptBytes = 64u << 10;

// Any of the two may lie on a device or on the host.
void copy(void* to, const void* from, std::size_t bytes);
void fill(void* to, unsigned char value, std::size_t bytes);
// Copies from a device to the host if all of these bytes are known; returns whether they are.
bool copy_known(void* to, const void* from, std::size_t bytes);
void forget_contents(const void* address, std::size_t bytes);

}  // namespace headroom::virtual_gpu
