#include "harness/device/device_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/device/device.h"
#include "harness/device/host/host_memory.h"
#include "harness/device/meta/cards.h"
#include "harness/trace/recorder.h"

namespace headroom::device_memory_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

std::unique_ptr<Device> make_device(const std::string& text) {
  const Spec spec = Spec::parse(text);
  return make_device(spec);
}

// Number of pages at `data` that are resident.
std::size_t resident_pages(std::byte* data, Bytes bytes) {
  std::vector<unsigned char> pages(bytes / kHostGranule);
  if (mincore(data, bytes, pages.data()) != 0) return 0;
  return static_cast<std::size_t>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; }));
}

TEST(DeviceMemory, charges_whole_granules) {
  HostMemory memory(kMiB);
  const Segment segment = memory.allocate(5000);
  EXPECT_EQ(segment.size, 5000u);
  EXPECT_EQ(segment.charged, 8192u);
  EXPECT_EQ(memory.reserved(), 8192u);
  memory.free(segment);
  EXPECT_EQ(memory.reserved(), 0u);
}

TEST(DeviceMemory, counts_its_capacity_in_whole_granules) {
  EXPECT_EQ(HostMemory(10'000).capacity(), 8192u);
}

TEST(DeviceMemory, refuses_what_passes_the_capacity_and_stays_as_it_was) {
  HostMemory memory(kMiB);
  const Segment held = memory.allocate(kMiB / 2);
  try {
    memory.allocate(kMiB);
    FAIL() << "1.5 MiB were served from 1 MiB";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.report().requested_bytes, kMiB);
    EXPECT_EQ(error.report().capacity_bytes, kMiB);
    EXPECT_EQ(error.report().reserved_bytes, kMiB / 2);
  }
  EXPECT_THROW(memory.allocate(~Bytes{0}), OutOfMemory);
  EXPECT_EQ(memory.available(), kMiB / 2);
  EXPECT_EQ(memory.counters().failed_allocations, 2u);
  memory.free(memory.allocate(kMiB / 2));
  memory.free(held);
}

TEST(DeviceMemory, hands_out_the_same_logical_addresses_on_every_device) {
  HostMemory host(64 * kMiB);
  const auto meta = make_device("meta(capacity=64MiB)");
  for (const Bytes bytes : {Bytes{1}, 3 * kMiB, Bytes{4096}, 8 * kMiB}) {
    const Segment on_host = host.allocate(bytes);
    const Segment on_meta = meta->memory().allocate(bytes);
    EXPECT_EQ(on_host.address, on_meta.address);
    EXPECT_EQ(on_host.charged, on_meta.charged);
    EXPECT_EQ(on_host.address % (2 * kMiB), 0u);
    EXPECT_NE(on_host.data, nullptr);
    EXPECT_EQ(on_meta.data, nullptr);
    host.free(on_host);  // freed addresses are not reused
    meta->memory().free(on_meta);
  }
}

TEST(DeviceMemory, records_segments_taken_and_given_back) {
  TraceRecorder recorder(8);
  HostMemory memory(kMiB);
  memory.record_into(&recorder);
  const Segment segment = memory.allocate(100);
  memory.free(segment);
  const auto& events = recorder.trace().events;
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, EventKind::segment_alloc);
  EXPECT_EQ(events[0].requested, 100u);
  EXPECT_EQ(events[0].size, 4096u);
  EXPECT_EQ(events[1].kind, EventKind::segment_free);
  EXPECT_EQ(events[1].id, events[0].id);
}

TEST(HostMemory, has_its_pages_populated_when_a_segment_is_taken) {
  HostMemory memory(64 * kMiB);
  for (const Bytes bytes : {64 * kKiB, 16 * kMiB}) {
    const Segment segment = memory.allocate(bytes);
    EXPECT_EQ(resident_pages(segment.data, bytes), bytes / kHostGranule);
    memory.free(segment);
  }
}

TEST(HostMemory, gives_its_pages_back_when_a_segment_is_freed) {
  HostMemory memory(64 * kMiB);
  const Segment segment = memory.allocate(16 * kMiB);
  memory.free(segment);
  // Nothing is mapped there any more, so mincore fails with ENOMEM.
  std::vector<unsigned char> pages(16 * kMiB / kHostGranule);
  EXPECT_EQ(mincore(segment.data, 16 * kMiB, pages.data()), -1);
  EXPECT_EQ(errno, ENOMEM);
}

TEST(HostMemory, starts_large_segments_on_large_page_boundaries) {
  HostMemory memory(64 * kMiB);
  const Segment segment = memory.allocate(5 * kMiB);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment.data) % (2 * kMiB), 0u);
  std::memset(segment.data, 0x5a, segment.size);
  memory.free(segment);
}

TEST(HostMemory, says_why_the_system_refused) {
  HostMemory memory(Bytes{1} << 60);
  EXPECT_THAT([&] { memory.allocate(Bytes{1} << 59); },
              ThrowsMessage<DeviceError>(HasSubstr("Cannot allocate memory")));
  EXPECT_EQ(memory.reserved(), 0u);
}

TEST(HostMemory, defaults_to_a_part_of_what_is_available) {
  const Bytes capacity = default_host_capacity();
  EXPECT_GT(capacity, 0u);
  EXPECT_EQ(capacity % (2 * kMiB), 0u);
}

TEST(Meta, has_the_capacity_of_the_named_card_in_whole_granules) {
  const auto device = make_device("meta(card=v100-16gb)");
  EXPECT_EQ(device->memory().granule(), 2 * kMiB);
  EXPECT_EQ(device->memory().capacity(), align_down(16'945'512'448u, 2 * kMiB));
  EXPECT_FALSE(device->computes());
}

TEST(Meta, lets_a_capacity_leave_room_on_a_card) {
  const auto device = make_device("meta(card=a100-80gb,capacity=60GiB)");
  EXPECT_EQ(device->memory().capacity(), 60 * kGiB);
  EXPECT_EQ(device->memory().granule(), 2 * kMiB);
}

TEST(Meta, mirrors_the_host_when_only_a_capacity_is_named) {
  const auto device = make_device("meta(capacity=4GiB)");
  EXPECT_EQ(device->memory().granule(), HostMemory(kMiB).granule());
}

TEST(Meta, answers_an_unknown_card_with_the_nearest) {
  EXPECT_THAT([] { make_device("meta(card=v100-61gb)"); },
              ThrowsMessage<InputError>(HasSubstr("did you mean 'v100-16gb'")));
  EXPECT_THAT([] { make_device("meta"); }, ThrowsMessage<InputError>(HasSubstr("name a card")));
  EXPECT_THAT([] { make_device("meta(cards=v100-16gb)"); },
              ThrowsMessage<InputError>(HasSubstr("did you mean 'card'")));
}

TEST(Meta, names_a_source_for_every_card) {
  ASSERT_FALSE(cards().empty());
  for (const Card& card : cards()) {
    EXPECT_FALSE(card.source.empty()) << card.id;
    EXPECT_GE(card.driver_total, card.capacity) << card.id;
    EXPECT_GT(card.granule, 0u) << card.id;
  }
}

TEST(Meta, knows_the_machines_that_have_a_card) {
  const std::string machine = "g5.12xlarge";
  const Card& card = find_card(machine);
  EXPECT_EQ(card.id, "a10g");
  EXPECT_THAT(machines_with(card, 1), ElementsAre("g5.xlarge"));
  EXPECT_THAT(machines_with(card, 5), ElementsAre("g5.48xlarge"));
  EXPECT_THAT(machines_with(card, 9), IsEmpty());
}

TEST(Meta, gives_no_machine_the_name_of_another_or_of_a_card) {
  std::set<std::string> names;
  for (const Card& card : cards()) {
    names.insert(card.id);
    names.insert(card.aliases.begin(), card.aliases.end());
  }
  for (const Card& card : cards())
    for (int count = 1; count <= 16; count *= 2)
      for (const std::string& name : machines_with(card, count)) {
        EXPECT_EQ(find_card(name).id, card.id) << name;
        EXPECT_FALSE(names.contains(name)) << name;
        EXPECT_GE(machine_called(name)->cards, count) << name;
      }
}

}  // namespace
}  // namespace headroom::device_memory_test
