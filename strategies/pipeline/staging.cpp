// staging(n): a separate thread makes batches in host memory that the device copies from by itself,
// at most n of them, including the one in work and those being copied. The inputs of a step are
// copied to the device while the previous step computes, as PyTorch does with pin_memory=True and a
// copying stream (NVIDIA Apex's data_prefetcher) and TensorFlow with prefetch_to_device. On cuda
// the memory is page-locked (cudaHostAlloc) and the copies have a stream of their own. On host the
// same ring and bookkeeping use ordinary pages: memcpy needs no page-locked memory, nothing
// overlaps a copy, and locking would only use up the process's limit (RLIMIT_MEMLOCK). Costs n
// batches of host memory, and on the device the inputs of the next step. Compared with prefetch(n)
// it saves the copy from its buffer to the trainer's.
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "strategies/pipeline/ahead.h"

namespace headroom {
namespace {

constexpr Bytes kInputAlignment = 256;  // as cudaMalloc; enough for loads of any type

std::int64_t staged_of(const Spec& spec) { return spec.integer("value", 0); }

class StagedPlace final : public BatchPlace {
 public:
  explicit StagedPlace(std::shared_ptr<DeviceMemory> memory) : memory_(std::move(memory)) {}
  ~StagedPlace() override { give_back(); }

  void fit(const std::vector<Bytes>& sizes) override {
    Bytes needed = 0;
    for (const Bytes size : sizes) needed += align_up(size, kInputAlignment);
    if (!segment_ || segment_->size < needed) {
      give_back();
      segment_ = memory_->allocate(std::max(needed, kInputAlignment));
    }
    inputs_.clear();
    std::byte* at = segment_->data;
    for (const Bytes size : sizes) {
      inputs_.emplace_back(at, size);
      at += align_up(size, kInputAlignment);
    }
  }
  Bytes bytes() const override { return segment_ ? segment_->charged : 0; }

 private:
  void give_back() {
    if (segment_) memory_->free(*segment_);
    segment_.reset();
  }

  std::shared_ptr<DeviceMemory> memory_;
  std::optional<Segment> segment_;
};

class Staging final : public BatchesAhead {
 public:
  Staging(const Spec& spec, std::unique_ptr<BatchStage> inner, const StageContext& context,
          const std::shared_ptr<DeviceMemory>& memory)
      : BatchesAhead(spec.to_string(), std::move(inner), context,
                     {.depth = static_cast<std::size_t>(staged_of(spec)),
                      .make_place = [memory] { return std::make_unique<StagedPlace>(memory); }}) {}

  Reason why_not_engaged() const override {
    return unless(lent_ > 0, "no staged batch was copied to a device");
  }

 private:
  LentBatch do_lend() override {
    const std::shared_ptr<BatchPlace> place(take().release(), [this](BatchPlace* copied) {
      give_back(std::unique_ptr<BatchPlace>(copied));
    });
    ++lent_;
    return {place, &place->inputs()};
  }

  std::map<std::string, std::uint64_t> counters() const override {
    auto all = BatchesAhead::counters();
    all["lent"] = lent_;
    return all;
  }

  std::atomic<std::uint64_t> lent_ = 0;
};

const bool staging_is_registered = Registry<StageKind>::instance().add(
    {.name = "staging",
     .summary = "Makes up to the given number of batches ahead in memory that the device copies "
                "from while it "
                "computes",
     .parameters = {"value"},
     .examples = {"staging(2)", "staging(2)|stream"},
     .check =
         [](const Spec& spec) {
           if (staged_of(spec) < 1 || staged_of(spec) > 10'000)
             throw InputError("staging: give the number of batches, as in staging(2)");
         },
     .staged_batches = [](const Spec& spec) { return static_cast<std::size_t>(staged_of(spec)); },
     .over_batches = [](const Spec& spec, StageKind::Batches inner,
                        const StageContext& context) -> StageKind::Batches {
       if (!context.make_host_memory) throw Error("staging: there is no device to stage for");
       return std::make_unique<Staging>(spec, std::move(inner), context,
                                        context.make_host_memory());
     },
     .full_bytes = [](const Spec& spec, Bytes batch) -> std::optional<Bytes> {
       return static_cast<Bytes>(staged_of(spec)) * batch;
     }});

}  // namespace
}  // namespace headroom
