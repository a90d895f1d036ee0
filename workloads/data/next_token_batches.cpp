#include "workloads/data/next_token_batches.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "harness/base/error.h"
#include "workloads/data/numbers.h"

namespace headroom {
namespace {

class NextTokenBatches final : public BatchSource {
 public:
  NextTokenBatches(EncodedText text, NextTokenOptions options)
      : text_(std::move(text)), options_(options), random_(options.seed), keys_(options.seed) {
    if (static_cast<std::int64_t>(text_.tokens.size()) <= options_.sequence)
      throw InputError(fmt::format(
          "the text has {} tokens, but a sequence and its last label take {}; name more text with "
          "data= or take a shorter sequence",
          text_.tokens.size(), options_.sequence + 1));
  }

  void next_training_batch(std::span<const std::span<std::byte>> inputs) override {
    const Numbers tokens = numbers(inputs[0]);
    const Numbers positions = numbers(inputs[1]);
    const Numbers labels = numbers(inputs[2]);
    const auto length = tokens.size() / static_cast<std::size_t>(options_.batch);
    for (std::size_t first = 0; first < tokens.size(); first += length) {
      const std::size_t read = random_() % (text_.tokens.size() - length);
      for (std::size_t i = 0; i < length; ++i) {
        tokens[first + i] = text_.tokens[read + i];
        positions[first + i] = static_cast<std::int32_t>(i);
        labels[first + i] = text_.tokens[read + i + 1];
      }
    }
    if (inputs.size() > 3) keys_.write_next(numbers(inputs[3]));
  }

  bool next_held_out_batch(std::span<const std::span<std::byte>>) override { return false; }
  void restart_held_out() override {}

 private:
  EncodedText text_;
  NextTokenOptions options_;
  std::mt19937_64 random_;
  DropoutKeys keys_;
};

}  // namespace

std::unique_ptr<BatchSource> make_next_token_batches(EncodedText text, NextTokenOptions options) {
  return std::make_unique<NextTokenBatches>(std::move(text), options);
}

}  // namespace headroom
