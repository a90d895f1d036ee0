// Optimizer rules, in place over whole buffers, padding included: padding holds zeros and stays so.
#include <cmath>

#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"

namespace headroom::host {
namespace {

struct Rates {
  float learning_rate, momentum, weight_decay;
};

HEADROOM_VECTORISED void sgd_momentum(float* __restrict weight, const float* __restrict gradient,
                                      float* __restrict velocity, Rates rates, std::size_t begin,
                                      std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    const float v = rates.momentum * velocity[i] + (gradient[i] + rates.weight_decay * weight[i]);
    velocity[i] = v;
    weight[i] -= rates.learning_rate * v;
  }
}

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

struct AdamRates {
  float learning_rate, beta1, beta2, epsilon, weight_decay;
};

// 1 / (1 - beta^steps): what makes up for states that began at zero.
struct AdamCorrections {
  float mean, square;
};

HEADROOM_NO_ERRNO HEADROOM_VECTORISED void adam(float* __restrict weight,
                                                const float* __restrict gradient,
                                                float* __restrict mean, float* __restrict square,
                                                AdamRates rates, AdamCorrections corrections,
                                                std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    const float g = gradient[i];
    const float m = rates.beta1 * mean[i] + (1 - rates.beta1) * g;
    const float s = rates.beta2 * square[i] + (1 - rates.beta2) * g * g;
    mean[i] = m;
    square[i] = s;
    const float step =
        m * corrections.mean / (__builtin_sqrtf(s * corrections.square) + rates.epsilon);
    weight[i] -= rates.learning_rate * (step + rates.weight_decay * weight[i]);
  }
}

std::size_t float_count(const Program& program, ValueId id) {
  return program.value(id).bytes / sizeof(float);
}

}  // namespace

Kernel make_sgd_momentum(const Op& op, const Program& program) {
  const Rates rates = {static_cast<float>(op.number("learning_rate")),
                       static_cast<float>(op.number("momentum")),
                       static_cast<float>(op.number("weight_decay"))};
  return [rates, count = float_count(program, op.inputs[0])](const OpBuffers& buffers) {
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      sgd_momentum(floats(buffers.inputs[0]), floats(buffers.inputs[1]), floats(buffers.inputs[2]),
                   rates, begin, end);
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
    const float divisor = counted == 0 ? 1 : counted;  // a sum over nothing stays 0
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      divide(floats(buffers.inputs[0]), divisor, begin, end);
    });
  };
}

Kernel make_adam(const Op& op, const Program& program) {
  const auto rate = [&](const char* key) { return static_cast<float>(op.number(key)); };
  const AdamRates rates = {rate("learning_rate"), rate("beta1"), rate("beta2"), rate("epsilon"),
                           rate("weight_decay")};
  const double beta1 = op.number("beta1"), beta2 = op.number("beta2");
  return [=, count = float_count(program, op.inputs[0])](const OpBuffers& buffers) {
    const double steps = *floats(buffers.inputs[4]);
    const AdamCorrections corrections = {static_cast<float>(1 / (1 - std::pow(beta1, steps))),
                                         static_cast<float>(1 / (1 - std::pow(beta2, steps)))};
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
