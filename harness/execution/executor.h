// Runs a lowered Program op by op: allocates each op's outputs and workspace, computes, and frees
// values after their last use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/device/device.h"
#include "harness/execution/program_executor.h"
#include "harness/memory/allocator.h"
#include "harness/program/in_place.h"
#include "harness/program/program.h"
#include "harness/trace/recorder.h"

namespace headroom {

class Injection;

// Blocks of the values that live across steps, by name. The Programs of a Trainer share them.
using PersistentBlocks = std::map<std::string, Block>;

class Executor final : public ProgramExecutor {
 public:
  // `lowered` and `persistent` must outlive the Executor, and every persistent value of the Program
  // must have its block. `compute` is null on devices that compute nothing. `first_op` is the
  // number of the first op in traces. `host_side` allocates offloaded values; it is null if nothing
  // is offloaded.
  Executor(const Program& lowered, CompiledProgram* compute, Allocator& allocator,
           TraceRecorder& recorder, const PersistentBlocks& persistent,
           Injection* injection = nullptr, std::uint32_t first_op = 0,
           Allocator* host_side = nullptr);

  ~Executor() override;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // On OutOfMemory every transient block is freed before the exception propagates.
  void run(const Transfer& feed, const Transfer& read,
           const std::function<void()>& fed = nullptr) override;
  void feed_ahead(const Transfer& feed) override;

 private:
  void take_inputs(const Transfer& feed);
  void release_ahead();
  void allocate(ValueId id);
  void hand_over(ValueId from, ValueId to);
  void release(ValueId id);
  void release_all();
  Allocator& memory_of(ValueId id) { return on_host_[id] ? *host_side_ : allocator_; }
  void run_op(std::size_t index);

  const Program& program_;
  CompiledProgram* compute_;
  Allocator& allocator_;
  TraceRecorder& recorder_;
  std::uint32_t first_op_;
  std::vector<std::vector<ValueId>> frees_;       // values freed after each op
  std::vector<std::optional<InPlace>> in_place_;  // of each op
  std::vector<Block> blocks_;                     // by value id
  // Inputs fed for the next execution; empty if none.
  std::vector<Block> ahead_;
  std::vector<bool> held_;                    // whether a transient value has a block now
  std::vector<bool> on_host_;                 // by value id: offloaded
  AllocationHint hint_;                       // of the op that runs
  std::vector<std::byte*> inputs_, outputs_;  // of the op that runs
  Injection* injection_;                      // null in all cells but controls
  Allocator* host_side_;                      // null where nothing is offloaded
};

}  // namespace headroom
