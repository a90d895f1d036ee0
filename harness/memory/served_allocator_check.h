// Which allocators can be served to a framework, which tells its allocator only sizes and streams.
#pragma once

#include "harness/base/spec.h"
#include "harness/base/units.h"

namespace headroom {

// Throws InputError for an allocator that is unknown or does not suit a device of `capacity`, and
// NotSupported for one that needs to know what frameworks do not tell.
void check_served_allocator(const Spec& spec, Bytes capacity);

}  // namespace headroom
