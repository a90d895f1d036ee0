// Executes a captured Program (harness/program/captured.h). Every operand has its place before the
// first execution, which therefore makes no allocations and keeps no books. On the host, ops are
// called with operands looked up once; a device that can capture (harness/device/capture.h) replays
// the whole Program.
#pragma once

#include <memory>
#include <vector>

#include "harness/device/capture.h"
#include "harness/execution/capture_pools.h"
#include "harness/execution/executor.h"
#include "harness/execution/program_executor.h"

namespace headroom {

class CapturedExecutor final : public ProgramExecutor {
 public:
  // Arguments as for the Executor; `place` must outlive this, too.
  CapturedExecutor(const Program& lowered, CompiledProgram* compute,
                   const CapturePools::Place& place, const PersistentBlocks& persistent);

  void run(const Transfer& feed, const Transfer& read,
           const std::function<void()>& fed = nullptr) override;
  void feed_ahead(const Transfer& feed) override;
  Reason why_not_engaged() const override;

 private:
  const Program& program_;
  std::vector<std::byte*> data_;                // by value; null on meta
  std::vector<std::vector<std::byte*>> lists_;  // storage that buffers_ points into
  std::vector<OpBuffers> buffers_;              // of every op
  std::unique_ptr<CapturedProgram> captured_;   // null on devices that compute nothing
  int executions_ = 0;
};

}  // namespace headroom
