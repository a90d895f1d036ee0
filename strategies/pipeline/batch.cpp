// batch: assembles samples directly in the buffers it is given. It need not be named: it is
// inserted where records end and batches begin.
#include "harness/base/registry.h"
#include "harness/workload/pipeline.h"

namespace headroom {
namespace {

class Batch final : public BatchStage {
 public:
  Batch(std::unique_ptr<RecordStage> inner, const StageContext& context)
      : BatchStage("batch"), inner_(std::move(inner)), records_(*context.records) {}

 private:
  void do_next(BatchBuffers inputs) override {
    const std::int64_t batch = records_.batch_of(inputs);
    std::int64_t epoch = 0;
    for (std::int64_t slot = 0; slot < batch; ++slot) {
      Element element = inner_->next();
      inner_->load(element);
      // The rest of the previous epoch does not fill this batch and is dropped.
      if (slot > 0 && element.epoch != epoch && records_.epoch_end() == EpochEnd::new_batch)
        slot = 0;
      epoch = element.epoch;
      records_.place(element.bytes, slot, inputs);
    }
    records_.complete(inputs);
  }

  std::unique_ptr<RecordStage> inner_;
  RecordSource& records_;
};

const bool batch_is_registered = Registry<StageKind>::instance().add(
    {.name = "batch",
     .summary = "Puts samples together into batches. Added automatically between stages on records "
                "and stages on batches",
     .parameters = {},
     .examples = {"batch|stream"},
     .to_batches = [](const Spec&, StageKind::Records inner, const StageContext& context)
         -> StageKind::Batches { return std::make_unique<Batch>(std::move(inner), context); }});

}  // namespace
}  // namespace headroom
