// Serves programs of requests with TensorFlow's own tsl::BFCAllocator, over a device that has
// addresses and a capacity but no memory. serve_requests.cpp documents the input, except for
//
//   program CAPACITY TAKEN LIMIT GROWTH GARBAGE_COLLECTION FRAGMENTATION_FRACTION ORDER
//
// where ORDER is the order of the regions' addresses: ascending or descending.
//
// The test compiles this file against the wheel's headers and links it with the wheel.
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "xla/tsl/framework/bfc_allocator.h"

namespace {

// Regions have the same addresses as on Headroom's devices, so that addresses can be compared.
// Descending regions are printed as if they ascended.
class Device final : public tsl::SubAllocator {
 public:
  Device(std::size_t capacity, std::size_t taken, bool descending)
      : SubAllocator({}, {}),
        available_(capacity - taken),
        next_(kFirstAddress + span(taken)),
        descending_(descending) {}

  void* Alloc(std::size_t, std::size_t bytes, std::size_t* received) override {
    if (bytes > available_) return nullptr;
    *received = bytes;
    available_ -= bytes;
    held_ += bytes;
    ++regions_;
    const std::size_t shown = next_;
    next_ += span(bytes);
    const std::size_t region = descending_ ? kMirror - next_ : shown;
    shown_[region] = shown;
    return reinterpret_cast<void*>(region);
  }
  void Free(void*, std::size_t bytes) override {
    available_ += bytes;
    held_ -= bytes;
    --regions_;
  }
  bool SupportsCoalescing() const override { return false; }

  std::size_t shown(void* address) const {
    const auto at = reinterpret_cast<std::size_t>(address);
    const auto& [region, shown] = *std::prev(shown_.upper_bound(at));
    return shown + (at - region);
  }
  std::size_t held() const { return held_; }
  std::size_t regions() const { return regions_; }

 private:
  static constexpr std::size_t kAlignment = std::size_t{2} << 20;
  static constexpr std::size_t kFirstAddress = std::size_t{1} << 40;
  static constexpr std::size_t kMirror = std::size_t{1} << 62;

  static std::size_t span(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  std::size_t available_;
  std::size_t held_ = 0;
  std::size_t next_;
  std::size_t regions_ = 0;
  bool descending_;
  std::map<std::size_t, std::size_t> shown_;  // by region; addresses are not used again
};

struct Server {
  std::unique_ptr<tsl::BFCAllocator> allocator;
  Device* device = nullptr;
  std::map<std::string, void*> live;

  void begin(std::istream& in) {
    std::size_t capacity = 0, taken = 0, limit = 0;
    tsl::BFCAllocator::Options options;
    std::string order;
    in >> capacity >> taken >> limit >> options.allow_growth >> options.garbage_collection >>
        options.fragmentation_fraction >> order;
    live.clear();
    auto memory = std::make_unique<Device>(capacity, taken, order == "descending");
    device = memory.get();
    allocator = std::make_unique<tsl::BFCAllocator>(std::move(memory), limit, "bfc", options);
  }

  void allocate(const std::string& id, std::size_t bytes) {
    tsl::AllocationAttributes at_once(/*retry_on_failure=*/false, false, nullptr);
    void* address = allocator->AllocateRaw(64, bytes, at_once);
    if (address == nullptr) {
      std::cout << "refused 0 ";
      return;
    }
    live[id] = address;
    std::cout << device->shown(address) << ' ' << allocator->AllocatedSize(address) << ' ';
  }

  void free(const std::string& id) {
    const auto found = live.find(id);
    if (found == live.end()) return;
    allocator->DeallocateRaw(found->second);
    live.erase(found);
  }
};

}  // namespace

int main() {
  Server server;
  std::string request, id;
  std::size_t bytes = 0, stream = 0;
  while (std::cin >> request) {
    if (request == "program") {
      server.begin(std::cin);
      continue;
    }
    std::cin >> id;
    if (request == "allocate") {
      std::cin >> bytes >> stream;
      server.allocate(id, bytes);
    } else {
      server.free(id);
    }
    std::cout << server.allocator->GetStats()->bytes_in_use << ' ' << server.device->held() << ' '
              << server.device->regions() << '\n';
  }
}
