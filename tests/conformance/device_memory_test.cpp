// Promises of device memory to the strategies, segments and virtual memory, tested for every device
// and for a share of each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/device/memory_share.h"
#include "harness/trace/ledger.h"
#include "harness/trace/recorder.h"
#include "harness/trace/validator.h"

namespace headroom {
namespace {

using ::testing::IsEmpty;

constexpr Bytes kPage = 2 * kMiB;
constexpr Bytes kDeviceCapacity = 16 * kPage;

struct Place {
  const char* device;
  enum { whole, share } part;
};

class Memory : public ::testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    const DeviceKind& kind = Registry<DeviceKind>::instance().find(GetParam().device);
    if (const std::string reason = kind.unavailable(); !reason.empty())
      GTEST_SKIP() << GetParam().device << ": " << reason;
    device_ =
        kind.create(Spec(GetParam().device,
                         {{"capacity", std::to_string(kDeviceCapacity * (GetParam().part + 1))}}));
    recorder_.trace().header.capacity_bytes = kDeviceCapacity;
    device_->memory().record_into(&recorder_);
    if (GetParam().part == Place::share)
      share_ = std::make_unique<MemoryShare>(device_->memory(), kDeviceCapacity);
  }

  DeviceMemory& memory() { return share_ ? *share_ : device_->memory(); }
  static Value plain_bytes(Bytes bytes) {
    Value value;
    value.shape = {static_cast<std::int64_t>(bytes)};
    value.dtype = DType::u8;
    value.bytes = bytes;
    return value;
  }
  void fill(std::byte* data, Bytes bytes, int value) {
    const std::vector<std::byte> contents(bytes, static_cast<std::byte>(value));
    if (data != nullptr) device_->write(plain_bytes(bytes), data, contents);
  }
  bool holds(const std::byte* data, Bytes bytes, int value) {
    std::vector<std::byte> found(bytes, static_cast<std::byte>(value));
    if (data != nullptr) device_->read(plain_bytes(bytes), data, found);
    return std::all_of(found.begin(), found.end(),
                       [&](std::byte byte) { return byte == static_cast<std::byte>(value); });
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<MemoryShare> share_;
  TraceRecorder recorder_{64};
};

INSTANTIATE_TEST_SUITE_P(Every, Memory,
                         ::testing::Values(Place{"host", Place::whole}, Place{"meta", Place::whole},
                                           Place{"cuda", Place::whole}, Place{"host", Place::share},
                                           Place{"meta", Place::share},
                                           Place{"cuda", Place::share}),
                         [](const auto& info) {
                           const bool is_share = info.param.part == Place::share;
                           return std::string(is_share ? "share_of_" : "") + info.param.device;
                         });

TEST_P(Memory, charges_nothing_for_reserved_addresses) {
  const Reservation place = memory().reserve(100 * kDeviceCapacity);
  EXPECT_EQ(memory().reserved(), 0u);
  memory().unreserve(place);
}

TEST_P(Memory, maps_and_unmaps_the_units_of_a_reservation_only) {
  const Reservation wide = memory().reserve(4 * kPage, 2 * kPage);
  const Reservation narrow = memory().reserve(2 * kPage);
  EXPECT_THROW(memory().map(wide, 0, kPage), Error);
  memory().map(wide, 0, 4 * kPage);
  EXPECT_THROW(memory().unmap(wide, kPage, 2 * kPage), Error);
  EXPECT_THROW(memory().move(wide, 0, narrow, 0, 2 * kPage), Error);
  memory().unmap(wide, 2 * kPage, 2 * kPage);
  EXPECT_EQ(memory().reserved(), 2 * kPage);
  memory().unmap(wide, 0, 2 * kPage);
  EXPECT_THROW(memory().reserve(3 * kPage, 2 * kPage), Error);
  memory().unreserve(wide);
  memory().unreserve(narrow);
}

TEST_P(Memory, charges_mapped_pages_until_they_are_unmapped) {
  const Reservation place = memory().reserve(4 * kPage);
  memory().map(place, kPage, 2 * kPage);
  EXPECT_EQ(memory().reserved(), 2 * kPage);
  memory().unmap(place, kPage, kPage);
  EXPECT_EQ(memory().reserved(), kPage);
  memory().unmap(place, 2 * kPage, kPage);
  EXPECT_EQ(memory().reserved(), 0u);
  memory().unreserve(place);
}

TEST_P(Memory, keeps_what_is_written_across_pages_that_were_mapped_one_by_one) {
  const Reservation place = memory().reserve(4 * kPage);
  for (const Bytes page : {2u, 0u, 1u}) memory().map(place, page * kPage, kPage);
  fill(place.data, 3 * kPage, 0x5a);
  EXPECT_TRUE(holds(place.data, 3 * kPage, 0x5a));
  memory().unmap(place, 0, 3 * kPage);
  memory().unreserve(place);
}

TEST_P(Memory, moves_pages_with_what_is_in_them) {
  const Reservation from = memory().reserve(4 * kPage);
  const Reservation to = memory().reserve(4 * kPage);
  memory().map(from, 0, kPage);
  memory().map(from, kPage, 2 * kPage);
  fill(from.data, kPage, 1);
  if (from.data != nullptr) fill(from.data + kPage, 2 * kPage, 2);
  memory().move(from, kPage, to, 0, 2 * kPage);
  memory().move(from, 0, to, 2 * kPage, kPage);
  EXPECT_EQ(memory().reserved(), 3 * kPage);
  EXPECT_TRUE(holds(to.data, 2 * kPage, 2));
  if (to.data != nullptr) {
    EXPECT_TRUE(holds(to.data + 2 * kPage, kPage, 1));
  }
  memory().map(from, 0, 3 * kPage);  // the addresses are free again
  memory().unmap(from, 0, 3 * kPage);
  memory().unmap(to, 0, 3 * kPage);
  memory().unreserve(from);
  memory().unreserve(to);
}

TEST_P(Memory, serves_every_page_of_the_capacity_and_none_more) {
  const Reservation place = memory().reserve(kDeviceCapacity + kPage);
  const Segment segment = memory().allocate(kPage);
  memory().map(place, 0, kDeviceCapacity - kPage);
  EXPECT_THROW(memory().map(place, kDeviceCapacity, kPage), OutOfMemory);
  EXPECT_EQ(memory().counters().failed_allocations, 1u);
  memory().free(segment);
  memory().map(place, kDeviceCapacity, kPage);
  memory().unmap(place, kDeviceCapacity, kPage);
  memory().unmap(place, 0, kDeviceCapacity - kPage);
  memory().unreserve(place);
}

TEST_P(Memory, refuses_pages_that_are_mapped_already_or_not_mapped_or_not_whole) {
  const Reservation place = memory().reserve(4 * kPage);
  memory().map(place, 0, 2 * kPage);
  EXPECT_THROW(memory().map(place, kPage, kPage), Error);
  EXPECT_THROW(memory().unmap(place, kPage, 2 * kPage), Error);
  EXPECT_THROW(memory().map(place, 3 * kPage, 2 * kPage), Error);
  EXPECT_THROW(memory().map(place, 2 * kPage, 100), Error);
  EXPECT_THROW(memory().map(place, 2 * kPage + 1, kPage), Error);
  EXPECT_THROW(memory().unreserve(place), Error);
  EXPECT_THROW(memory().reserve(100), Error);
  EXPECT_EQ(memory().reserved(), 2 * kPage);
  memory().unmap(place, 0, 2 * kPage);
  memory().unreserve(place);
  EXPECT_THROW(memory().unreserve(place), Error);
}

TEST_P(Memory, hands_out_logical_addresses_that_no_device_changes) {
  const Segment segment = memory().allocate(100);
  const Reservation place = memory().reserve(4 * kPage);
  EXPECT_EQ(place.address, segment.address + kPage);
  EXPECT_EQ(place.address % kPage, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place.data) % kPage, 0u);
  memory().free(segment);
  memory().unreserve(place);
}

TEST_P(Memory, records_pages_so_that_validator_and_ledger_see_one_segment) {
  const Reservation place = memory().reserve(4 * kPage);
  memory().map(place, kPage, kPage);
  memory().map(place, 0, kPage);
  memory().map(place, 2 * kPage, 2 * kPage);
  recorder_.record(EventKind::alloc, 1, Role::activation, 3 * kPage, 3 * kPage,
                   place.address + kPage / 2);
  recorder_.record(EventKind::free, 1, Role::activation, 3 * kPage, 3 * kPage,
                   place.address + kPage / 2);
  memory().unmap(place, kPage, 2 * kPage);
  memory().unmap(place, 0, kPage);
  memory().unmap(place, 3 * kPage, kPage);
  memory().unreserve(place);
  EXPECT_THAT(violations(recorder_.trace()), IsEmpty());
  const Ledger ledger = make_ledger(recorder_.trace(), 0);
  EXPECT_EQ(ledger.reserved.overall_peak, 4 * kPage);
  EXPECT_EQ(ledger.allocated.overall_peak, 3 * kPage);
  EXPECT_DOUBLE_EQ(ledger.external_fragmentation, 0.5);  // half a page in front, half behind
}

// A device with segments only refuses virtual memory instead of doing something else.
class SegmentsOnly final : public DeviceMemory {
 public:
  SegmentsOnly() : DeviceMemory(kDeviceCapacity, kPage) {}
};

TEST(DeviceWithoutVirtualMemory, refuses_to_reserve_addresses) {
  SegmentsOnly memory;
  EXPECT_FALSE(memory.has_virtual_memory());
  EXPECT_THROW(memory.reserve(kPage), NotSupported);
}

}  // namespace
}  // namespace headroom
