// cache: keeps every element it has passed on, and loads none twice. Behind `map` it keeps records
// as stored; in front of it, samples as decoded: no decoding in later epochs, for several times the
// bytes. tf.data replays the order of the first epoch; this one follows the order of each.
#include <fmt/format.h>

#include <mutex>
#include <unordered_map>

#include "harness/base/registry.h"
#include "harness/workload/pipeline.h"

namespace headroom {
namespace {

class Cache final : public RecordStage {
 public:
  explicit Cache(std::unique_ptr<RecordStage> inner)
      : RecordStage("cache"), inner_(std::move(inner)) {}

  Reason why_not_engaged() const override {
    const std::lock_guard lock(mutex_);
    if (hits_ > 0) return std::nullopt;
    return fmt::format(
        "the run ended within the first epoch, after {} records, so no record was requested twice; "
        "take more steps or a shorter epoch",
        kept_.size());
  }

 private:
  Element do_next() override { return inner_->next(); }

  void do_load(Element& element) override {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = kept_.find(element.record); found != kept_.end()) {
        element.bytes = found->second;
        ++hits_;
        return;
      }
    }
    inner_->load(element);
    const std::lock_guard lock(mutex_);
    if (kept_.emplace(element.record, element.bytes).second) hold(element.bytes.size());
  }

  std::map<std::string, std::uint64_t> counters() const override {
    const std::lock_guard lock(mutex_);
    return {{"hits", hits_}, {"kept", kept_.size()}};
  }

  std::unique_ptr<RecordStage> inner_;
  mutable std::mutex mutex_;
  std::unordered_map<std::int64_t, std::vector<std::byte>> kept_;  // by record
  std::uint64_t hits_ = 0;
};

const bool cache_is_registered = Registry<StageKind>::instance().add(
    {.name = "cache",
     .summary = "Keeps every element: later epochs load nothing",
     .parameters = {},
     .examples = {"cache|stream", "cache|map|stream"},
     .saves_loading = true,
     .over_records = [](const Spec&, StageKind::Records inner, const StageContext&)
         -> StageKind::Records { return std::make_unique<Cache>(std::move(inner)); }});

}  // namespace
}  // namespace headroom
