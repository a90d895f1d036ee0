#include "harness/device/host/kernels/update/update_rules.h"

#include <cmath>

#include "harness/device/host/kernels/parallel.h"

// A rule in parts must round exactly as the whole rule does. Contraction into fused multiply-adds
// is therefore disabled: a compiler may apply it differently in each function.
#if defined(__clang__)
#pragma clang fp contract(off)
#define HEADROOM_ROUND_EACH
#else
#define HEADROOM_ROUND_EACH __attribute__((optimize("fp-contract=off", "no-math-errno")))
#endif

namespace headroom::host {
namespace {

float rate(const Op& op, const char* key) { return static_cast<float>(op.number(key)); }

}  // namespace

SgdRates::SgdRates(const Op& op)
    : learning_rate(rate(op, "learning_rate")),
      momentum(rate(op, "momentum")),
      weight_decay(rate(op, "weight_decay")) {}

HEADROOM_ROUND_EACH HEADROOM_VECTORISED void sgd_momentum(float* __restrict weight,
                                                          const float* __restrict gradient,
                                                          float* __restrict velocity,
                                                          SgdRates rates, std::size_t begin,
                                                          std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    const float v = rates.momentum * velocity[i] + (gradient[i] + rates.weight_decay * weight[i]);
    velocity[i] = v;
    weight[i] -= rates.learning_rate * v;
  }
}

HEADROOM_ROUND_EACH HEADROOM_VECTORISED void decay(const float* __restrict weight,
                                                   const float* __restrict gradient,
                                                   float* __restrict decayed, float weight_decay,
                                                   std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) decayed[i] = gradient[i] + weight_decay * weight[i];
}

AdamRates::AdamRates(const Op& op)
    : learning_rate(rate(op, "learning_rate")),
      beta1(rate(op, "beta1")),
      beta2(rate(op, "beta2")),
      epsilon(rate(op, "epsilon")),
      weight_decay(rate(op, "weight_decay")),
      exact_beta1(op.number("beta1")),
      exact_beta2(op.number("beta2")) {}

float correction(double beta, float steps) {
  return static_cast<float>(1 / (1 - std::pow(beta, static_cast<double>(steps))));
}

HEADROOM_ROUND_EACH HEADROOM_VECTORISED void adam(float* __restrict weight,
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

HEADROOM_ROUND_EACH HEADROOM_VECTORISED void adam_moments(const float* __restrict gradient,
                                                          float* __restrict mean,
                                                          float* __restrict square, AdamRates rates,
                                                          std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    const float g = gradient[i];
    mean[i] = rates.beta1 * mean[i] + (1 - rates.beta1) * g;
    square[i] = rates.beta2 * square[i] + (1 - rates.beta2) * g * g;
  }
}

HEADROOM_ROUND_EACH HEADROOM_VECTORISED void adam_roots(const float* __restrict square,
                                                        float* __restrict root, float correction,
                                                        std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) root[i] = __builtin_sqrtf(square[i] * correction);
}

HEADROOM_ROUND_EACH HEADROOM_VECTORISED void adam_weights(float* __restrict weight,
                                                          const float* __restrict mean,
                                                          const float* __restrict root,
                                                          AdamRates rates, float correction,
                                                          std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    const float step = mean[i] * correction / (root[i] + rates.epsilon);
    weight[i] -= rates.learning_rate * (step + rates.weight_decay * weight[i]);
  }
}

}  // namespace headroom::host
