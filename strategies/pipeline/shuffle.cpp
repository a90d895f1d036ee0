// shuffle(n): reads records in the order of the files into a buffer of n and passes on a random
// element of the buffer, as tf.data's shuffle does before repeat: epochs do not mix, each shows
// every record once. Costs the bytes of n elements. A buffer smaller than the data shuffles locally
// only: the first batch comes from the first n + batch records.
#include <atomic>
#include <optional>
#include <random>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/workload/pipeline.h"

namespace headroom {
namespace {

std::int64_t buffer_of(const Spec& spec) { return spec.integer("value", 0); }

class Shuffle final : public RecordStage {
 public:
  Shuffle(const Spec& spec, std::unique_ptr<RecordStage> inner, const StageContext& context)
      : RecordStage(spec.to_string()),
        inner_(std::move(inner)),
        capacity_(static_cast<std::size_t>(buffer_of(spec))),
        // A different random stream from the workload's own.
        random_(context.seed ^ 0x73687566666C6500ULL) {}

  Reason why_not_engaged() const override {
    return unless(moved_ > 0, "every record stayed in its place; use a larger buffer");
  }

 private:
  Element do_next() override {
    refill();
    std::swap(buffer_[random_() % buffer_.size()], buffer_.back());
    Element chosen = std::move(buffer_.back());
    buffer_.pop_back();
    release(chosen.bytes.size());
    if (chosen.position != position_) ++moved_;
    chosen.position = position_++;
    return chosen;
  }
  void do_load(Element&) override {}  // loaded when it entered the buffer

  void refill() {
    while (buffer_.size() < capacity_) {
      if (!next_) next_ = inner_->next();
      if (!buffer_.empty() && next_->epoch != buffer_.front().epoch) return;
      inner_->load(*next_);
      hold(next_->bytes.size());
      buffer_.push_back(std::move(*next_));
      next_.reset();
    }
  }
  std::map<std::string, std::uint64_t> counters() const override { return {{"moved", moved_}}; }

  std::unique_ptr<RecordStage> inner_;
  std::size_t capacity_;
  std::mt19937_64 random_;
  std::vector<Element> buffer_;
  std::optional<Element> next_;  // announced but not loaded; the buffer is drained first
  std::int64_t position_ = 0;
  std::atomic<std::uint64_t> moved_ = 0;
};

const bool shuffle_is_registered = Registry<StageKind>::instance().add(
    {.name = "shuffle",
     .summary = "Draws records at random from a buffer of the given number, which is filled in the "
                "order of "
                "the files",
     .parameters = {"value"},
     .examples = {"shuffle(64)|stream", "prefetch(2)|map(threads=2)|shuffle(64)|cache|stream"},
     .check =
         [](const Spec& spec) {
           if (buffer_of(spec) < 1)
             throw InputError(
                 "shuffle: give the number of records in its buffer, as in shuffle(10000)");
         },
     .loads_ahead = [](const Spec&) { return true; },
     .needs_file_order = true,
     .over_records = [](const Spec& spec, StageKind::Records inner,
                        const StageContext& context) -> StageKind::Records {
       return std::make_unique<Shuffle>(spec, std::move(inner), context);
     }});

}  // namespace
}  // namespace headroom
