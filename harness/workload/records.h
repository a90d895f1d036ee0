// The records that a workload's batches are made of, for pipelines that separate the steps of
// loading: reading records from files, decoding them to samples, and collecting samples into
// batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "harness/base/units.h"

namespace headroom {

// Input buffers as BatchSource (harness/workload/workload.h) fills them.
using BatchBuffers = std::span<const std::span<std::byte>>;

// A batch in the source's own memory, which is returned when the last pointer is gone.
using LentBatch = std::shared_ptr<const std::vector<std::span<std::byte>>>;

enum class EpochEnd : std::uint8_t {
  seamless,  // the next epoch continues in the same batch
  new_batch  // records that do not fill the last batch are dropped
};

class RecordSource {
 public:
  virtual ~RecordSource() = default;
  virtual std::int64_t count() const = 0;  // records per epoch
  virtual Bytes record_bytes() const = 0;  // bytes of one record as stored
  virtual Bytes sample_bytes() const = 0;  // bytes of one decoded sample
  virtual EpochEnd epoch_end() const = 0;
  // Returns the workload's own order for the next epoch, as BatchSource would deliver it.
  virtual std::vector<std::int64_t> next_epoch() = 0;

  // May be called from several threads at once. Both throw InputError naming the file and what is
  // wrong.
  virtual void read(std::int64_t record, std::span<std::byte> bytes) const = 0;
  virtual void decode(std::span<const std::byte> bytes, std::span<std::byte> sample) const = 0;

  // Called only from the thread that assembles batches, in their order.
  virtual std::int64_t batch_of(BatchBuffers inputs) const = 0;
  virtual void place(std::span<const std::byte> sample, std::int64_t slot,
                     BatchBuffers inputs) const = 0;
  // Fills the inputs of a batch that do not come from records, such as noise.
  virtual void complete(BatchBuffers /*inputs*/) {}

  // Like those of BatchSource; may run concurrently with everything above.
  virtual bool next_held_out_batch(BatchBuffers inputs) = 0;
  virtual void restart_held_out() = 0;
};

}  // namespace headroom
