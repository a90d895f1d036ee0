// Input pipelines: how batches come from files to the Trainer. A spec composes stages, outermost
// first: `prefetch(2)|map(threads=2)|cache|stream`. Reader: who runs a cell, and who adds a stage.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/spec.h"
#include "harness/device/device.h"
#include "harness/workload/stage.h"
#include "harness/workload/workload.h"

namespace headroom {

// Bytes of each input of the n-th training batch, from 0: steps may differ in shape.
using BatchSizes = std::function<std::vector<Bytes>(std::uint64_t)>;

enum class RecordOrder : std::uint8_t {
  workload,  // the workload's own: all records shuffled anew for every epoch
  files      // as they lie there: what a shuffle buffer is fed with
};

// What the stages of one pipeline are made from.
struct StageContext {
  RecordSource* records = nullptr;  // null where the workload hands over whole batches
  RecordOrder order = RecordOrder::workload;
  BatchSizes batch_sizes;
  std::uint64_t seed = 0;
  // Of the whole pipeline. Stages with threads request the stop before they join them.
  std::stop_source stop;
  // Memory that the device copies from by itself; null where the pipeline feeds no device.
  std::function<std::unique_ptr<DeviceMemory>()> make_host_memory;
  // Takes down all that stands behind the outermost stage and builds it again: for that stage.
  std::function<std::unique_ptr<BatchStage>(std::unique_ptr<BatchStage>)> rebuild;
};

// A plug-in makes what it can make: a source of records or of batches, something over records or
// over batches, or the step from records to batches.
struct StageKind {
  static constexpr std::string_view kKind = "pipeline stage";
  using Records = std::unique_ptr<RecordStage>;
  using Batches = std::unique_ptr<BatchStage>;

  std::string name;
  std::string summary;
  std::vector<std::string> parameters;
  std::vector<std::string> examples;  // whole pipelines
  // Throws InputError where the parameters' values make no sense.
  std::function<void(const Spec&)> check = nullptr;
  // Loads records as it says which comes next, so that nothing before it can save the loading.
  std::function<bool(const Spec&)> loads_ahead = nullptr;
  bool saves_loading = false;
  bool needs_file_order = false;
  bool rebuilds = false;  // what stands behind it, for which it must be the outermost
  // Lends its batches, at most so many at a time, to be copied to the device while it computes;
  // must be the outermost.
  std::function<std::size_t(const Spec&)> staged_batches = nullptr;
  std::function<Records(const Spec&, const StageContext&)> record_source = nullptr;
  std::function<Batches(const Spec&, std::unique_ptr<BatchSource>)> batch_source = nullptr;
  std::function<Records(const Spec&, Records, const StageContext&)> over_records = nullptr;
  std::function<Batches(const Spec&, Records, const StageContext&)> to_batches = nullptr;
  std::function<Batches(const Spec&, Batches, const StageContext&)> over_batches = nullptr;
  // Bytes kept when full, where the spec and the bytes of a batch tell.
  std::function<std::optional<Bytes>(const Spec&, Bytes batch)> full_bytes = nullptr;
};

// The stages of a spec, outermost first, with those that go without saying: a source, `batch` and
// `map`. Throws InputError for unknown names and parameters and for orders that mean nothing.
std::vector<Spec> pipeline_stages(const Spec& spec);
void check_pipeline(const Spec& spec);
// Throws NotSupported with the reason where this workload cannot feed this pipeline.
void check_pipeline(const Spec& spec, const Workload& workload);
// How many batches it lends at a time; 0 where it lends none.
std::size_t staged_batches(const Spec& spec);

// What the Trainer pulls from. Stopping it, also with threads at work, takes no longer than they
// need for the one record or, where a workload hands over whole batches, the one batch in work.
class Pipeline final : public BatchSource {
 public:
  // The workload and the device that is fed must outlive it. Without a device nothing is staged.
  Pipeline(const Spec& spec, const Workload& workload, BatchSizes sizes, std::uint64_t seed,
           Device* device = nullptr);
  ~Pipeline() override;
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  void next_training_batch(BatchBuffers inputs) override { outermost_->next(inputs); }
  LentBatch lend_training_batch() override;
  bool next_held_out_batch(BatchBuffers inputs) override;
  void restart_held_out() override;
  std::string why_not_engaged() const override;

  // Outermost first. Of a stage that was built several times: all its elements and waits, its
  // highest peak, and the counters of the last one.
  std::vector<StageReport> reports() const;
  Bytes host_bytes() const;  // kept by all stages now

 private:
  template <typename Made>
  Made keep(Made stage);
  std::unique_ptr<BatchStage> build();
  std::unique_ptr<BatchStage> rebuild(std::unique_ptr<BatchStage> old);

  // Of a stage that was taken down.
  struct Past {
    StageReport report;
    bool engaged;
  };

  const Workload& workload_;
  BatchSizes sizes_;
  std::size_t staged_ = 0;                 // batches
  std::vector<Spec> specs_;                // innermost first, but for one that rebuilds
  std::uint64_t first_batch_ = 0;          // of what stands now
  std::unique_ptr<RecordSource> records_;  // outlives the stages
  BatchSource* data_ = nullptr;            // owned by the source stage
  StageContext context_;
  std::vector<const Stage*> stages_;  // innermost first
  std::vector<Past> past_;            // beside the first of them; empty: nothing was rebuilt
  std::unique_ptr<BatchStage> outermost_;
};

// A pipeline that is not run (on meta): its stages, with their bytes when full where the spec and
// the bytes of a batch tell them.
std::vector<StageReport> estimate_pipeline(const Spec& spec, Bytes batch);

}  // namespace headroom
