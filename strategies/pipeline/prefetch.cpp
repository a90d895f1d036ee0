// prefetch(n): a separate thread makes up to n batches ahead of the training thread, including the
// one in work and the one being copied out. Costs n batches of host memory and a copy of each
// batch; a step then takes the longer of loading and training, not their sum, as far as the cores
// suffice for both. prefetch(auto) starts with one and doubles the number, up to 16, each time the
// training thread finds none after they had all been full (the rule of tf.data's prefetch
// autotuner).
#include <memory>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "strategies/pipeline/ahead.h"

namespace headroom {
namespace {

bool is_automatic(const Spec& spec) { return spec.text("value", "") == "auto"; }

std::int64_t depth_of(const Spec& spec) {
  return is_automatic(spec) ? 1 : spec.integer("value", 0);
}

class HeapPlace final : public BatchPlace {
 public:
  void fit(const std::vector<Bytes>& sizes) override {
    memory_.resize(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) memory_[i].resize(sizes[i]);
    inputs_.assign(memory_.begin(), memory_.end());
  }
  Bytes bytes() const override {
    Bytes sum = 0;
    for (const auto& input : memory_) sum += input.capacity();
    return sum;
  }

 private:
  std::vector<std::vector<std::byte>> memory_;
};

class Prefetch final : public BatchesAhead {
 public:
  Prefetch(const Spec& spec, std::unique_ptr<BatchStage> inner, const StageContext& context)
      : BatchesAhead(spec.to_string(), std::move(inner), context,
                     {.depth = static_cast<std::size_t>(depth_of(spec)),
                      .rule = is_automatic(spec) ? Depth::grows : Depth::fixed,
                      .make_place = [] { return std::make_unique<HeapPlace>(); }}) {}

  // The first batch is not considered, because the pipeline may have just begun.
  Reason why_not_engaged() const override {
    const Asked found = asked();
    if (found.times < 2) return "only one batch was requested, so none could be made ahead";
    if (found.ready + found.under_way > 0) return std::nullopt;
    return "whenever a batch was requested, none was ready or being made";
  }
};

const bool prefetch_is_registered = Registry<StageKind>::instance().add(
    {.name = "prefetch",
     .summary = "A thread makes up to the given number of batches ahead; auto raises the number as "
                "needed, up to 16",
     .parameters = {"value"},
     .examples = {"prefetch(2)", "prefetch(1)|stream", "prefetch(auto)|memory"},
     .check =
         [](const Spec& spec) {
           if (depth_of(spec) < 1 || depth_of(spec) > 10'000)
             throw InputError(
                 "prefetch: give the number of batches, as in prefetch(2) or prefetch(auto)");
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
