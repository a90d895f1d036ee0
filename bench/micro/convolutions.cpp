// Measures how much a workspace speeds up a convolution on the host: one pass over each 3 × 3
// convolution of ResNet-18 for CIFAR and of ResNet-50, under a limit that only the direct algorithm
// meets and under practically no limit.
//   micro_benchmarks --benchmark_filter=convolutions --benchmark_enable_random_interleaving=true
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/micro/benchmarks.h"
#include "harness/device/host/host_kernels.h"
#include "harness/program/lowering/lowering.h"

namespace headroom {
namespace {

// The pass on operands in the layouts that the library prefers, filled with one value.
class Pass {
 public:
  Pass(const std::string& kind, std::int64_t images, std::int64_t channels, std::int64_t pixels,
       const std::string& limit) {
    const Shape image = {images, channels, pixels, pixels}, window = {channels, channels, 3, 3};
    Program program{.name = "pass"};
    ProgramBuilder build(program);
    const ValueId x = build.input("x", image, DType::f32), y = build.input("y", image, DType::f32);
    const ValueId w = build.input("w", window, DType::f32);
    const bool of_weights = kind == "convolution_backward_weights";
    build.emit_one(kind, "pass", of_weights ? std::vector{x, y} : std::vector{x, w},
                   {{"strides", Shape{1, 1}},
                    {"padding", Shape{1, 1, 1, 1}},
                    {"input_shape", image},
                    {"weight_shape", window}});
    PersistentLayouts layouts;
    program_ = lower(std::move(program), fmt::format("onednn(workspace_limit={})", limit), layouts);
    compiled_ = compile_for_host(program_);
    for (const Value& value : program_.values)
      storage_.emplace_back(value.bytes / sizeof(float), 0.5F);
    while (program_.ops[op_].kind != kind) ++op_;
    const Op& op = program_.ops[op_];
    for (const ValueId id : op.inputs) inputs_.push_back(bytes_of(id));
    for (const ValueId id : op.outputs) outputs_.push_back(bytes_of(id));
    if (op.workspace != kNoValue) workspace_ = bytes_of(op.workspace);
    workspace_bytes_ = op.workspace == kNoValue ? 0 : program_.value(op.workspace).bytes;
  }

  void run() { compiled_->run(op_, {inputs_, outputs_, workspace_}); }
  Bytes workspace_bytes() const { return workspace_bytes_; }

 private:
  std::byte* bytes_of(ValueId id) { return reinterpret_cast<std::byte*>(storage_[id].data()); }

  Program program_;
  std::unique_ptr<CompiledProgram> compiled_;
  std::vector<std::vector<float>> storage_;
  std::vector<std::byte*> inputs_, outputs_;
  std::byte* workspace_ = nullptr;
  Bytes workspace_bytes_ = 0;
  std::size_t op_ = 0;
};

void convolution(benchmark::State& state, const char* kind, const char* limit) {
  Pass pass(kind, state.range(0), state.range(1), state.range(2), limit);
  for (auto _ : state) pass.run();
  const auto flops = 2.0 * 9 * static_cast<double>(state.range(0) * state.range(1)) *
                     static_cast<double>(state.range(1) * state.range(2) * state.range(2));
  state.counters["flops_of_direct"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["workspace"] = benchmark::Counter(static_cast<double>(pass.workspace_bytes()), {},
                                                   benchmark::Counter::kIs1024);
}

void shapes(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t stage : {0, 1, 2, 3}) benchmark->Args({64, 64 << stage, 32 >> stage});
  for (const std::int64_t stage : {0, 1, 2, 3}) benchmark->Args({8, 64 << stage, 56 >> stage});
  benchmark->ArgNames({"images", "channels", "pixels"})->Unit(benchmark::kMillisecond);
  benchmark->UseRealTime();
}

}  // namespace

void register_convolution_benchmarks() {
  for (const auto& [pass, kind] :
       {std::pair{"forward", "convolution"}, std::pair{"data", "convolution_backward_data"},
        std::pair{"weights", "convolution_backward_weights"}})
    for (const auto& [algorithm, limit] : {std::pair{"direct", "0"}, std::pair{"winograd", "1GiB"}})
      shapes(benchmark::RegisterBenchmark(
          fmt::format("convolutions/{}/{}", pass, algorithm).c_str(), convolution, kind, limit));
}

}  // namespace headroom
