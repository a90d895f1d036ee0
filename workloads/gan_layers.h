// The layers of generators and discriminators. Both networks are in one Program, and each may run
// several times in it on the same weights.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/program/program.h"

namespace headroom {

struct GanSize {
  std::int64_t batch, image, width, latent;
};

struct Window {
  std::int64_t size, stride = 1, padding = 0;
};

class GanLayers {
 public:
  // In Phase::evaluate, normalisation reads its statistics instead of the batch's.
  explicit GanLayers(Program& program, Phase phase = Phase::forward)
      : builder_(program, phase), phase_(phase) {}

  ProgramBuilder& builder() { return builder_; }
  // The names of the ops that follow begin with `prefix`; those of weights do not, because a
  // network may be used several times.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  // A convolution without bias, with weights from a normal distribution.
  ValueId convolution(const std::string& name, ValueId x, std::int64_t outputs, Window window,
                      double deviation);
  ValueId transposed_convolution(const std::string& name, ValueId x, std::int64_t outputs,
                                 Window window, double deviation);
  ValueId batch_norm(const std::string& name, ValueId x);
  // upsample() repeats each value of x in factor × factor pixels; sum_pool() sums factor × factor
  // pixels, times `scale`.
  ValueId upsample(const std::string& name, ValueId x, std::int64_t factor);
  ValueId sum_pool(const std::string& name, ValueId x, std::int64_t factor, double scale);
  ValueId relu(const std::string& name, ValueId x) { return emit("relu", name, {x}); }
  ValueId emit(const std::string& kind, const std::string& name, std::vector<ValueId> inputs,
               Attributes attributes = {});

  const Shape& shape(ValueId id) { return builder_.program().value(id).shape; }
  // Excludes the weights of one network from training.
  void freeze(const std::string& network);

 private:
  ValueId persistent(const std::string& name, Shape shape, Role role, Initializer initializer);

  ProgramBuilder builder_;
  Phase phase_;
  std::string prefix_;
  std::map<std::string, ValueId> persistent_;
};

}  // namespace headroom
