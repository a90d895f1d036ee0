// Runs a captured Program (harness/program/captured.h): every operand has its place before the
// first run, so that a run asks no strategy for anything and keeps no books. On the host the ops
// are called with operands found once; a device that can capture (harness/device/capture.h) replays
// them whole.
#pragma once

#include <memory>
#include <vector>

#include "harness/device/capture.h"
#include "harness/execution/capture_pools.h"
#include "harness/execution/executor.h"
#include "harness/execution/program_run.h"

namespace headroom {

class CapturedRun final : public ProgramRun {
 public:
  // As of the Executor; `place` must outlive this, too.
  CapturedRun(const Program& lowered, CompiledProgram* compute, const CapturePools::Place& place,
              const PersistentBlocks& persistent);

  void run(const Transfer& feed, const Transfer& read,
           const std::function<void()>& fed = nullptr) override;
  void feed_ahead(const Transfer& feed) override;
  std::string why_not_engaged() const override;

 private:
  const Program& program_;
  std::vector<std::byte*> data_;                // by value; null on meta
  std::vector<std::vector<std::byte*>> lists_;  // that buffers_ look into
  std::vector<OpBuffers> buffers_;              // of every op
  std::unique_ptr<CapturedProgram> captured_;   // null on devices that compute nothing
  int runs_ = 0;
};

}  // namespace headroom
