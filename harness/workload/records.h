// What the batches of a workload are made of, for pipelines that take loading apart: records as
// they lie in files, decoded to samples, put together to batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "harness/base/units.h"

namespace headroom {

// As BatchSource (harness/workload/workload.h) fills them.
using BatchBuffers = std::span<const std::span<std::byte>>;

// A batch in memory of its source, which takes it back with the last pointer to it.
using LentBatch = std::shared_ptr<const std::vector<std::span<std::byte>>>;

enum class EpochEnd : std::uint8_t {
  seamless,  // the next epoch goes on in the same batch
  new_batch  // what does not fill the batch that is asked for is dropped
};

class RecordSource {
 public:
  virtual ~RecordSource() = default;
  virtual std::int64_t count() const = 0;  // records of an epoch
  virtual Bytes record_bytes() const = 0;  // as stored
  virtual Bytes sample_bytes() const = 0;  // decoded
  virtual EpochEnd epoch_end() const = 0;
  // The workload's own order of the next epoch: what BatchSource would have shown.
  virtual std::vector<std::int64_t> next_epoch() = 0;

  // From any thread, several at once; throw InputError naming the file and what is wrong.
  virtual void read(std::int64_t record, std::span<std::byte> bytes) const = 0;
  virtual void decode(std::span<const std::byte> bytes, std::span<std::byte> sample) const = 0;

  // From the one thread that puts batches together, in their order.
  virtual std::int64_t batch_of(BatchBuffers inputs) const = 0;
  virtual void place(std::span<const std::byte> sample, std::int64_t slot,
                     BatchBuffers inputs) const = 0;
  // Fills what a batch has besides its records, such as noise.
  virtual void complete(BatchBuffers /*inputs*/) {}

  // As BatchSource's; may run beside everything above.
  virtual bool next_held_out_batch(BatchBuffers inputs) = 0;
  virtual void restart_held_out() = 0;
};

}  // namespace headroom
