// Optimizer rules over many weights: one launch covers as many weights as its arguments can hold.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "harness/device/cuda/module/work/update/update.h"
#include "harness/program/update_lists.h"

namespace headroom::cuda {

// A launch takes at most 4 KiB of arguments (CUDA C++ Programming Guide, "Function Parameters").
inline constexpr int kGroupsALaunch = 48;

// Addresses of the operands of several groups, up to four operands each.
struct GroupTable {
  std::array<std::array<float*, 4>, kGroupsALaunch> operands;
  std::array<Index, kGroupsALaunch + 1> starts;  // of all groups one after another
  int groups;

  // The last group that starts at `i` or before.
  HEADROOM_DEVICE int group_of(Index i) const {
    int low = 0, high = groups;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (starts[static_cast<std::size_t>(middle)] <= i)
        low = middle;
      else
        high = middle;
    }
    return low;
  }
};

class GroupLists {
 public:
  GroupLists(const Op& op, const Program& program) : kind_(operand_groups(op.kind)) {
    for (std::size_t group = 0; group < kind_.count(op); ++group)
      counts_.push_back(count_of(program, op.inputs[group * kind_.operands]));
  }

  const float* shared(const OpBuffers& buffers) const {
    return floats(buffers.inputs[counts_.size() * kind_.operands]);
  }

  // Runs rule(operands, i) for every element i of every group; results count as the last operands.
  template <typename Queue, typename Rule>
  void for_each(Queue& queue, const OpBuffers& buffers, Rule rule) const {
    for (std::size_t first = 0; first < counts_.size(); first += kGroupsALaunch) {
      const GroupTable table = table_of(buffers, first);
      queue.for_each_by_table(table.starts[static_cast<std::size_t>(table.groups)],
                              [=] HEADROOM_DEVICE(Index i) {
                                const auto group = static_cast<std::size_t>(table.group_of(i));
                                rule(table.operands[group].data(), i - table.starts[group]);
                              });
    }
  }

 private:
  GroupTable table_of(const OpBuffers& buffers, std::size_t first) const {
    GroupTable table{};
    const std::size_t end = std::min(counts_.size(), first + kGroupsALaunch);
    for (std::size_t group = first; group < end; ++group) {
      const std::size_t row = group - first;
      for (std::size_t i = 0; i < kind_.operands; ++i)
        table.operands[row][i] = floats(buffers.inputs[group * kind_.operands + i]);
      if (!buffers.outputs.empty())
        table.operands[row][kind_.operands] = floats(buffers.outputs[group]);
      table.starts[row + 1] = table.starts[row] + counts_[group];
    }
    table.groups = static_cast<int>(end - first);
    return table;
  }

  OperandGroups kind_;
  std::vector<Index> counts_;
};

struct SgdOfList {
  float rate, momentum, weight_decay;
  HEADROOM_DEVICE void operator()(float* const* of, Index i) const {
    const float v = momentum * of[2][i] + (of[1][i] + weight_decay * of[0][i]);
    of[2][i] = v;
    of[0][i] -= rate * v;
  }
};

struct DecayOfList {
  float weight_decay;
  HEADROOM_DEVICE void operator()(float* const* of, Index i) const {
    of[2][i] = of[1][i] + weight_decay * of[0][i];
  }
};

struct MomentsOfList {
  AdamRule rule;
  HEADROOM_DEVICE void operator()(float* const* of, Index i) const {
    const float g = of[0][i];
    of[1][i] = rule.beta1 * of[1][i] + rule.new_mean * g;
    of[2][i] = rule.beta2 * of[2][i] + rule.new_square * g * g;
  }
};

struct AdamOfList {
  AdamRule rule;
  const AdamCorrections* by;
  HEADROOM_DEVICE void operator()(float* const* of, Index i) const {
    MomentsOfList{rule}(of + 1, i);
    of[0][i] = rule.step(of[0][i], of[2][i], of[3][i], *by);
  }
};

struct RootsOfList {
  const AdamCorrections* by;
  HEADROOM_DEVICE void operator()(float* const* of, Index i) const {
    of[1][i] = std::sqrt(of[0][i] * by->square);
  }
};

struct WeightsOfList {
  AdamRule rule;
  const AdamCorrections* by;
  HEADROOM_DEVICE void operator()(float* const* of, Index i) const {
    const float direction = of[1][i] * by->mean / (of[2][i] + rule.epsilon);
    of[0][i] -= rule.rate * (direction + rule.weight_decay * of[0][i]);
  }
};

class FusedSgd {
 public:
  FusedSgd(const Op& op, const Program& program)
      : lists_(op, program),
        rule_{rate_of(op, "learning_rate"), rate_of(op, "momentum"), rate_of(op, "weight_decay")} {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    lists_.for_each(queue, buffers, rule_);
  }

 private:
  GroupLists lists_;
  SgdOfList rule_;
};

class ForeachWeightDecay {
 public:
  ForeachWeightDecay(const Op& op, const Program& program)
      : lists_(op, program), rule_{rate_of(op, "weight_decay")} {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    lists_.for_each(queue, buffers, rule_);
  }

 private:
  GroupLists lists_;
  DecayOfList rule_;
};

class ForeachMoments {
 public:
  ForeachMoments(const Op& op, const Program& program) : lists_(op, program), rule_{AdamRule(op)} {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    lists_.for_each(queue, buffers, rule_);
  }

 private:
  GroupLists lists_;
  MomentsOfList rule_;
};

// Rules with bias correction. Their members are public, because nvcc accepts device lambdas in
// public functions only.
struct CorrectedLists {
  CorrectedLists(const Op& op, const Program& program) : lists_(op, program), rule_(op) {}

  template <typename Queue>
  const AdamCorrections* corrections(Queue& queue, const OpBuffers& buffers) const {
    const float* steps = lists_.shared(buffers);
    const AdamRule rule = rule_;
    auto* corrections = queue.template scratch<AdamCorrections>(1);
    queue.for_each(1, [=] HEADROOM_DEVICE(Index) { *corrections = rule.corrections(*steps); });
    return corrections;
  }

  GroupLists lists_;
  AdamRule rule_;
};

class FusedAdam : public CorrectedLists {
 public:
  using CorrectedLists::CorrectedLists;
  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    lists_.for_each(queue, buffers, AdamOfList{rule_, corrections(queue, buffers)});
  }
};

class ForeachRoots : public CorrectedLists {
 public:
  using CorrectedLists::CorrectedLists;
  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    lists_.for_each(queue, buffers, RootsOfList{corrections(queue, buffers)});
  }
};

class ForeachWeights : public CorrectedLists {
 public:
  using CorrectedLists::CorrectedLists;
  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    lists_.for_each(queue, buffers, WeightsOfList{rule_, corrections(queue, buffers)});
  }
};

template <typename Queue>
Works<Queue> update_list_works() {
  return {
      {"foreach_adam_moments", make<ForeachMoments, Queue>},
      {"foreach_adam_roots", make<ForeachRoots, Queue>},
      {"foreach_adam_weights", make<ForeachWeights, Queue>},
      {"foreach_weight_decay", make<ForeachWeightDecay, Queue>},
      {"fused_adam", make<FusedAdam, Queue>},
      {"fused_sgd_momentum", make<FusedSgd, Queue>},
  };
}

}  // namespace headroom::cuda
