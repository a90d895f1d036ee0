// Declares all work of our own, by kind of op. nvcc compiles each family in a file of its own.
#pragma once

#include <array>

#include "harness/device/cuda/module/work/matrix_places.h"
#include "harness/device/cuda/module/work/work.h"

namespace headroom::cuda {

template <typename Queue>
Works<Queue> accumulate_works();
template <typename Queue>
Works<Queue> adafactor_works();
template <typename Queue>
Works<Queue> adam8bit_works();
template <typename Queue>
Works<Queue> average_pool_works();
template <typename Queue>
Works<Queue> batch_norm_works();
template <typename Queue>
Works<Queue> cast_works();
template <typename Queue>
Works<Queue> dropout_works();
template <typename Queue>
Works<Queue> elementwise_works();
template <typename Queue>
Works<Queue> gather_works();
template <typename Queue>
Works<Queue> gradient_works();
template <typename Queue>
Works<Queue> hit_works();
template <typename Queue>
Works<Queue> layer_norm_works();
template <typename Queue>
Works<Queue> lifetime_works();
template <typename Queue>
Works<Queue> loss_works();
template <typename Queue>
Works<Queue> max_pool_works();
template <typename Queue>
Works<Queue> prune_works();
template <typename Queue>
Works<Queue> quantise_works();
template <typename Queue>
Works<Queue> resample_works();
template <typename Queue>
Works<Queue> sigmoid_loss_works();
template <typename Queue>
Works<Queue> softmax_works();
template <typename Queue>
Works<Queue> update_list_works();
template <typename Queue>
Works<Queue> update_works();

// Parts of linear layers, see own_kernel.h.
template <typename Queue>
Work<Queue> bias_gradient_work(const Op& op, const Program& program);
template <typename Queue>
Work<Queue> add_bias_work(const Value& y);
template <typename Queue>
Work<Queue> transpose_bytes_work(Index rows, Index columns);
template <typename Queue>
Work<Queue> matrix_addresses_work(Index calls, Index batch, const MatrixPlaces& places);

template <typename Queue>
Works<Queue> every_work() {
  Works<Queue> all;
  std::array families = {
      accumulate_works<Queue>(),   adafactor_works<Queue>(),   adam8bit_works<Queue>(),
      average_pool_works<Queue>(), batch_norm_works<Queue>(),  cast_works<Queue>(),
      dropout_works<Queue>(),      elementwise_works<Queue>(), gather_works<Queue>(),
      gradient_works<Queue>(),     hit_works<Queue>(),         layer_norm_works<Queue>(),
      lifetime_works<Queue>(),     loss_works<Queue>(),        max_pool_works<Queue>(),
      prune_works<Queue>(),        quantise_works<Queue>(),    resample_works<Queue>(),
      sigmoid_loss_works<Queue>(), softmax_works<Queue>(),     update_list_works<Queue>(),
      update_works<Queue>()};
  for (Works<Queue>& family : families) all.merge(family);
  return all;
}

}  // namespace headroom::cuda
