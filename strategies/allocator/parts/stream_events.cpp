#include "strategies/allocator/parts/stream_events.h"

namespace headroom {

bool StreamEvents::leave_events(BlockHandle block) {
  const auto used = uses_.find(block);
  if (used == uses_.end()) return false;
  waiting_.emplace(block, used->second.size());
  for (const StreamId stream : used->second) queues_[stream].events.push_back(block);
  uses_.erase(used);
  return true;
}

void StreamEvents::reach(StreamId stream) {
  const auto queue = queues_.find(stream);
  if (queue != queues_.end()) queue->second.reached = queue->second.events.size();
}

void StreamEvents::reach_all() {
  for (auto& [stream, queue] : queues_) queue.reached = queue.events.size();
}

std::vector<StreamEvents::BlockHandle> StreamEvents::take_finished() {
  std::vector<BlockHandle> finished;
  for (auto& [stream, queue] : queues_) {
    for (; queue.reached > 0; --queue.reached) {
      const auto block = waiting_.find(queue.events.front());
      queue.events.pop_front();
      if (--block->second > 0) continue;
      finished.push_back(block->first);
      waiting_.erase(block);
    }
  }
  return finished;
}

}  // namespace headroom
