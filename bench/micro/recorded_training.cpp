#include "bench/micro/recorded_training.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "harness/base/error.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/trace_io.h"

namespace headroom {

Trace record_resnet50(int steps, std::uint64_t seed) {
  const Cell cell{.workload = Spec::parse("resnet(batch=8,depth=50,image=224,stem=imagenet)"),
                  .device = Spec::parse("meta(capacity=64GiB)"),
                  .rules = "dense",
                  .allocator = Spec("malloc"),
                  .warmup_steps = 1,
                  .measured_steps = steps};
  const auto path = std::filesystem::temp_directory_path() /
                    fmt::format("headroom-micro-{}{}", getpid(), kTraceExtension);
  const Sample sample = run_cell(cell, seed, path);
  if (sample.status != SampleStatus::ok)
    throw Error("the training to be replayed could not be recorded: " + sample.reason);
  Trace trace = read_trace(path);
  std::filesystem::remove(path);
  return trace;
}

}  // namespace headroom
