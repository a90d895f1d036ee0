// prefetch(n): a thread of its own makes batches ahead of the training thread, at most n of them,
// the one in work and the one being copied out included. Costs n batches of host memory and a copy
// of each batch; a step then takes the longer of loading and training, not their sum, as far as the
// cores suffice for both. prefetch(auto) starts with one and doubles the number, up to 16, each
// time the training thread finds none after they had all been full (the rule of tf.data's
// prefetch autotuner).
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/pipeline/pipeline.h"

namespace headroom {
namespace {

constexpr std::size_t kMostAutomatic = 16;

bool is_automatic(const Spec& spec) { return spec.text("value", "") == "auto"; }

std::int64_t depth_of(const Spec& spec) {
  return is_automatic(spec) ? 1 : spec.integer("value", 0);
}

class Prefetch final : public BatchStage {
 public:
  Prefetch(const Spec& spec, std::unique_ptr<BatchStage> inner, const StageContext& context)
      : BatchStage(spec.to_string()),
        inner_(std::move(inner)),
        sizes_(context.batch_sizes),
        stop_(context.stop),
        automatic_(is_automatic(spec)),
        depth_(static_cast<std::size_t>(depth_of(spec))),
        worker_([this] { work(); }) {}

  ~Prefetch() override {
    stop_.request_stop();
    worker_.join();
  }

  // Of the first batch nothing is asked: the pipeline may have begun a moment before.
  std::string why_not_engaged() const override {
    const std::lock_guard lock(mutex_);
    if (asked_ < 2) return "only one batch was asked for, so that none could be made ahead";
    if (ready_when_asked_ + under_way_when_asked_ > 0) return "";
    return "whenever a batch was asked for, none was ready and none under way";
  }

 private:
  using Slot = std::vector<std::vector<std::byte>>;

  void do_next(BatchBuffers inputs) override {
    Slot slot = take_ready();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      std::copy(slot[i].begin(), slot[i].end(), inputs[i].begin());
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(slot));
    --in_use_;
    changed_.notify_all();
  }

  Slot take_ready() {
    std::unique_lock lock(mutex_);
    note_what_is_there();
    if (!changed_.wait(lock, stop_.get_token(), [&] { return !ready_.empty() || error_; }))
      throw PipelineStopped{};
    if (ready_.empty()) std::rethrow_exception(error_);
    Slot slot = std::move(ready_.front());
    ready_.pop_front();
    return slot;
  }

  void note_what_is_there() {
    if (++asked_ > 1) {
      ready_when_asked_ += ready_.empty() ? 0 : 1;
      under_way_when_asked_ += ready_.empty() && in_use_ > 0 ? 1 : 0;
    }
    if (automatic_ && ready_.empty() && was_full_) {
      depth_ = std::min(2 * depth_, kMostAutomatic);
      was_full_ = false;
      changed_.notify_all();
    }
  }

  void work() {
    try {
      for (std::uint64_t batch = 0;; ++batch) make(batch);
    } catch (const PipelineStopped&) {  // nobody waits for more
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      changed_.notify_all();
    }
  }

  void make(std::uint64_t batch) {
    Slot slot = take_free();
    const std::vector<Bytes> sizes = sizes_(batch);
    slot.resize(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const Bytes before = slot[i].capacity();
      slot[i].resize(sizes[i]);
      hold(slot[i].capacity() - before);
    }
    inner_->next(std::vector<std::span<std::byte>>(slot.begin(), slot.end()));
    const std::lock_guard lock(mutex_);
    ready_.push_back(std::move(slot));
    most_ready_ = std::max(most_ready_, ready_.size());
    was_full_ = was_full_ || ready_.size() == depth_;
    changed_.notify_all();
  }

  Slot take_free() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop_.get_token(), [&] { return in_use_ < depth_; }))
      throw PipelineStopped{};
    ++in_use_;
    if (free_.empty()) return {};
    Slot slot = std::move(free_.back());
    free_.pop_back();
    return slot;
  }

  std::map<std::string, std::uint64_t> counters() const override {
    const std::lock_guard lock(mutex_);
    return {{"depth", depth_},
            {"most_ready", most_ready_},
            {"asked_after_the_first", asked_ > 0 ? asked_ - 1 : 0},
            {"ready_when_asked", ready_when_asked_},
            {"under_way_when_asked", under_way_when_asked_}};
  }

  std::unique_ptr<BatchStage> inner_;
  BatchSizes sizes_;
  std::stop_source stop_;
  bool automatic_;
  mutable std::mutex mutex_;  // of all below
  std::condition_variable_any changed_;
  std::size_t depth_;
  std::size_t in_use_ = 0;  // in work, ready or being copied out
  std::deque<Slot> ready_;
  std::vector<Slot> free_;
  std::exception_ptr error_;
  bool was_full_ = false;  // since the depth was set
  std::size_t most_ready_ = 0;
  std::uint64_t asked_ = 0;
  std::uint64_t ready_when_asked_ = 0;
  std::uint64_t under_way_when_asked_ = 0;
  std::jthread worker_;  // last: it uses all of the above
};

const bool prefetch_is_registered = Registry<StageKind>::instance().add(
    {.name = "prefetch",
     .summary = "A thread makes at most so many batches ahead; auto: as many as it takes, up to 16",
     .parameters = {"value"},
     .examples = {"prefetch(2)", "prefetch(1)|stream", "prefetch(auto)|memory"},
     .check =
         [](const Spec& spec) {
           if (depth_of(spec) < 1 || depth_of(spec) > 10'000)
             throw InputError("prefetch: name the batches, as in prefetch(2) or prefetch(auto)");
         },
     .over_batches = [](const Spec& spec, StageKind::Batches inner,
                        const StageContext& context) -> StageKind::Batches {
       return std::make_unique<Prefetch>(spec, std::move(inner), context);
     },
     .full_bytes = [](const Spec& spec, Bytes batch) -> std::optional<Bytes> {
       if (is_automatic(spec)) return std::nullopt;
       return static_cast<Bytes>(depth_of(spec)) * batch;
     }});

}  // namespace
}  // namespace headroom
