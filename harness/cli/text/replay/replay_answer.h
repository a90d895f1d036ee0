// The short answer of headroom replay: whether PyTorch's allocator serves a history, and which
// setting does.
#pragma once

#include <string>
#include <vector>

#include "harness/whatif/replay.h"

namespace headroom {

// One strategy that was tried.
struct Tried {
  Spec allocator;
  ReplayOutcome outcome;
};

// The line that sets this strategy in PyTorch or TensorFlow, such as
// "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"; "" if it is a default or a strategy of
// neither.
std::string framework_setting(const Spec& allocator);

// `peak_live`: the most bytes that were live at once.
void print_replay_answer(const std::vector<Tried>& tried, const ReplayDevice& device,
                         Bytes peak_live);

}  // namespace headroom
