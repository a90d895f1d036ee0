#include "strategies/pipeline/ahead.h"

#include <algorithm>
#include <utility>

namespace headroom {
namespace {

constexpr std::size_t kMostAutomatic = 16;

}  // namespace

BatchesAhead::BatchesAhead(std::string name, std::unique_ptr<BatchStage> inner,
                           const StageContext& context, Options options)
    : BatchStage(std::move(name)),
      inner_(std::move(inner)),
      sizes_(context.batch_sizes),
      stop_(context.stop),
      options_(std::move(options)),
      depth_(options_.depth),
      worker_([this] { work(); }) {}

BatchesAhead::~BatchesAhead() {
  stop_.request_stop();
  worker_.join();
}

void BatchesAhead::do_next(BatchBuffers inputs) {
  std::unique_ptr<BatchPlace> place = take();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    std::copy(place->inputs()[i].begin(), place->inputs()[i].end(), inputs[i].begin());
  give_back(std::move(place));
}

std::unique_ptr<BatchPlace> BatchesAhead::take() {
  std::unique_lock lock(mutex_);
  note_what_is_there();
  if (!changed_.wait(lock, stop_.get_token(), [&] { return !ready_.empty() || error_; }))
    throw PipelineStopped{};
  if (ready_.empty()) std::rethrow_exception(error_);
  std::unique_ptr<BatchPlace> place = std::move(ready_.front());
  ready_.pop_front();
  return place;
}

void BatchesAhead::give_back(std::unique_ptr<BatchPlace> place) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(place));
  --in_use_;
  changed_.notify_all();
}

void BatchesAhead::note_what_is_there() {
  if (++asked_.times > 1) {
    asked_.ready += ready_.empty() ? 0 : 1;
    asked_.under_way += ready_.empty() && in_use_ > 0 ? 1 : 0;
  }
  if (options_.rule == Depth::grows && ready_.empty() && was_full_) {
    depth_ = std::min(2 * depth_, kMostAutomatic);
    was_full_ = false;
    changed_.notify_all();
  }
}

void BatchesAhead::work() {
  try {
    for (std::uint64_t batch = 0;; ++batch) make(batch);
  } catch (const PipelineStopped&) {  // no consumer is left
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    changed_.notify_all();
  }
}

void BatchesAhead::make(std::uint64_t batch) {
  std::unique_ptr<BatchPlace> place = take_free();
  const Bytes before = place->bytes();
  place->fit(sizes_(batch));
  hold(place->bytes() - before);
  inner_->next(place->inputs());
  const std::lock_guard lock(mutex_);
  ready_.push_back(std::move(place));
  most_ready_ = std::max(most_ready_, ready_.size());
  was_full_ = was_full_ || ready_.size() == depth_;
  changed_.notify_all();
}

std::unique_ptr<BatchPlace> BatchesAhead::take_free() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait(lock, stop_.get_token(), [&] { return in_use_ < depth_; }))
    throw PipelineStopped{};
  ++in_use_;
  if (free_.empty()) return options_.make_place();
  std::unique_ptr<BatchPlace> place = std::move(free_.back());
  free_.pop_back();
  return place;
}

BatchesAhead::Asked BatchesAhead::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

std::map<std::string, std::uint64_t> BatchesAhead::counters() const {
  const std::lock_guard lock(mutex_);
  return {{"depth", depth_},
          {"most_ready", most_ready_},
          {"asked_after_the_first", asked_.times > 0 ? asked_.times - 1 : 0},
          {"ready_when_asked", asked_.ready},
          {"under_way_when_asked", asked_.under_way}};
}

}  // namespace headroom
