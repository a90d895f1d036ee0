#include "tests/unit/strategies/allocator/decision_log.h"

#include <fmt/format.h>

namespace headroom {
namespace {

// The largest unit that divides the number: "20MiB", "512B".
std::string exact(Bytes bytes) {
  for (const auto& [unit, name] : {std::pair{kGiB, "GiB"}, {kMiB, "MiB"}, {kKiB, "KiB"}}) {
    if (bytes >= unit && bytes % unit == 0) return fmt::format("{}{}", bytes / unit, name);
  }
  return bytes == 0 ? "0" : fmt::format("{}B", bytes);
}

}  // namespace

void DecisionLog::make(const std::string& allocator, const std::string& device) {
  recording_.reset();
  strategy_.reset();
  segments_.clear();
  reservations_.clear();
  seen_ = 0;
  recorder_ = std::make_unique<TraceRecorder>(256);
  const Spec spec = Spec::parse(device);
  device_ = make_device(spec);
  device_->memory().record_into(recorder_.get());
  recorder_->trace().header.capacity_bytes = device_->memory().capacity();
  strategy_ = make_allocator(Spec::parse_composition(allocator), device_->memory());
  recording_ = std::make_unique<RecordingAllocator>(*strategy_, *recorder_);
}

std::vector<std::string> DecisionLog::decisions() {
  std::vector<std::string> lines;
  for (; seen_ < trace().events.size(); ++seen_) lines.push_back(line(trace().events[seen_]));
  return lines;
}

std::string DecisionLog::place(Address address) const {
  const auto segment = std::prev(segments_.upper_bound(address));
  return fmt::format("{}+{}", segment->second, exact(address - segment->first));
}

std::string DecisionLog::line(const TraceEvent& event) {
  switch (event.kind) {
    case EventKind::alloc:
      return fmt::format("{} at {}", exact(event.size), place(event.address));
    case EventKind::free:
      return fmt::format("free {}", place(event.address));
    case EventKind::segment_alloc:
      segments_.emplace(event.address, event.id);
      return fmt::format("segment {}: {}", event.id, exact(event.requested));
    case EventKind::segment_free:
      return fmt::format("segment {} back", event.id);
    case EventKind::segment_map:
      if (reservations_.emplace(event.id, event.address).second)
        segments_.emplace(event.address, event.id);
      return fmt::format("map {}: {}", place(event.address), exact(event.requested));
    case EventKind::segment_unmap:
      return fmt::format("unmap {}: {}", place(event.address), exact(event.requested));
    case EventKind::oom:
      return fmt::format("refused {}", exact(event.requested));
  }
  return "?";
}

}  // namespace headroom
