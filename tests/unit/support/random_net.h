// A workload of small random networks: images or vectors, residual sums, values and weights with
// several readers, and data for batches of any size.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "harness/workload/workload.h"

namespace headroom::testing {

// Features of a network that an accumulating step handles differently.
struct NetTraits {
  bool across_samples = false;  // batch normalisation, and dropout's one key for the whole batch
  bool ignored_labels = false;  // not as many in each part of a batch
};

// The network and its data depend only on `seed` and the traits: the parts of a batch, taken in
// order, equal the batch.
class RandomNet final : public Workload {
 public:
  RandomNet(std::uint64_t seed, std::int64_t batch, NetTraits traits)
      : seed_(seed), batch_(batch), traits_(traits) {}

  Program training_forward() const override;
  std::optional<Program> evaluation() const override { return std::nullopt; }
  std::int64_t batch_size() const override { return batch_; }
  std::unique_ptr<BatchSource> open_data(std::uint64_t seed) const override;

 private:
  std::uint64_t seed_;
  std::int64_t batch_;
  NetTraits traits_;
};

}  // namespace headroom::testing
