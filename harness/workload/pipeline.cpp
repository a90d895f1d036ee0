#include "harness/workload/pipeline.h"

#include <algorithm>
#include <utility>

#include "harness/base/registry.h"

namespace headroom {

namespace {

// Combines the reports of a stage before and after it was rebuilt.
StageReport with_past(const StageReport& past, StageReport now) {
  now.elements += past.elements;
  now.wait_ns += past.wait_ns;
  now.host_bytes_peak = std::max(past.host_bytes_peak, now.host_bytes_peak);
  return now;
}

}  // namespace

template <typename Made>
Made Pipeline::keep(Made stage) {
  stages_.push_back(stage.get());
  return stage;
}

Pipeline::Pipeline(const Spec& spec, const Workload& workload, BatchSizes sizes, std::uint64_t seed,
                   Device* device)
    : workload_(workload),
      sizes_(std::move(sizes)),
      staged_(staged_batches(spec)),
      specs_(pipeline_stages(spec)) {
  check_pipeline(spec, workload);
  if (device != nullptr)
    context_.make_host_memory = [device] { return device->make_host_memory(); };
  std::reverse(specs_.begin(), specs_.end());
  const auto& kinds = Registry<StageKind>::instance();
  context_.seed = seed;
  for (const Spec& stage : specs_)
    if (kinds.find(stage.name()).needs_file_order) context_.order = RecordOrder::files;
  const StageKind& outermost = kinds.find(specs_.back().name());
  if (!outermost.rebuilds) {
    outermost_ = build();
    return;
  }
  const Spec rebuilding = specs_.back();
  specs_.pop_back();
  context_.rebuild = [this](std::unique_ptr<BatchStage> old) { return rebuild(std::move(old)); };
  outermost_ = keep(outermost.over_batches(rebuilding, build(), context_));
}

std::unique_ptr<BatchStage> Pipeline::build() {
  const auto& kinds = Registry<StageKind>::instance();
  context_.batch_sizes = [sizes = sizes_, first = first_batch_](std::uint64_t n) {
    return sizes(first + n);
  };
  std::unique_ptr<RecordStage> records;
  std::unique_ptr<BatchStage> batches;
  for (const Spec& stage : specs_) {
    const StageKind& kind = kinds.find(stage.name());
    if (kind.batch_source) {
      auto data = workload_.open_data(context_.seed);
      data_ = data.get();
      batches = keep(kind.batch_source(stage, std::move(data)));
    } else if (kind.record_source) {
      records_ = workload_.open_records(context_.seed);
      context_.records = records_.get();
      records = keep(kind.record_source(stage, context_));
    } else if (kind.to_batches) {
      batches = keep(kind.to_batches(stage, std::move(records), context_));
    } else if (batches != nullptr) {
      batches = keep(kind.over_batches(stage, std::move(batches), context_));
    } else {
      records = keep(kind.over_records(stage, std::move(records), context_));
    }
  }
  return batches;
}

std::unique_ptr<BatchStage> Pipeline::rebuild(std::unique_ptr<BatchStage> old) {
  const std::vector<const Stage*> before = std::exchange(stages_, {});
  past_.resize(specs_.size());
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    past_[i].report = with_past(past_[i].report, before[i]->report());
    past_[i].engaged = past_[i].engaged || !before[i]->why_not_engaged();
  }
  first_batch_ += old->report().elements;
  context_.stop.request_stop();
  old.reset();
  context_.stop = {};
  auto made = build();
  stages_.push_back(before.back());
  return made;
}

Pipeline::~Pipeline() { context_.stop.request_stop(); }

LentBatch Pipeline::lend_training_batch() {
  return staged_ > 0 ? outermost_->lend() : BatchSource::lend_training_batch();
}

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

Reason Pipeline::why_not_engaged() const {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (i < past_.size() && past_[i].engaged) continue;
    if (const Reason why = stages_[i]->why_not_engaged())
      return "pipeline stage " + stages_[i]->name() + ": " + *why;
  }
  return data_ != nullptr ? data_->why_not_engaged() : std::nullopt;
}

std::vector<StageReport> Pipeline::reports() const {
  std::vector<StageReport> reports;
  for (std::size_t i = stages_.size(); i-- > 0;)
    reports.push_back(i < past_.size() ? with_past(past_[i].report, stages_[i]->report())
                                       : stages_[i]->report());
  return reports;
}

Bytes Pipeline::host_bytes() const {
  Bytes sum = 0;
  for (const Stage* stage : stages_) sum += stage->host_bytes();
  return sum;
}

}  // namespace headroom
