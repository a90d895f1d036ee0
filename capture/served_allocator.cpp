#include "capture/served_allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "harness/base/error.h"

namespace headroom {
namespace {

void raise(ServedBytes& peak, const ServedBytes& now) {
  peak.requested = std::max(peak.requested, now.requested);
  peak.allocated = std::max(peak.allocated, now.allocated);
  peak.reserved = std::max(peak.reserved, now.reserved);
}

}  // namespace

ServedAllocator::ServedAllocator(const Spec& spec, std::unique_ptr<DeviceMemory> memory)
    : memory_(std::move(memory)), strategy_(make_allocator(spec, *memory_)) {}

void* ServedAllocator::allocate(Bytes bytes, const void* stream) {
  if (bytes == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  // The work of a virtual GPU is done as soon as it is submitted.
  if (streams_share_)
    for (const auto& [known, number] : streams_) strategy_->stream_synchronized(number);
  try {
    const Block block = strategy_->allocate(bytes, {.stream = number_of(stream)});
    live_.emplace(block.data, block);
    ++figures_.allocations;
    figures_.now.requested += block.requested;
    figures_.now.allocated += block.size;
    raise_peaks();
    return block.data;
  } catch (const OutOfMemory&) {
    ++figures_.refusals;
    figures_.last_refused_bytes = bytes;
    throw;
  }
}

bool ServedAllocator::free(void* address) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.extract(address);
  if (found.empty()) return false;
  const Block& block = found.mapped();
  strategy_->deallocate(block);
  ++figures_.frees;
  figures_.now.requested -= block.requested;
  figures_.now.allocated -= block.size;
  return true;
}

void ServedAllocator::record_stream(void* address, const void* stream) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(address);
  if (found == live_.end()) return;
  strategy_->record_stream(found->second, number_of(stream));
  streams_share_ = true;
}

void ServedAllocator::trim() {
  const std::lock_guard lock(mutex_);
  strategy_->trim();
}

void ServedAllocator::end_step() {
  const std::lock_guard lock(mutex_);
  strategy_->synchronized();
}

void ServedAllocator::reset_peaks() {
  const std::lock_guard lock(mutex_);
  figures_.peak_since_reset = {};
  raise_peaks();
}

ServedFigures ServedAllocator::figures() {
  const std::lock_guard lock(mutex_);
  figures_.now.reserved = memory_->reserved();
  figures_.segments = strategy_->statistics().segments;
  return figures_;
}

std::uint64_t ServedAllocator::device_allocations() {
  const std::lock_guard lock(mutex_);
  return memory_->counters().segment_allocations + memory_->counters().maps;
}

Reason ServedAllocator::why_not_engaged() {
  const std::lock_guard lock(mutex_);
  return strategy_->why_not_engaged();
}

StreamId ServedAllocator::number_of(const void* stream) {
  if (const auto known = streams_.find(stream); known != streams_.end()) return known->second;
  if (streams_.size() > std::numeric_limits<StreamId>::max())
    throw Error(fmt::format("the program uses more than {} streams", streams_.size()));
  return streams_[stream] = static_cast<StreamId>(streams_.size());
}

// Called at each request, so it does not use the strategy's statistics: some strategies have to
// search for them.
void ServedAllocator::raise_peaks() {
  figures_.now.reserved = memory_->reserved();
  raise(figures_.peak, figures_.now);
  raise(figures_.peak_since_reset, figures_.now);
}

}  // namespace headroom
