// Compares what two runs of a program held at their peaks, and names the places that hold more or
// less. Bytes are exact, so no statistics are needed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/units.h"

namespace headroom {

// The memory of a run at its peak. Each kind ("role", "module", "line", "op") divides the same
// bytes by name.
struct PeakMemory {
  std::optional<Bytes> allocated;  // absent where it is not known
  std::optional<Bytes> reserved;
  std::map<std::string, std::map<std::string, Bytes>> parts;
};

struct PeakChange {
  struct Held {
    Bytes before = 0, now = 0;
    bool operator==(const Held&) const = default;
  };
  struct Part {
    std::string kind;
    std::string name;    // as in the later run, where it has the part
    std::string before;  // its name in the earlier run where lines above it moved it; or ""
    Held held;
  };
  enum class Direction { same, grew, shrank, mixed };  // mixed: allocated and reserved differ

  std::optional<Held> allocated;  // absent where it is not known of both
  std::optional<Held> reserved;
  std::vector<Part> parts;     // of different size, the largest growth first
  std::size_t same_parts = 0;  // of equal size

  Direction direction() const;
  bool grew() const;  // allocated or reserved
};

// A line of a file ("model.py:42 forward") is recognised where lines above it were added or
// removed: the lines of a function are matched in their order, and by their bytes.
PeakChange compare_peaks(const PeakMemory& before, const PeakMemory& now);

}  // namespace headroom
