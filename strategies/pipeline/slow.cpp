// slow(ms=1): delays each element, as a slow disk (by=sleep) or a costly transformation
// (by=compute, which takes a core away from training) would. It serves to measure how much hiding
// this delay gains. In front of a source of batches an element is a batch.
#include <ctime>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/workload/pipeline.h"

namespace headroom {
namespace {

std::uint64_t thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

class Delay {
 public:
  Delay(const Spec& spec, const StageContext& context)
      : ns_(static_cast<std::uint64_t>(1e6 * spec.number("ms", 0))),
        computes_(spec.text("by", "sleep") == "compute"),
        stop_(context.stop.get_token()) {}

  void operator()() const {
    if (!computes_) return sleep_unless_stopped(ns_, stop_);
    const std::uint64_t start = thread_cpu_ns();
    while (thread_cpu_ns() - start < ns_)
      if (stop_.stop_requested()) throw PipelineStopped{};
  }

 private:
  std::uint64_t ns_;
  bool computes_;
  std::stop_token stop_;
};

class SlowRecords final : public RecordStage {
 public:
  SlowRecords(const Spec& spec, std::unique_ptr<RecordStage> inner, const StageContext& context)
      : RecordStage(spec.to_string()), inner_(std::move(inner)), delay_(spec, context) {}

 private:
  Element do_next() override { return inner_->next(); }
  void do_load(Element& element) override {
    inner_->load(element);
    delay_();
  }

  std::unique_ptr<RecordStage> inner_;
  Delay delay_;
};

class SlowBatches final : public BatchStage {
 public:
  SlowBatches(const Spec& spec, std::unique_ptr<BatchStage> inner, const StageContext& context)
      : BatchStage(spec.to_string()), inner_(std::move(inner)), delay_(spec, context) {}

 private:
  void do_next(BatchBuffers inputs) override {
    inner_->next(inputs);
    delay_();
  }

  std::unique_ptr<BatchStage> inner_;
  Delay delay_;
};

void check(const Spec& spec) {
  const std::string by = spec.text("by", "sleep");
  if (by != "sleep" && by != "compute")
    throw InputError(spec.to_string() + ": by= must be sleep or compute");
  const double ms = spec.number("ms", 0);
  if (!(ms > 0) || ms > 60'000)
    throw InputError(spec.to_string() + ": give the milliseconds, as in slow(ms=2)");
}

const bool slow_is_registered = Registry<StageKind>::instance().add(
    {.name = "slow",
     .summary = "Takes ms= milliseconds for each element on purpose, asleep or, with by=compute, "
                "computing",
     .parameters = {"by", "ms"},
     .examples = {"slow(ms=0.5)|stream", "prefetch(2)|slow(by=compute,ms=1)|direct"},
     .check = check,
     .over_records = [](const Spec& spec, StageKind::Records inner,
                        const StageContext& context) -> StageKind::Records {
       return std::make_unique<SlowRecords>(spec, std::move(inner), context);
     },
     .over_batches = [](const Spec& spec, StageKind::Batches inner,
                        const StageContext& context) -> StageKind::Batches {
       return std::make_unique<SlowBatches>(spec, std::move(inner), context);
     }});

}  // namespace
}  // namespace headroom
