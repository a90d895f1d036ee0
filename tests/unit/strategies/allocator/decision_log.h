// An allocator on meta that logs every decision as a line, for comparison with a sequence worked
// out by hand from the documented rules.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/memory/recording_allocator.h"

namespace headroom {

// Lines such as "segment 1: 2MiB", "512B at 1+0" (segment 1, offset 0), "free 1+0",
// "segment 1 back", "map 1+0: 2MiB", "unmap 1+0: 2MiB", "refused 3GiB".
class DecisionLog : public ::testing::Test {
 protected:
  void make(const std::string& allocator, const std::string& device = "meta(capacity=1GiB)");

  Block take(Bytes bytes, StreamId stream = 0) {
    return recording_->allocate(bytes, {.stream = stream});
  }
  void give(const Block& block) { recording_->deallocate(block); }
  Allocator& allocator() { return *recording_; }
  DeviceMemory& memory() { return device_->memory(); }
  const Trace& trace() const { return recorder_->trace(); }

  // The lines since the last call.
  std::vector<std::string> decisions();

 private:
  std::string place(Address address) const;
  std::string line(const TraceEvent& event);

  std::unique_ptr<TraceRecorder> recorder_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Allocator> strategy_;
  std::unique_ptr<RecordingAllocator> recording_;
  std::map<Address, std::uint32_t> segments_;      // by start
  std::map<std::uint32_t, Address> reservations_;  // where the first page was mapped
  std::size_t seen_ = 0;
};

}  // namespace headroom
