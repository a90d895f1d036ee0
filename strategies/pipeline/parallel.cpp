#include "strategies/pipeline/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <latch>
#include <mutex>
#include <thread>
#include <utility>

#include "harness/base/error.h"

namespace headroom {
namespace {

class Parallel final : public RecordStage {
 public:
  Parallel(std::unique_ptr<RecordStage> inner, std::stop_source stop, ParallelOptions options)
      : RecordStage(options.name),
        inner_(std::move(inner)),
        stop_(std::move(stop)),
        options_(std::move(options)),
        all_here_(static_cast<std::ptrdiff_t>(options_.threads)),
        loaded_by_(static_cast<std::size_t>(options_.threads)) {}

  ~Parallel() override {
    stop_.request_stop();
    workers_.clear();
  }

  Reason why_not_engaged() const override {
    const std::lock_guard lock(mutex_);
    const auto busy = std::count_if(loaded_by_.begin(), loaded_by_.end(),
                                    [](std::uint64_t loaded) { return loaded > 0; });
    if (busy == options_.threads || busy > 1) return std::nullopt;
    return fmt::format("{} of {} threads loaded anything", busy, options_.threads);
  }

 private:
  struct Result {
    Element element;
    std::exception_ptr error;
  };

  Element do_next() override {
    if (workers_.empty()) start();
    std::unique_lock lock(mutex_);
    const bool there = changed_.wait(lock, stop_.get_token(), [&] { return is_next_done(); });
    if (!there) throw PipelineStopped{};
    if (done_.begin()->second.error) std::rethrow_exception(done_.begin()->second.error);
    Element element = std::move(done_.extract(done_.begin()).mapped().element);
    ++delivered_;
    release(element.bytes.size());
    changed_.notify_all();
    return element;
  }
  void do_load(Element&) override {}  // loaded by a worker

  bool is_next_done() const { return !done_.empty() && done_.begin()->first == delivered_; }

  void start() {
    for (std::int64_t i = 0; i < options_.threads; ++i)
      workers_.emplace_back([this, i] { work(static_cast<std::size_t>(i)); });
  }

  void work(std::size_t worker) {
    all_here_.arrive_and_wait();  // otherwise the first thread to start might take all elements
    try {
      while (load_one(worker)) {
      }
    } catch (const PipelineStopped&) {  // no consumer is left
    }
  }

  // Returns false after an error, because later elements would follow a gap.
  bool load_one(std::size_t worker) {
    Result result;
    std::int64_t ticket = 0;
    if (!take_turn(ticket)) return false;
    guarded(result, [&] {
      result.element = inner_->next();
      if (options_.delivery == Delivery::as_finished) let_the_epoch_end(result.element, ticket);
    });
    end_turn(result);
    if (!result.error) guarded(result, [&] { inner_->load(result.element); });
    const std::lock_guard lock(mutex_);
    const bool good = !result.error;
    if (good) {
      hold(result.element.bytes.size());
      ++loaded_by_[worker];
    } else {
      failed_ = true;
    }
    done_.emplace(options_.delivery == Delivery::ordered ? ticket : finished_, std::move(result));
    ++finished_;
    changed_.notify_all();
    return good;
  }

  template <typename Work>
  static void guarded(Result& result, const Work& work) {
    try {
      work();
    } catch (const PipelineStopped&) {
      throw;
    } catch (...) {
      result.error = std::current_exception();
    }
  }

  // One worker at a time asks the stage behind for the next element, in order of arrival: a mutex
  // could be taken again by the worker that just released it.
  bool take_turn(std::int64_t& ticket) {
    std::unique_lock lock(mutex_);
    const std::int64_t place = waiting_++;
    const bool room = changed_.wait(lock, stop_.get_token(), [&] {
      return served_ == place && (failed_ || issued_ - delivered_ < 2 * options_.threads);
    });
    if (!room) throw PipelineStopped{};
    if (failed_) {
      ++served_;
      changed_.notify_all();
      return false;
    }
    ticket = issued_++;
    return true;
  }

  void end_turn(const Result& result) {
    const std::lock_guard lock(mutex_);
    failed_ = failed_ || result.error;
    ++served_;
    changed_.notify_all();
  }

  void let_the_epoch_end(const Element& element, std::int64_t ticket) {
    if (std::exchange(epoch_, element.epoch) == element.epoch) return;
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop_.get_token(), [&] { return finished_ == ticket; }))
      throw PipelineStopped{};
  }

  std::map<std::string, std::uint64_t> counters() const override {
    const std::lock_guard lock(mutex_);
    std::map<std::string, std::uint64_t> counters;
    for (std::size_t i = 0; i < loaded_by_.size(); ++i)
      counters[fmt::format("loaded_by_thread_{}", i + 1)] = loaded_by_[i];
    return counters;
  }

  std::unique_ptr<RecordStage> inner_;
  std::stop_source stop_;
  ParallelOptions options_;
  std::latch all_here_;
  std::int64_t epoch_ = 0;    // epoch of the worker whose turn it is
  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable_any changed_;
  std::map<std::int64_t, Result> done_;  // by ticket
  std::int64_t waiting_ = 0;             // total number of tickets taken
  std::int64_t served_ = 0;
  std::int64_t issued_ = 0;
  std::int64_t finished_ = 0;
  std::int64_t delivered_ = 0;
  bool failed_ = false;
  std::vector<std::uint64_t> loaded_by_;
  std::vector<std::jthread> workers_;
};

}  // namespace

std::unique_ptr<RecordStage> make_parallel(std::unique_ptr<RecordStage> inner,
                                           const StageContext& context, ParallelOptions options) {
  return std::make_unique<Parallel>(std::move(inner), context.stop, std::move(options));
}

std::int64_t threads_of(const Spec& spec, const std::string& key, std::int64_t otherwise) {
  const std::int64_t threads = spec.integer(key, otherwise);
  if (threads < 1 || threads > 256)
    throw InputError(
        fmt::format("{}: {} threads are not possible; use 1 to 256", spec.to_string(), threads));
  return threads;
}

}  // namespace headroom
