// The loss of a classifier. A label that is neither a class nor -1 cannot stop the program here as
// it does on the host, so it makes the loss NaN.
#pragma once

#include "harness/device/cuda/module/work/softmax.h"
#include "harness/device/cuda/module/work/sums.h"

namespace headroom::cuda {

inline constexpr std::int32_t kIgnoredLabel = -1;

struct LabelCounts {
  const std::int32_t* labels;
  HEADROOM_DEVICE Index operator()(Index n) const { return labels[n] >= 0 ? 1 : 0; }
};

HEADROOM_DEVICE inline double at_least_one(Index count) {
  return count > 0 ? static_cast<double>(count) : 1.0;
}

struct Logit {
  const float* logits;
  Index classes;
  HEADROOM_DEVICE Exponentials operator()(Index row, Index column) const {
    return {logits[row * classes + column], 1};
  }
};

// One row's contribution to the loss.
struct RowLoss {
  const float* logits;
  const std::int32_t* labels;
  const Exponentials* rows;
  Index classes;

  HEADROOM_DEVICE double operator()(Index n) const {
    const std::int32_t label = labels[n];
    if (label == kIgnoredLabel) return 0;
    if (label < 0 || label >= classes) return std::numeric_limits<double>::quiet_NaN();
    const double own = logits[n * classes + label];
    return std::log(static_cast<double>(rows[n].sum)) - (own - rows[n].largest);
  }
};

class CrossEntropy {
 public:
  CrossEntropy(const Op& op, const Program& program)
      : rows_(program.value(op.inputs[0]).shape[0]),
        classes_(program.value(op.inputs[0]).shape[1]) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const float* logits = floats(buffers.inputs[0]);
    const std::int32_t* labels = whole_numbers(buffers.inputs[1]);
    float *loss = floats(buffers.outputs[0]), *probabilities = floats(buffers.outputs[1]);
    auto* rows = queue.template scratch<Exponentials>(rows_);
    auto* counted = queue.template scratch<Index>(1);
    auto* sum = queue.template scratch<double>(1);
    queue.reduce_rows(rows_, classes_, Logit{logits, classes_}, CombineExponentials{1},
                      Exponentials{}, rows);
    queue.reduce(rows_, LabelCounts{labels}, Add{}, Index{0}, counted);
    queue.reduce(rows_, RowLoss{logits, labels, rows, classes_}, Add{}, 0.0, sum);
    queue.for_each(1, [=] HEADROOM_DEVICE(Index) {
      *loss = static_cast<float>(*sum / at_least_one(*counted));
    });
    // This step is last because the outputs may share memory with the logits.
    queue.for_each(rows_ * classes_, [=, *this] HEADROOM_DEVICE(Index i) {
      const Exponentials row = rows[i / classes_];
      const bool is_ignored = labels[i / classes_] == kIgnoredLabel;
      probabilities[i] = is_ignored ? 0 : std::exp(logits[i] - row.largest) / row.sum;
    });
  }

 private:
  Index rows_;
  Divisor classes_;
};

class CrossEntropyBackward {
 public:
  CrossEntropyBackward(const Op& op, const Program& program)
      : rows_(program.value(op.inputs[0]).shape[0]),
        classes_(program.value(op.inputs[0]).shape[1]) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const float* probabilities = floats(buffers.inputs[0]);
    const std::int32_t* labels = whole_numbers(buffers.inputs[1]);
    float* gradient = floats(buffers.outputs[0]);
    auto* counted = queue.template scratch<Index>(1);
    queue.reduce(rows_, LabelCounts{labels}, Add{}, Index{0}, counted);
    auto* share = queue.template scratch<float>(1);
    queue.for_each(
        1, [=] HEADROOM_DEVICE(Index) { *share = static_cast<float>(1 / at_least_one(*counted)); });
    queue.for_each(rows_ * classes_, [=, *this] HEADROOM_DEVICE(Index i) {
      const std::int32_t label = labels[i / classes_];
      const float hit = label == i % classes_ ? 1 : 0;
      gradient[i] = label == kIgnoredLabel ? 0 : *share * (probabilities[i] - hit);
    });
  }

 private:
  Index rows_;
  Divisor classes_;
};

class CountLabels {
 public:
  CountLabels(const Op& op, const Program& program) : rows_(count_of(program, op.inputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    float* count = floats(buffers.outputs[0]);
    auto* counted = queue.template scratch<Index>(1);
    queue.reduce(rows_, LabelCounts{whole_numbers(buffers.inputs[0])}, Add{}, Index{0}, counted);
    queue.for_each(1, [=] HEADROOM_DEVICE(Index) { *count = static_cast<float>(*counted); });
  }

 private:
  Index rows_;
};

template <typename Queue>
Works<Queue> loss_works() {
  return {
      {"count_labels", make<CountLabels, Queue>},
      {"softmax_cross_entropy", make<CrossEntropy, Queue>},
      {"softmax_cross_entropy_backward", make<CrossEntropyBackward, Queue>},
  };
}

}  // namespace headroom::cuda
