// Executes one lowered Program repeatedly: op by op with memory from the strategy (Executor), or
// captured, with memory of its own (CapturedExecutor).
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "harness/base/error.h"
#include "harness/program/program.h"

namespace headroom {

class ProgramExecutor {
 public:
  virtual ~ProgramExecutor() = default;
  // Runs the Program once. `feed` is called when the inputs have memory, `fed` when they are filled
  // and before the first op, and `read` while the results still have memory.
  using Transfer = std::function<void(ValueId, std::byte* data)>;
  virtual void run(const Transfer& feed, const Transfer& read,
                   const std::function<void()>& fed = nullptr) = 0;
  // Allocates and feeds the inputs of the next execution now; that execution does not feed them
  // again. They keep their memory until it ends or this is destroyed. Throws Error if the Program
  // is captured, because its inputs have one place for all executions.
  virtual void feed_ahead(const Transfer& feed) = 0;
  // Why a result under its name does not count; absent if it counts.
  virtual Reason why_not_engaged() const { return std::nullopt; }
};

}  // namespace headroom
