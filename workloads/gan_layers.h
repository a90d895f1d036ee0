// What generators and discriminators are made of. Both networks stand in one Program, and one may
// run in it several times on the same weights.
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
  // The ops that follow are of this run of a network: their names begin with it, weights' do not.
  void begin_run(std::string run) { run_ = std::move(run); }

  // Without bias, weights from a normal distribution.
  ValueId convolution(const std::string& name, ValueId x, std::int64_t outputs, Window window,
                      double deviation);
  ValueId transposed_convolution(const std::string& name, ValueId x, std::int64_t outputs,
                                 Window window, double deviation);
  ValueId batch_norm(const std::string& name, ValueId x);
  // Each value of x makes factor × factor pixels; the sum of as many, times `scale`.
  ValueId upsample(const std::string& name, ValueId x, std::int64_t factor);
  ValueId sum_pool(const std::string& name, ValueId x, std::int64_t factor, double scale);
  ValueId relu(const std::string& name, ValueId x) { return emit("relu", name, {x}); }
  ValueId emit(const std::string& kind, const std::string& name, std::vector<ValueId> inputs,
               Attributes attributes = {});

  const Shape& shape(ValueId id) { return builder_.program().value(id).shape; }
  // The weights of one network are used and not trained.
  void freeze(const std::string& network);

 private:
  ValueId persistent(const std::string& name, Shape shape, Role role, Initializer initializer);

  ProgramBuilder builder_;
  Phase phase_;
  std::string run_;
  std::map<std::string, ValueId> persistent_;
};

}  // namespace headroom
