// Benchmarks that use registered plug-ins. They cannot register themselves before main, because the
// plug-ins may not be registered by then.
#pragma once

namespace headroom {

void register_allocator_benchmarks();
void register_convolution_benchmarks();
void register_trace_benchmarks();

}  // namespace headroom
