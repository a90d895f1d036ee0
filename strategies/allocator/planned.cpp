// planned: profiles a step, plans its offsets offline, and serves every further step that repeats
// it from one segment at constant cost. STAlloc (doi 10.1145/3767295.3769335) and the static plans
// of TensorFlow Lite and XLA do the same, each for its own programs. A step ends when the last
// block that is not persistent is freed. As long as each request and each free is the planned one,
// the step is served from its plan, which makes the placement safe without a check of addresses.
// After the first difference, requests go to the fallback, and the step as it then happens replaces
// its plan. The size of the first request, which reflects the batch's shape, selects the plan; a
// plan is made when a second step begins with that request.
//
// Plans follow the order of the program, not of streams: a program with several streams must
// synchronise before one stream uses memory that another freed.
//
// Cost: the first step of a shape uses the fallback's memory, and the second begins with
// milliseconds for the plan; later steps take a comparison per request. A step that leaves its plan
// midway holds the memory of both plan and fallback. A step of over 100,000 events is not planned:
// when some block is always live, no step ever ends.
#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/poison.h"
#include "harness/memory/allocator.h"
#include "harness/planning/greedy.h"

namespace headroom {
namespace {

struct Event {
  std::uint32_t index = 0;  // number of the request within its step
  Bytes bytes = 0;          // 0 = freed
};

struct PlannedEvent : Event {
  Bytes offset = 0;
};

struct StepPlan {
  std::vector<Event> profile;  // until the step is planned
  std::vector<PlannedEvent> events = {};
  Bytes size = 0;
};

StepPlan plan_step(const std::vector<Event>& events) {
  std::vector<PlanBuffer> blocks;
  for (std::size_t now = 0; now < events.size(); ++now) {
    const auto time = static_cast<std::int64_t>(now);
    const Event& event = events[now];
    if (event.bytes > 0)
      blocks.push_back({.lower = time,
                        .upper = time,
                        .size = align_up(event.bytes, kBlockAlignment),
                        .alignment = kBlockAlignment});
    else
      blocks[event.index].upper = time;
  }
  const Offsets offsets = plan_greedily(blocks);
  StepPlan plan{.profile = {}, .size = makespan(blocks, offsets)};
  for (const Event& event : events) plan.events.push_back({event, offsets[event.index]});
  return plan;
}

class Planned final : public Allocator {
 public:
  Planned(const Spec& spec, DeviceMemory& memory)
      : name_(spec.to_string()),
        memory_(memory),
        fallback_(make_allocator(fallback_of(spec, memory), memory)) {}

  ~Planned() override { release_region(); }

  Block allocate(Bytes bytes, const AllocationHint& hint) override {
    if (bytes == 0) return {};
    if (hint.persistent) return serve_online(kPersistent, bytes, hint);
    if (live_ == 0) begin_step(bytes);
    if (plan_ != nullptr && plan_->events[position_].bytes == bytes) return serve_planned(bytes);
    leave_plan();
    return serve_unplanned(bytes, hint);
  }

  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    if (is_freed_as_planned(block)) {
      ++position_;
      count_freed(block);
    } else if (!take_back(block)) {
      return;
    }
    if (--live_ == 0) end_step();
  }

  AllocatorStatistics statistics() const override {
    AllocatorStatistics result = fallback_->statistics();
    result.requested += planned_requested_;
    result.allocated += planned_allocated_;
    result.live_blocks += planned_live_;
    if (region_) {
      result.reserved += region_->charged;
      ++result.segments;
      result.largest_free = std::max(result.largest_free, largest_hole());
    }
    return result;
  }

  void trim() override {
    if (planned_allocated_ == 0) release_region();
    fallback_->trim();
  }
  void synchronized() override { fallback_->synchronized(); }

  Reason why_not_engaged() const override {
    return unless(steps_ < 2 || served_ > 0, name_ + ": no step repeated an earlier one");
  }

 private:
  struct PlannedBlock {
    Address address = 0;
    Bytes size = 0;  // 0 = freed
  };

  // The fallback is made as tight as the device allows, because its memory is not available to the
  // plan.
  static Spec fallback_of(const Spec& spec, const DeviceMemory& memory) {
    if (spec.has("fallback")) return Spec(spec.text("fallback", ""));
    if (!memory.has_virtual_memory()) return Spec("caching");
    return Spec("expandable", {{"page", std::to_string(memory.page())}});
  }

  void begin_step(Bytes first) {
    happened_.clear();
    planned_.clear();
    requests_ = 0;
    position_ = 0;
    const auto found = plans_.find(first);
    if (found == plans_.end()) return;
    StepPlan& plan = found->second;
    if (plan.events.empty()) plan = plan_step(plan.profile);
    if (provide(plan.size)) plan_ = &plan;
  }

  void end_step() {
    ++steps_;
    if (plan_ != nullptr) {
      plan_ = nullptr;
      ++served_;
      return;
    }
    if (happened_.size() == kMostEvents) return;
    const Bytes first = happened_.front().bytes;
    if (plans_.size() == kMostPlans && !plans_.contains(first)) plans_.clear();
    plans_[first] = {.profile = std::move(happened_)};
    fallback_->trim();  // its cache would add to the plan's memory
  }

  // Called when the step deviates from its plan: records what has happened so far.
  void leave_plan() {
    if (plan_ == nullptr) return;
    const auto end = plan_->events.begin() + static_cast<std::ptrdiff_t>(position_);
    happened_.assign(plan_->events.begin(), end);
    planned_ = blocks_so_far();
    requests_ = planned_.size();
    plan_ = nullptr;
  }

  // The blocks of a step that follows its plan, by request.
  std::vector<PlannedBlock> blocks_so_far() const {
    std::vector<PlannedBlock> blocks;
    for (std::size_t i = 0; i < position_; ++i) {
      const PlannedEvent& event = plan_->events[i];
      if (event.bytes > 0)
        blocks.push_back({region_->address + event.offset, align_up(event.bytes, kBlockAlignment)});
      else
        blocks[event.index].size = 0;
    }
    return blocks;
  }

  void remember(const Event& event) {
    if (happened_.size() < kMostEvents) happened_.push_back(event);
  }

  // Provides the segment for plans, which is empty between steps.
  bool provide(Bytes bytes) {
    if (region_ && region_->size >= bytes) return true;
    release_region();
    try {
      region_ = memory_.allocate(bytes);
    } catch (const OutOfMemory&) {
      return false;
    }
    poison(region_->data, region_->size);
    return true;
  }

  void release_region() {
    if (region_) memory_.free(*region_);
    region_.reset();
  }

  Block serve_planned(Bytes bytes) {
    const PlannedEvent& event = plan_->events[position_++];
    Block block{.address = region_->address + event.offset,
                .requested = bytes,
                .size = align_up(bytes, kBlockAlignment),
                .data = region_->data == nullptr ? nullptr : region_->data + event.offset,
                .handle = event.index};
    unpoison(block.data, bytes);
    ++live_;
    ++planned_live_;
    planned_requested_ += bytes;
    planned_allocated_ += block.size;
    return block;
  }

  // Whether a block is the one that the plan frees next; that one is live while the step follows
  // its plan.
  bool is_freed_as_planned(const Block& block) const {
    if (plan_ == nullptr) return false;
    const PlannedEvent& event = plan_->events[position_];
    return event.bytes == 0 && event.index == block.handle &&
           region_->address + event.offset == block.address;
  }

  void count_freed(const Block& block) {
    --planned_live_;
    planned_requested_ -= block.requested;
    planned_allocated_ -= block.size;
    poison(block.data, block.size);
  }

  Block serve_unplanned(Bytes bytes, const AllocationHint& hint) {
    const auto index = static_cast<std::uint32_t>(requests_);
    const Block block = serve_online(index, bytes, hint);
    ++live_;
    ++requests_;
    remember({index, bytes});
    return block;
  }

  // Returns false when the block belongs to no step.
  bool take_back(const Block& block) {
    const bool is_planned = region_ && block.address - region_->address < region_->size;
    const std::uint32_t index = is_planned ? take_back_planned(block) : take_back_online(block);
    if (index == kPersistent) return false;
    remember({index, 0});
    return true;
  }

  std::uint32_t take_back_planned(const Block& block) {
    leave_plan();
    if (block.handle >= planned_.size() || planned_[block.handle].address != block.address ||
        planned_[block.handle].size == 0)
      throw Error(name_ + ": a block was freed that is not live");
    planned_[block.handle].size = 0;
    count_freed(block);
    return block.handle;
  }

  // A block from the fallback carries the index of its entry in online_ instead of its handle.
  Block serve_online(std::uint32_t index, Bytes bytes, const AllocationHint& hint) {
    Block block = ask_fallback(bytes, hint);
    if (unused_online_.empty()) {
      unused_online_.push_back(static_cast<std::uint32_t>(online_.size()));
      online_.emplace_back();
    }
    const std::uint32_t entry = unused_online_.back();
    unused_online_.pop_back();
    online_[entry] = {block.handle, index};
    block.handle = entry;
    return block;
  }

  std::uint32_t take_back_online(Block block) {
    const std::uint32_t entry = block.handle;
    if (entry >= online_.size()) throw Error(name_ + ": a block was freed that is not live");
    block.handle = online_[entry].handle;
    fallback_->deallocate(block);
    unused_online_.push_back(entry);
    return online_[entry].index;
  }

  // Before a request is refused, the plan's segment is freed, unless the step uses it.
  Block ask_fallback(Bytes bytes, const AllocationHint& hint) {
    try {
      return fallback_->allocate(bytes, hint);
    } catch (const OutOfMemory&) {
      if (!region_ || planned_allocated_ > 0) throw_out_of_memory(bytes);
    }
    release_region();
    return ask_fallback(bytes, hint);
  }

  Bytes largest_hole() const {
    std::vector<std::pair<Address, Bytes>> live;
    for (const PlannedBlock& block : plan_ == nullptr ? planned_ : blocks_so_far()) {
      if (block.size > 0) live.emplace_back(block.address, block.size);
    }
    std::sort(live.begin(), live.end());
    Bytes largest = 0;
    Address free_from = region_->address;
    for (const auto& [address, size] : live) {
      largest = std::max(largest, address - free_from);
      free_from = address + size;
    }
    return std::max(largest, region_->address + region_->size - free_from);
  }

  [[noreturn]] void throw_out_of_memory(Bytes bytes) const {
    refuse_request(bytes, memory_, statistics(), name_);
  }

  static constexpr std::uint32_t kPersistent = ~std::uint32_t{0};  // belongs to no step
  static constexpr std::size_t kMostPlans = 64;
  static constexpr std::size_t kMostEvents = 100'000;
  struct OnlineBlock {
    std::uint32_t handle = 0;  // the fallback's
    std::uint32_t index = 0;   // of the request within its step, or kPersistent
  };

  std::string name_;
  DeviceMemory& memory_;
  std::unique_ptr<Allocator> fallback_;
  std::unordered_map<Bytes, StepPlan> plans_;  // by the bytes of the first request
  const StepPlan* plan_ = nullptr;             // the plan of this step, while the step follows it
  std::size_t position_ = 0;                   // index in the plan of the next expected event
  std::optional<Segment> region_;
  std::size_t live_ = 0;  // live blocks that are not persistent
  // The events of a step that has no plan or has left it.
  std::vector<Event> happened_;
  std::size_t requests_ = 0;
  std::vector<PlannedBlock> planned_;  // blocks served from the plan
  std::vector<OnlineBlock> online_;    // blocks from the fallback
  std::vector<std::uint32_t> unused_online_;
  std::size_t planned_live_ = 0;
  Bytes planned_requested_ = 0;
  Bytes planned_allocated_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t served_ = 0;  // steps that followed their plan
};

const bool planned_is_registered = Registry<AllocatorStrategy>::instance().add(
    {.name = "planned",
     .summary = "Profiles a step, plans its offsets offline and serves repetitions from one "
                "segment at constant cost. Other steps are served by fallback= (expandable, or "
                "caching where there is no virtual memory)",
     .parameters = {"fallback"},
     .examples = {"planned", "planned(fallback=caching)"},
     .create = create_strategy<Planned>});

}  // namespace
}  // namespace headroom
