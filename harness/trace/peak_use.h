// Sums the bytes that were live at the peak of allocated memory, by the place that allocated them.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "harness/trace/trace.h"

namespace headroom {

struct PeakUse {
  Bytes allocated = 0;
  std::optional<Bytes> reserved;         // absent if the history does not record its segments
  std::map<std::string, Bytes> by_role;  // empty if it does not distinguish roles
  std::map<std::string, Bytes> by_op;    // "" = blocks whose op is not recorded
};

PeakUse use_at_peak(const Trace& trace);

}  // namespace headroom
