// Optimizer rules, in place over whole buffers including padding, which holds zeros and stays zero.
#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"
#include "harness/device/host/kernels/update/update_rules.h"

namespace headroom::host {
namespace {

HEADROOM_VECTORISED void accumulate(float* __restrict sum, const float* __restrict gradient,
                                    float scale, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) sum[i] += scale * gradient[i];
}

HEADROOM_VECTORISED void begin_sum(float* __restrict sum, const float* __restrict gradient,
                                   float scale, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) sum[i] = scale * gradient[i];
}

HEADROOM_VECTORISED void divide(float* x, float divisor, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) x[i] /= divisor;
}

}  // namespace

Kernel make_sgd_momentum(const Op& op, const Program& program) {
  return
      [rates = SgdRates(op), count = float_count(program, op.inputs[0])](const OpBuffers& buffers) {
        in_parallel(count, [&](std::size_t begin, std::size_t end) {
          sgd_momentum(floats(buffers.inputs[0]), floats(buffers.inputs[1]),
                       floats(buffers.inputs[2]), rates, begin, end);
        });
      };
}

Kernel make_accumulate(const Op& op, const Program& program) {
  const auto scale = static_cast<float>(op.number("scale"));
  const auto add = op.integer("start") == 1 ? begin_sum : accumulate;
  return [=, count = float_count(program, op.inputs[0])](const OpBuffers& buffers) {
    const float weight = buffers.inputs.size() == 3 ? *floats(buffers.inputs[2]) : 1.0F;
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      add(floats(buffers.inputs[0]), floats(buffers.inputs[1]), scale * weight, begin, end);
    });
  };
}

Kernel make_divide(const Op& op, const Program& program) {
  return [count = float_count(program, op.inputs[0])](const OpBuffers& buffers) {
    const float counted = *floats(buffers.inputs[1]);
    const float divisor = counted == 0 ? 1 : counted;  // an empty sum stays 0
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      divide(floats(buffers.inputs[0]), divisor, begin, end);
    });
  };
}

Kernel make_adam(const Op& op, const Program& program) {
  return [rates = AdamRates(op),
          count = float_count(program, op.inputs[0])](const OpBuffers& buffers) {
    const AdamCorrections corrections(rates, *floats(buffers.inputs[4]));
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      adam(floats(buffers.inputs[0]), floats(buffers.inputs[1]), floats(buffers.inputs[2]),
           floats(buffers.inputs[3]), rates, corrections, begin, end);
    });
  };
}

Kernel make_count_step(const Op&, const Program&) {
  return [](const OpBuffers& buffers) { *floats(buffers.inputs[0]) += 1; };
}

}  // namespace headroom::host
