// Optimizers over many weights at once: the rule of one weight applied to each group.
#include <cmath>

#include "tests/unit/reference/kinds.h"

namespace headroom::testing {
namespace {

// The operands of one group, in its kind's order.
struct Group {
  const Run& run;
  std::size_t first;
  std::size_t number;

  Tensor& in(std::size_t place) const { return run.in(first + place); }
  double rate(const char* name) const { return run.op.number(name); }
  // 1 - beta^steps
  double missing(const char* beta) const {
    return 1 - std::pow(rate(beta), run.in(run.op.inputs.size() - 1)[0]);
  }
};

template <typename Rule>
void for_groups(const Run& run, std::size_t operands, const Rule& rule) {
  for (std::size_t i = 0; (i + 1) * operands <= run.op.inputs.size(); ++i)
    rule(Group{run, i * operands, i});
}

void add_moments(const Group& group, const Tensor& g, Tensor& m, Tensor& s) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    m[i] += (1 - group.rate("beta1")) * (g[i] - m[i]);
    s[i] += (1 - group.rate("beta2")) * (g[i] * g[i] - s[i]);
  }
}

void fused_adam(const Run& r) {
  for_groups(r, 4, [](const Group& group) {
    Tensor &w = group.in(0), &m = group.in(2), &s = group.in(3);
    add_moments(group, group.in(1), m, s);
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double denominator = std::sqrt(s[i] / group.missing("beta2")) + group.rate("epsilon");
      w[i] -= group.rate("learning_rate") *
              (m[i] / group.missing("beta1") / denominator + group.rate("weight_decay") * w[i]);
    }
  });
}

void adam_moments(const Run& r) {
  for_groups(r, 3,
             [](const Group& group) { add_moments(group, group.in(0), group.in(1), group.in(2)); });
}

void adam_roots(const Run& r) {
  for (std::size_t group = 0; group < r.op.outputs.size(); ++group) {
    const double missing = 1 - std::pow(r.op.number("beta2"), r.in(r.op.inputs.size() - 1)[0]);
    Tensor& root = r.out(group);
    for (std::size_t i = 0; i < root.size(); ++i) root[i] = std::sqrt(r.in(group)[i] / missing);
  }
}

void adam_weights(const Run& r) {
  for_groups(r, 3, [](const Group& group) {
    Tensor& w = group.in(0);
    for (std::size_t i = 0; i < w.size(); ++i)
      w[i] -= group.rate("learning_rate") *
              (group.in(1)[i] / group.missing("beta1") / (group.in(2)[i] + group.rate("epsilon")) +
               group.rate("weight_decay") * w[i]);
  });
}

void weight_decay(const Run& r) {
  for_groups(r, 2, [&](const Group& group) {
    Tensor& decayed = r.out(group.number);
    for (std::size_t i = 0; i < decayed.size(); ++i)
      decayed[i] = group.in(1)[i] + group.rate("weight_decay") * group.in(0)[i];
  });
}

void fused_sgd_momentum(const Run& r) {
  for_groups(r, 3, [](const Group& group) {
    Tensor &w = group.in(0), &v = group.in(2);
    for (std::size_t i = 0; i < w.size(); ++i) {
      v[i] = group.rate("momentum") * v[i] + group.in(1)[i] + group.rate("weight_decay") * w[i];
      w[i] -= group.rate("learning_rate") * v[i];
    }
  });
}

}  // namespace

Kinds update_list_kinds() {
  return {
      {"foreach_adam_moments", adam_moments},
      {"foreach_adam_roots", adam_roots},
      {"foreach_adam_weights", adam_weights},
      {"foreach_weight_decay", weight_decay},
      {"fused_adam", fused_adam},
      {"fused_sgd_momentum", fused_sgd_momentum},
  };
}

}  // namespace headroom::testing
