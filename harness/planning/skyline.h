// The skyline of a plan: the height of the placed buffers at every moment.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "harness/trace/buffers.h"

namespace headroom {

class Skyline {
 public:
  // A maximal range of time of constant height.
  struct Span {
    std::int64_t begin, end;
    Bytes height;
  };

  // Starts at height 0 over [begin, end).
  Skyline(std::int64_t begin, std::int64_t end);

  // Returns the earliest of the lowest spans.
  Span lowest() const;

  // Sets the height over [begin, end), which must lie within one span.
  void raise(std::int64_t begin, std::int64_t end, Bytes height);

  // Raises a span to the height of its lower neighbour. It must not be the only span.
  void level(const Span& span);

 private:
  void split(std::int64_t at);
  void merge(std::int64_t at);

  std::map<std::int64_t, Bytes> spans_;  // height of each span by its begin
  std::set<std::pair<Bytes, std::int64_t>> by_height_;
  std::int64_t end_;
};

}  // namespace headroom
