// Counts the rows of logits that are largest at their label.
#pragma once

#include <limits>

#include "harness/device/cuda/module/work/sums.h"

namespace headroom::cuda {

struct Best {
  float score;
  Index at;
};

// Ties go to the first of equal scores.
struct Better {
  HEADROOM_DEVICE Best operator()(Best a, Best b) const {
    if (a.score == b.score) return a.at < b.at ? a : b;
    return b.score > a.score ? b : a;
  }
};

struct Candidate {
  const float* logits;
  Index classes;
  HEADROOM_DEVICE Best operator()(Index row, Index column) const {
    return {logits[row * classes + column], column};
  }
};

struct IsHit {
  const Best* best;
  const std::int32_t* labels;
  HEADROOM_DEVICE Index operator()(Index n) const { return best[n].at == labels[n] ? 1 : 0; }
};

class CountCorrect {
 public:
  CountCorrect(const Op& op, const Program& program)
      : rows_(program.value(op.inputs[0]).shape[0]),
        classes_(program.value(op.inputs[0]).shape[1]) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const std::int32_t* labels = whole_numbers(buffers.inputs[1]);
    float* count = floats(buffers.outputs[0]);
    auto* best = queue.template scratch<Best>(rows_);
    auto* hits = queue.template scratch<Index>(1);
    const Best none = {-std::numeric_limits<float>::infinity(), std::numeric_limits<Index>::max()};
    queue.reduce_rows(rows_, classes_, Candidate{floats(buffers.inputs[0]), classes_}, Better{},
                      none, best);
    queue.reduce(rows_, IsHit{best, labels}, Add{}, Index{0}, hits);
    queue.for_each(1, [=] HEADROOM_DEVICE(Index) { *count = static_cast<float>(*hits); });
  }

 private:
  Index rows_, classes_;
};

template <typename Queue>
Works<Queue> hit_works() {
  return {{"count_correct", make<CountCorrect, Queue>}};
}

}  // namespace headroom::cuda
