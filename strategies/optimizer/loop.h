// How an optimizer iterates over the weights, as torch.optim's arguments `foreach` and `fused`
// choose. For the files of this folder.
//   loop=per_tensor  the whole rule for one weight after the other, an op for each (default)
//   loop=foreach     each part of the rule for all weights before the next part, an op for each
//                    part: a few launches instead of hundreds. The values between two parts are
//                    held for all weights at once, which raises the peak by about the size of the
//                    weights (documentation of torch.optim.Adam). The lists of the call hold all
//                    gradients until the last part has ended. The values between parts are those of
//                    PyTorch, but not the number of parts: PyTorch passes over memory more often.
//   loop=fused       the whole rule for all weights in one op, without values between parts; it
//                    also needs all gradients at once
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/spec.h"
#include "harness/program/program.h"

namespace headroom::optimizer {

enum class Loop { per_tensor, foreach, fused };
// Throws InputError for other words.
Loop loop_of(const Spec& spec);

// Weights and their gradients.
using Trained = std::vector<std::pair<ValueId, ValueId>>;
// Emits the few ops that update all weights; not called for per_tensor.
using UpdateTogether = std::function<void(ProgramBuilder&, const Trained&, Loop)>;

// The operands of an op over many weights (harness/program/update_lists.h).
class OperandLists {
 public:
  // Adds the operands of one weight; the op changes those at the positions `changed`.
  void add(std::initializer_list<ValueId> operands, std::initializer_list<std::size_t> changed);
  // `last` is an operand shared by all weights, or kNoValue. Returns the results.
  std::vector<ValueId> emit(ProgramBuilder& builder, const std::string& kind,
                            const Attributes& attributes, ValueId last = kNoValue) const;

 private:
  std::vector<ValueId> inputs_, mutates_;
};

// Keeps all gradients alive up to this op.
void hold_gradients(ProgramBuilder& builder, const Trained& trained);

// Returns nothing when the loop is per_tensor or an op of `after` changes several weights.
Reason why_not_together(const Spec& spec, const Program& after);

}  // namespace headroom::optimizer
