#include "harness/planning/skyline.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace headroom {

Skyline::Skyline(std::int64_t begin, std::int64_t end)
    : spans_{{begin, 0}}, by_height_{{0, begin}}, end_(end) {}

Skyline::Span Skyline::lowest() const {
  const auto [height, begin] = *by_height_.begin();
  const auto next = spans_.upper_bound(begin);
  return {.begin = begin, .end = next == spans_.end() ? end_ : next->first, .height = height};
}

void Skyline::raise(std::int64_t begin, std::int64_t end, Bytes height) {
  split(begin);
  split(end);
  const auto span = spans_.find(begin);
  by_height_.erase({span->second, begin});
  span->second = height;
  by_height_.insert({height, begin});
  merge(end);
  merge(begin);
}

void Skyline::level(const Span& span) {
  const auto at = spans_.find(span.begin);
  Bytes height = std::numeric_limits<Bytes>::max();
  if (at != spans_.begin()) height = std::prev(at)->second;
  if (const auto next = std::next(at); next != spans_.end())
    height = std::min(height, next->second);
  raise(span.begin, span.end, height);
}

void Skyline::split(std::int64_t at) {
  if (at == end_) return;
  const auto after = spans_.upper_bound(at);
  const auto [begin, height] = *std::prev(after);
  if (begin == at) return;
  spans_.emplace_hint(after, at, height);
  by_height_.insert({height, at});
}

// Merges the spans that end and begin at `at` if they have the same height.
void Skyline::merge(std::int64_t at) {
  const auto span = spans_.find(at);
  if (span == spans_.end() || span == spans_.begin() || std::prev(span)->second != span->second)
    return;
  by_height_.erase({span->second, at});
  spans_.erase(span);
}

}  // namespace headroom
