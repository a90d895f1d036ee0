// A workload whose records are their own numbers, for tests of input pipelines: the output of a
// pipeline shows which records were read, and when.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/workload/pipeline.h"

namespace headroom::testing {

using Number = std::int64_t;

struct NumberedData {
  std::int64_t count = 10;
  std::int64_t batch = 2;
  EpochEnd epoch_end = EpochEnd::seamless;
  Number unreadable = -1;  // the record whose reading fails
  Number undecodable = -1;
};

struct Traffic {
  std::atomic<int> reads = 0;
  std::atomic<int> batches = 0;  // completed
};

// The workload's own order: each epoch begins at a different record.
inline std::vector<Number> own_order(std::int64_t count, std::int64_t epoch) {
  std::vector<Number> order(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    order[static_cast<std::size_t>(i)] = (i * (count > 2 ? count - 1 : 1) + 3 * epoch) % count;
  return order;
}

// A sample is its record's number; decoding negates it.
class NumberedRecords final : public RecordSource {
 public:
  NumberedRecords(const NumberedData& data, Traffic& traffic) : data_(data), traffic_(traffic) {}

  std::int64_t count() const override { return data_.count; }
  Bytes record_bytes() const override { return sizeof(Number); }
  Bytes sample_bytes() const override { return sizeof(Number); }
  EpochEnd epoch_end() const override { return data_.epoch_end; }
  std::vector<Number> next_epoch() override { return own_order(data_.count, epoch_++); }

  void read(std::int64_t record, std::span<std::byte> bytes) const override {
    if (record == data_.unreadable) throw InputError("numbers.bin: cut short");
    ++traffic_.reads;
    std::memcpy(bytes.data(), &record, sizeof record);
  }
  void decode(std::span<const std::byte> bytes, std::span<std::byte> sample) const override {
    Number number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    if (number == data_.undecodable) throw std::runtime_error("no picture");
    number = -number;
    std::memcpy(sample.data(), &number, sizeof number);
  }

  std::int64_t batch_of(BatchBuffers inputs) const override {
    return static_cast<std::int64_t>(inputs[0].size() / sizeof(Number));
  }
  void place(std::span<const std::byte> sample, std::int64_t slot,
             BatchBuffers inputs) const override {
    std::memcpy(inputs[0].data() + static_cast<std::size_t>(slot) * sizeof(Number), sample.data(),
                sizeof(Number));
  }
  void complete(BatchBuffers) override { ++traffic_.batches; }
  bool next_held_out_batch(BatchBuffers) override { return false; }
  void restart_held_out() override {}

 private:
  NumberedData data_;
  Traffic& traffic_;
  std::int64_t epoch_ = 0;
};

class NumberedWorkload final : public Workload {
 public:
  explicit NumberedWorkload(const NumberedData& data) : data_(data) {}

  Program training_forward() const override { return {}; }
  std::optional<Program> evaluation() const override { return std::nullopt; }
  std::int64_t batch_size() const override { return data_.batch; }
  std::unique_ptr<BatchSource> open_data(std::uint64_t) const override { return nullptr; }
  std::unique_ptr<RecordSource> open_records(std::uint64_t) const override {
    return std::make_unique<NumberedRecords>(data_, *traffic_);
  }
  std::string why_no_records() const override { return ""; }

  const NumberedData& data() const { return data_; }
  const Traffic& traffic() const { return *traffic_; }

 private:
  NumberedData data_;
  std::unique_ptr<Traffic> traffic_ = std::make_unique<Traffic>();
};

// A device for stages that keep batches in memory it copies from.
inline Device& any_device() {
  static const auto device = make_device(Spec::parse("host(capacity=1MiB)"));
  return *device;
}

inline std::unique_ptr<Pipeline> pipeline_over(const NumberedWorkload& workload,
                                               const std::string& spec, std::uint64_t seed = 1) {
  const Bytes batch = static_cast<Bytes>(workload.data().batch) * sizeof(Number);
  return std::make_unique<Pipeline>(
      Spec::parse_composition(spec), workload,
      [batch](std::uint64_t) { return std::vector<Bytes>{batch}; }, seed, &any_device());
}

// The numbers of the records in the next batch.
inline std::vector<Number> next_batch(Pipeline& pipeline, std::int64_t batch) {
  std::vector<Number> numbers(static_cast<std::size_t>(batch));
  const std::vector<std::span<std::byte>> inputs = {std::as_writable_bytes(std::span(numbers))};
  pipeline.next_training_batch(inputs);
  for (Number& number : numbers) number = -number;
  return numbers;
}

inline const StageReport& report_of(const std::vector<StageReport>& reports,
                                    const std::string& name) {
  for (const StageReport& report : reports)
    if (report.name == name) return report;
  throw Error("no stage " + name);
}

}  // namespace headroom::testing
