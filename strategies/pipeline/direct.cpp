// direct: the workload makes each batch when it is asked for, on the thread that asks. The simplest
// source, and the only one for workloads that draw their batches (pieces of text at random
// positions). Data that the workload keeps for it (images, tokens) is not counted here.
#include "harness/base/registry.h"
#include "harness/workload/pipeline.h"

namespace headroom {
namespace {

class Direct final : public BatchStage {
 public:
  explicit Direct(std::unique_ptr<BatchSource> data)
      : BatchStage("direct"), data_(std::move(data)) {}

 private:
  void do_next(BatchBuffers inputs) override { data_->next_training_batch(inputs); }

  std::unique_ptr<BatchSource> data_;
};

const bool direct_is_registered = Registry<StageKind>::instance().add(
    {.name = "direct",
     .summary = "Source: the workload makes each whole batch when it is asked for",
     .parameters = {},
     .examples = {"direct"},
     .batch_source = [](const Spec&, std::unique_ptr<BatchSource> data) -> StageKind::Batches {
       return std::make_unique<Direct>(std::move(data));
     }});

}  // namespace
}  // namespace headroom
