#include "harness/pipeline/pipeline.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "harness/base/registry.h"

namespace headroom {

template <typename Made>
Made Pipeline::keep(Made stage) {
  stages_.push_back(stage.get());
  return stage;
}

Pipeline::Pipeline(const Spec& spec, const Workload& workload, BatchSizes sizes,
                   std::uint64_t seed) {
  check_pipeline(spec, workload);
  std::vector<Spec> stages = pipeline_stages(spec);
  std::reverse(stages.begin(), stages.end());
  const auto& kinds = Registry<StageKind>::instance();
  context_.batch_sizes = std::move(sizes);
  context_.seed = seed;
  for (const Spec& stage : stages)
    if (kinds.find(stage.name()).needs_file_order) context_.order = RecordOrder::files;

  std::unique_ptr<RecordStage> records;
  for (const Spec& stage : stages) {
    const StageKind& kind = kinds.find(stage.name());
    if (kind.batch_source) {
      auto data = workload.open_data(seed);
      data_ = data.get();
      outermost_ = keep(kind.batch_source(stage, std::move(data)));
    } else if (kind.record_source) {
      records_ = workload.open_records(seed);
      context_.records = records_.get();
      records = keep(kind.record_source(stage, context_));
    } else if (kind.to_batches) {
      outermost_ = keep(kind.to_batches(stage, std::move(records), context_));
    } else if (outermost_ != nullptr) {
      outermost_ = keep(kind.over_batches(stage, std::move(outermost_), context_));
    } else {
      records = keep(kind.over_records(stage, std::move(records), context_));
    }
  }
}

Pipeline::~Pipeline() { context_.stop.request_stop(); }

bool Pipeline::next_held_out_batch(BatchBuffers inputs) {
  return data_ != nullptr ? data_->next_held_out_batch(inputs)
                          : records_->next_held_out_batch(inputs);
}

void Pipeline::restart_held_out() {
  if (data_ != nullptr)
    data_->restart_held_out();
  else
    records_->restart_held_out();
}

std::string Pipeline::why_not_engaged() const {
  for (const Stage* stage : stages_)
    if (const std::string why = stage->why_not_engaged(); !why.empty())
      return "pipeline stage " + stage->name() + ": " + why;
  return data_ != nullptr ? data_->why_not_engaged() : "";
}

std::vector<StageReport> Pipeline::reports() const {
  std::vector<StageReport> reports;
  std::transform(stages_.rbegin(), stages_.rend(), std::back_inserter(reports),
                 [](const Stage* stage) { return stage->report(); });
  return reports;
}

Bytes Pipeline::host_bytes() const {
  Bytes sum = 0;
  for (const Stage* stage : stages_) sum += stage->host_bytes();
  return sum;
}

}  // namespace headroom
