// Benchmarks that exist once per registered plug-in, and so cannot register themselves before
// main: the plug-ins may not have done so yet.
#pragma once

namespace headroom {

void register_allocator_benchmarks();

}  // namespace headroom
