// The host's computation: oneDNN primitives and a few loops over memory that the caller provides.
// Nothing here allocates tensor memory; scratchpads are the Program's workspace values.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "harness/device/device.h"

namespace headroom {

// Throws InputError when the Program was not lowered under the onednn rules of this process.
// `lowered` need not outlive this call.
std::unique_ptr<CompiledProgram> compile_for_host(const Program& lowered);

// Convert between plain row-major contents and the value's own layout. `device` holds value.bytes.
void write_value(const Value& value, std::byte* device, std::span<const std::byte> plain);
void read_value(const Value& value, const std::byte* device, std::span<std::byte> plain);

}  // namespace headroom
