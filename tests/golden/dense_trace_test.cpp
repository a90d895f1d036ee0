// Compares the trace of a small ResNet under dense rules with a stored file. It depends only on
// plain sizes and our own order of operations, so it is the same on every machine and with every
// library version. To update it after an intended change: HEADROOM_UPDATE_GOLDEN=1
// build/tests/golden/golden_tests
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/runner/run_cell.h"
#include "harness/trace/trace_io.h"

namespace headroom {
namespace {

std::string describe(const Trace& trace) {
  std::string text;
  for (const TraceEvent& event : trace.events) {
    if (event.step > 1) break;
    const std::string op = event.op < trace.op_names.size() ? trace.op_names[event.op] : "-";
    text += fmt::format("{} {} {} {} {} {} {:#x}\n", event.step, to_string(event.kind), op,
                        to_string(event.role), event.requested, event.size, event.address);
  }
  return text;
}

std::string dense_trace() {
  const Cell cell = {.workload = Spec::parse("resnet(depth=18,width=8,batch=2)"),
                     .device = Spec::parse("meta(capacity=1GiB)"),
                     .rules = "dense",
                     .allocator = Spec::parse("bfc(growth=on)"),
                     .warmup_steps = 1,
                     .measured_steps = 1};
  const auto path = std::filesystem::temp_directory_path() /
                    fmt::format("headroom-golden-{}.hrtrace", ::getpid());
  run_cell(cell, 1, path.string());
  const std::string text = describe(read_trace(path.string()));
  std::filesystem::remove(path);
  return text;
}

TEST(DenseTrace, of_a_small_resnet_under_growth_is_the_one_kept) {
  const std::filesystem::path kept =
      std::filesystem::path(GOLDEN_DIRECTORY) / "resnet18_dense_growth.txt";
  const std::string text = dense_trace();
  if (std::getenv("HEADROOM_UPDATE_GOLDEN") != nullptr) std::ofstream(kept) << text;
  std::ifstream file(kept);
  ASSERT_TRUE(file) << kept << " is missing";
  std::istringstream now(text);
  std::string expected;
  std::string actual;
  for (int line = 1; std::getline(file, expected); ++line) {
    ASSERT_TRUE(std::getline(now, actual)) << "the trace ends before line " << line;
    ASSERT_EQ(actual, expected) << "line " << line;
  }
  EXPECT_FALSE(std::getline(now, actual)) << "the trace goes on: " << actual;
}

}  // namespace
}  // namespace headroom
