// Optimizer rules over many weights at once, with one team of threads for all of them. Separate ops
// would start one team per weight, and small weights would occupy only one thread. Whole buffers
// are processed including padding, which holds zeros and stays zero.
#include <algorithm>
#include <vector>

#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"
#include "harness/device/host/kernels/update/update_rules.h"
#include "harness/program/update_lists.h"

namespace headroom::host {
namespace {

class Lists {
 public:
  Lists(const Op& op, const Program& program) : groups_(operand_groups(op.kind)) {
    for (std::size_t group = 0; group < groups_.count(op); ++group) {
      const Value& first = program.value(op.inputs[group * groups_.operands]);
      starts_.push_back(starts_.back() + first.bytes / sizeof(float));
    }
  }

  // Calls body(group, begin, end) on ranges that together cover the buffers of every group.
  template <typename Body>
  void in_one_go(const Body& body) const {
    in_parallel(starts_.back(), [&](std::size_t begin, std::size_t end) {
      auto next = std::upper_bound(starts_.begin(), starts_.end(), begin);
      while (begin < end) {
        const std::size_t before = *(next - 1), stop = std::min(end, *next);
        const auto group = static_cast<std::size_t>(next - starts_.begin()) - 1;
        body(group, begin - before, stop - before);
        begin = stop;
        ++next;
      }
    });
  }

  float* operand(const OpBuffers& buffers, std::size_t group, std::size_t place) const {
    return floats(buffers.inputs[group * groups_.operands + place]);
  }

 private:
  OperandGroups groups_;
  std::vector<std::size_t> starts_ = {0};  // cumulative start of each group, in floats
};

}  // namespace

Kernel make_fused_sgd_momentum(const Op& op, const Program& program) {
  return [lists = Lists(op, program), rates = SgdRates(op)](const OpBuffers& buffers) {
    lists.in_one_go([&](std::size_t group, std::size_t begin, std::size_t end) {
      const auto of = [&](std::size_t place) { return lists.operand(buffers, group, place); };
      sgd_momentum(of(0), of(1), of(2), rates, begin, end);
    });
  };
}

Kernel make_foreach_weight_decay(const Op& op, const Program& program) {
  const float weight_decay = SgdRates(op).weight_decay;
  return [lists = Lists(op, program), weight_decay](const OpBuffers& buffers) {
    lists.in_one_go([&](std::size_t group, std::size_t begin, std::size_t end) {
      const auto of = [&](std::size_t place) { return lists.operand(buffers, group, place); };
      decay(of(0), of(1), floats(buffers.outputs[group]), weight_decay, begin, end);
    });
  };
}

Kernel make_fused_adam(const Op& op, const Program& program) {
  return [lists = Lists(op, program), rates = AdamRates(op)](const OpBuffers& buffers) {
    const AdamCorrections corrections(rates, *floats(buffers.inputs.back()));
    lists.in_one_go([&](std::size_t group, std::size_t begin, std::size_t end) {
      const auto of = [&](std::size_t place) { return lists.operand(buffers, group, place); };
      adam(of(0), of(1), of(2), of(3), rates, corrections, begin, end);
    });
  };
}

Kernel make_foreach_adam_moments(const Op& op, const Program& program) {
  return [lists = Lists(op, program), rates = AdamRates(op)](const OpBuffers& buffers) {
    lists.in_one_go([&](std::size_t group, std::size_t begin, std::size_t end) {
      const auto of = [&](std::size_t place) { return lists.operand(buffers, group, place); };
      adam_moments(of(0), of(1), of(2), rates, begin, end);
    });
  };
}

Kernel make_foreach_adam_roots(const Op& op, const Program& program) {
  return [lists = Lists(op, program), rates = AdamRates(op)](const OpBuffers& buffers) {
    const AdamCorrections corrections(rates, *floats(buffers.inputs.back()));
    lists.in_one_go([&](std::size_t group, std::size_t begin, std::size_t end) {
      adam_roots(lists.operand(buffers, group, 0), floats(buffers.outputs[group]),
                 corrections.square, begin, end);
    });
  };
}

Kernel make_foreach_adam_weights(const Op& op, const Program& program) {
  return [lists = Lists(op, program), rates = AdamRates(op)](const OpBuffers& buffers) {
    const AdamCorrections corrections(rates, *floats(buffers.inputs.back()));
    lists.in_one_go([&](std::size_t group, std::size_t begin, std::size_t end) {
      const auto of = [&](std::size_t place) { return lists.operand(buffers, group, place); };
      adam_weights(of(0), of(1), of(2), rates, corrections.mean, begin, end);
    });
  };
}

}  // namespace headroom::host
