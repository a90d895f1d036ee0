// Micro-benchmarks of the instrument and of every strategy. Example:
//   build/bench/micro/micro_benchmarks --benchmark_filter='allocators/.*bfc'
#include <benchmark/benchmark.h>

#include "bench/micro/benchmarks.h"
#include "bench/micro/peers.h"

int main(int argc, char** argv) {
  headroom::make_room_for_peers(argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  headroom::register_allocator_benchmarks();
  headroom::register_convolution_benchmarks();
  headroom::register_trace_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
