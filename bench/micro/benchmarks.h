// Benchmarks that use registered plug-ins, and so cannot register themselves before main: the
// plug-ins may not have done so yet.
#pragma once

namespace headroom {

void register_allocator_benchmarks();
void register_convolution_benchmarks();
void register_trace_benchmarks();

}  // namespace headroom
