// restart(n): after every n batches, such as those of an epoch, the whole pipeline behind it is
// destroyed and built again: threads end, buffers and caches are freed, files are reopened and the
// batches begin again from the first one, in the same order. This models a loop over epochs that
// creates its iterator inside the loop: training waits for the first batch of every epoch, and host
// memory is allocated and freed each time. (PyTorch's DataLoader keeps its worker processes with
// persistent_workers=True only.) Costs no memory of its own.
#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/workload/pipeline.h"

namespace headroom {
namespace {

std::int64_t batches_of(const Spec& spec) { return spec.integer("value", 0); }

class Restart final : public BatchStage {
 public:
  Restart(const Spec& spec, std::unique_ptr<BatchStage> inner, const StageContext& context)
      : BatchStage(spec.to_string()),
        inner_(std::move(inner)),
        rebuild_(context.rebuild),
        batches_(batches_of(spec)) {}

  Reason why_not_engaged() const override {
    if (restarts_ > 0) return std::nullopt;
    return "the run ended before that many batches; take more steps or fewer batches";
  }

 private:
  void do_next(BatchBuffers inputs) override {
    if (taken_ == batches_) {
      inner_ = rebuild_(std::move(inner_));
      taken_ = 0;
      ++restarts_;
    }
    inner_->next(inputs);
    ++taken_;
  }

  std::map<std::string, std::uint64_t> counters() const override {
    return {{"restarts", restarts_}};
  }

  std::unique_ptr<BatchStage> inner_;
  std::function<std::unique_ptr<BatchStage>(std::unique_ptr<BatchStage>)> rebuild_;
  std::int64_t batches_;
  std::int64_t taken_ = 0;
  std::uint64_t restarts_ = 0;
};

const bool restart_is_registered = Registry<StageKind>::instance().add(
    {.name = "restart",
     .summary = "Destroys and rebuilds every stage behind it after the given number of batches",
     .parameters = {"value"},
     .examples = {"restart(3)|prefetch(2)|stream", "restart(2)|direct"},
     .check =
         [](const Spec& spec) {
           if (batches_of(spec) < 1)
             throw InputError(
                 "restart: give the number of batches of an epoch, as in restart(100)");
         },
     .rebuilds = true,
     .over_batches = [](const Spec& spec, StageKind::Batches inner,
                        const StageContext& context) -> StageKind::Batches {
       return std::make_unique<Restart>(spec, std::move(inner), context);
     },
     .full_bytes = [](const Spec&, Bytes) -> std::optional<Bytes> { return 0; }});

}  // namespace
}  // namespace headroom
