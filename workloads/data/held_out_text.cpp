#include "workloads/data/held_out_text.h"

#include <algorithm>
#include <utility>

namespace headroom {
namespace {

class HeldOutText final : public BatchSource {
 public:
  HeldOutText(EncodedText text, std::ptrdiff_t held_out, TextBatches make)
      : make_(std::move(make)) {
    end_.vocabulary = text.vocabulary;
    end_.tokens.assign(text.tokens.end() - held_out, text.tokens.end());
    text.tokens.erase(text.tokens.end() - held_out, text.tokens.end());
    training_ = make_(std::move(text));
    restart_held_out();
  }

  void next_training_batch(std::span<const std::span<std::byte>> inputs) override {
    training_->next_training_batch(inputs);
  }
  bool next_held_out_batch(std::span<const std::span<std::byte>> inputs) override {
    held_out_->next_training_batch(inputs);
    return true;
  }
  void restart_held_out() override { held_out_ = make_(end_); }
  Reason why_not_engaged() const override { return training_->why_not_engaged(); }

 private:
  TextBatches make_;
  EncodedText end_;
  std::unique_ptr<BatchSource> training_, held_out_;
};

}  // namespace

std::unique_ptr<BatchSource> with_held_out_text(EncodedText text, std::int64_t least,
                                                TextBatches make) {
  const auto tokens = static_cast<std::int64_t>(text.tokens.size());
  const std::int64_t held_out = std::min(tokens, std::max(tokens / 10, least));
  return std::make_unique<HeldOutText>(std::move(text), held_out, std::move(make));
}

}  // namespace headroom
