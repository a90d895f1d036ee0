// Optimizer rules over a range of one weight, whole and in parts. A part computes exactly what it
// computes within the whole rule, so both give the same bits. For the files of this folder.
#pragma once

#include <cstddef>

#include "harness/program/op.h"

namespace headroom::host {

struct SgdRates {
  float learning_rate, momentum, weight_decay;

  explicit SgdRates(const Op& op);
};
void sgd_momentum(float* weight, const float* gradient, float* velocity, SgdRates rates,
                  std::size_t begin, std::size_t end);
// decayed = gradient + weight_decay weight
void decay(const float* weight, const float* gradient, float* decayed, float weight_decay,
           std::size_t begin, std::size_t end);

struct AdamRates {
  float learning_rate, beta1, beta2, epsilon, weight_decay;
  double exact_beta1, exact_beta2;

  explicit AdamRates(const Op& op);
};
// The bias correction 1 / (1 - beta^steps) for states that start at zero.
float correction(double beta, float steps);

struct AdamCorrections {
  float mean, square;

  AdamCorrections(const AdamRates& rates, float steps)
      : mean(correction(rates.exact_beta1, steps)), square(correction(rates.exact_beta2, steps)) {}
};
void adam(float* weight, const float* gradient, float* mean, float* square, AdamRates rates,
          AdamCorrections corrections, std::size_t begin, std::size_t end);
void adam_moments(const float* gradient, float* mean, float* square, AdamRates rates,
                  std::size_t begin, std::size_t end);
void adam_roots(const float* square, float* root, float correction, std::size_t begin,
                std::size_t end);
void adam_weights(float* weight, const float* mean, const float* root, AdamRates rates,
                  float correction, std::size_t begin, std::size_t end);

}  // namespace headroom::host
