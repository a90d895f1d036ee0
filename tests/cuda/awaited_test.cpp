// Which ops wait for the copies that the CUDA device makes beside its kernels. The copy stream is
// as slow as possible: a copy arrives only when an op waits for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/cuda/module/awaited.h"
#include "harness/program/pass.h"
#include "harness/workload/workload.h"
#include "tests/unit/reference/reference.h"

namespace headroom {
namespace {

using cuda::awaited_copies;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

Program offloaded(const char* workload, const std::string& strategy) {
  return apply_pass<CheckpointingStrategy>(
      differentiate(make_workload(Spec::parse(workload))->training_forward()),
      Spec::parse(strategy));
}

// Returns the number of copies back.
std::size_t run_with_slow_copies(const Program& program) {
  const auto awaited = awaited_copies(program);
  std::set<ValueId> under_way;
  std::size_t copies = 0;
  for (std::size_t index = 0; index < program.ops.size(); ++index) {
    const Op& op = program.ops[index];
    for (const std::size_t copy : awaited[index])
      EXPECT_EQ(under_way.erase(program.ops[copy].outputs.front()), 1u)
          << op.name << " waits twice";
    for (const ValueId id : op.inputs)
      EXPECT_FALSE(under_way.contains(id)) << op.name << " reads what is not there yet";
    if (op.kind != "copy_in") continue;
    ++copies;
    under_way.insert(op.outputs.front());
  }
  EXPECT_THAT(under_way, IsEmpty());
  return copies;
}

TEST(AwaitedCopies, are_there_when_they_are_read) {
  std::mt19937_64 random(testing::test_seed());
  for (const char* workload : {"resnet(preset=tiny)", "bert(preset=tiny)", "gpt(preset=tiny)"})
    for (int round = 0; round < 4; ++round) {
      const std::string strategy = "offload(prefetch=" + std::to_string(random() % 40) + ")";
      SCOPED_TRACE(std::string(workload) + " " + strategy);
      EXPECT_GT(run_with_slow_copies(offloaded(workload, strategy)), 0u);
    }
}

// One copy back, then two ops that do not use it, then two that read it.
Program late_reader() {
  Program program{.name = "test"};
  ProgramBuilder build(program);
  const ValueId x = build.input("x", {4}, DType::f32);
  const ValueId back = build.emit_one("copy_in", "back", {build.emit_one("copy_out", "out", {x})});
  build.emit_one("relu", "other", {x});
  build.emit_one("relu", "another", {x});
  build.emit_one("add", "first", {back, back});
  build.emit_one("relu", "second", {back});
  return program;
}

TEST(AwaitedCopies, are_awaited_by_their_first_reader_only) {
  EXPECT_THAT(awaited_copies(late_reader()),
              ElementsAre(IsEmpty(), IsEmpty(), IsEmpty(), IsEmpty(), ElementsAre(1u), IsEmpty()));
}

TEST(AwaitedCopies, that_nobody_reads_are_refused) {
  Program program = late_reader();
  program.ops.resize(2);
  EXPECT_THAT([&] { awaited_copies(program); },
              ThrowsMessage<Error>(HasSubstr("no op reads what back copies back")));
}

}  // namespace
}  // namespace headroom
