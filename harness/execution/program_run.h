// Runs one lowered Program, again and again: op by op with memory from the strategy (Executor), or
// captured, with memory of its own (CapturedRun).
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "harness/program/program.h"

namespace headroom {

class ProgramRun {
 public:
  virtual ~ProgramRun() = default;
  // One execution. `feed` is called once the inputs have memory; `read` while results still have;
  // `fed` in between, before the first op, when the inputs are there.
  using Transfer = std::function<void(ValueId, std::byte* data)>;
  virtual void run(const Transfer& feed, const Transfer& read,
                   const std::function<void()>& fed = nullptr) = 0;
  // Gives the inputs of the next execution, which will not feed them, their memory now. They hold
  // it until then or until this is gone. Not where they have one place for all executions.
  virtual void feed_ahead(const Transfer& feed) = 0;
  // What a result under its name needs to have been done and was not ("" = nothing).
  virtual std::string why_not_engaged() const { return ""; }
};

}  // namespace headroom
