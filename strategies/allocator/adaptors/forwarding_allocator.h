// The base of adaptors: forwards everything to the allocator behind, unless an adaptor overrides
// it.
#pragma once

#include <memory>
#include <string>

#include "harness/base/error.h"
#include "harness/memory/allocator.h"

namespace headroom {

class ForwardingAllocator : public Allocator {
 public:
  Block allocate(Bytes bytes, const AllocationHint& hint) override {
    return inner_->allocate(bytes, hint);
  }
  void deallocate(const Block& block) override { inner_->deallocate(block); }
  AllocatorStatistics statistics() const override { return inner_->statistics(); }
  void trim() override { inner_->trim(); }
  void synchronized() override { inner_->synchronized(); }
  void record_stream(const Block& block, StreamId stream) override {
    inner_->record_stream(block, stream);
  }
  void stream_synchronized(StreamId stream) override { inner_->stream_synchronized(stream); }
  Reason why_not_engaged() const override { return inner_->why_not_engaged(); }

 protected:
  ForwardingAllocator(std::unique_ptr<Allocator> inner, const DeviceMemory& memory)
      : inner_(std::move(inner)), memory_(memory) {}

  Allocator& inner() { return *inner_; }
  const Allocator& inner() const { return *inner_; }
  const DeviceMemory& memory() const { return memory_; }

  // Throws OutOfMemory in this adaptor's name, with the figures of the allocator behind it.
  [[noreturn]] void refuse(Bytes bytes, const std::string& who) const {
    refuse_request(bytes, memory_, statistics(), who);
  }

  // Asks the allocator behind for `enlarged` bytes. If it refuses, OutOfMemory names the bytes that
  // this adaptor was asked for, and those in its own blocks.
  Block allocate_enlarged(Bytes bytes, Bytes enlarged, const AllocationHint& hint) {
    try {
      return inner_->allocate(enlarged, hint);
    } catch (const OutOfMemory& error) {
      OutOfMemoryReport report = error.report();
      report.requested_bytes = bytes;
      report.allocated_bytes = statistics().allocated;
      throw OutOfMemory(report);
    }
  }

 private:
  std::unique_ptr<Allocator> inner_;
  const DeviceMemory& memory_;
};

}  // namespace headroom
