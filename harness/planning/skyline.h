// How high what a planner has placed stands at every moment.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "harness/trace/buffers.h"

namespace headroom {

class Skyline {
 public:
  // Of equal height, and higher or lower before and after.
  struct Span {
    std::int64_t begin, end;
    Bytes height;
  };

  // Of no height from `begin` to `end`.
  Skyline(std::int64_t begin, std::int64_t end);

  // The first of the lowest spans.
  Span lowest() const;

  // [begin, end) lies within one span.
  void raise(std::int64_t begin, std::int64_t end, Bytes height);

  // To its lower neighbour's height; not for the only one.
  void level(const Span& span);

 private:
  void split(std::int64_t at);
  void merge(std::int64_t at);

  std::map<std::int64_t, Bytes> spans_;  // height by beginning
  std::set<std::pair<Bytes, std::int64_t>> by_height_;
  std::int64_t end_;
};

}  // namespace headroom
