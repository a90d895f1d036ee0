// The known contents of the virtual devices' memory. Kernels do nothing, so their results are
// unknown. Small copies to a device are kept and read back as they were written, because frameworks
// need them for shapes, seeds and the like. Unknown bytes read as zero, unless
// read_unknown_ones() was called.
#pragma once

#include <cstddef>

namespace headroom::virtual_gpu {

// Copies above this size are not kept, except by keep_contents().
inline constexpr std::size_t kKeptBytes = 64u << 10;

// Either address may be on a device or on the host.
void copy(void* to, const void* from, std::size_t bytes);
// Lets the next `count` copies to the host, in this thread, of one unknown byte each give 1.
void read_unknown_ones(int count);
void fill(void* to, unsigned char value, std::size_t bytes);
bool is_known(const void* address, std::size_t bytes);
// Copies from a device to the host if all of these bytes are known. Returns whether they are.
bool copy_known(void* to, const void* from, std::size_t bytes);
// Keeps the contents of a device's memory, of whatever size, although nothing is copied there now.
void keep_contents(const void* address, std::size_t bytes, const void* contents);
void forget_contents(const void* address, std::size_t bytes);
// Forgets a result of unknown length: all of the copy in which it begins. Copies behind it that are
// older are not read together with it.
void forget_result(const void* address);

}  // namespace headroom::virtual_gpu
