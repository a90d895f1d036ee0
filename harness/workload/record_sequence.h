// The order of records, epoch after epoch, for sources of records.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/workload/pipeline.h"

namespace headroom {

class RecordSequence {
 public:
  RecordSequence(RecordSource& records, RecordOrder order) : records_(records), order_(order) {}

  Element next() {
    Element result;
    result.position = position_;
    result.epoch = position_ / records_.count();
    const std::int64_t within = position_++ % records_.count();
    if (order_ == RecordOrder::workload && within == 0) epoch_ = records_.next_epoch();
    result.record =
        order_ == RecordOrder::files ? within : epoch_[static_cast<std::size_t>(within)];
    return result;
  }

  // Bytes of the list of an epoch's records.
  Bytes host_bytes() const {
    return order_ == RecordOrder::files
               ? 0
               : static_cast<Bytes>(records_.count()) * sizeof(std::int64_t);
  }

 private:
  RecordSource& records_;
  RecordOrder order_;
  std::int64_t position_ = 0;
  std::vector<std::int64_t> epoch_;
};

}  // namespace headroom
