// The CUDA device's page bookkeeping, tested with a strict fake driver.
#include "harness/device/cuda/mapped_pages.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <utility>

#include "harness/base/error.h"

namespace headroom::mapped_pages_test {
namespace {

constexpr Bytes kPage = 2 * kMiB;

std::byte* address(Bytes page) { return reinterpret_cast<std::byte*>((1000 + page) * kPage); }

// Refuses what the CUDA driver refuses (mapping a page twice, unmapping a missing or partial
// mapping, destroying a mapped page) and the calls it is told to refuse.
class StrictDriver final : public PageDriver {
 public:
  Page create(Bytes size) override {
    refuse_when_due();
    pages[++last_] = size;
    return last_;
  }
  void destroy(Page page) override {
    for (const auto& [at, mapped] : mappings) EXPECT_NE(mapped, page) << "destroyed while mapped";
    EXPECT_EQ(pages.erase(page), 1u) << "destroyed twice";
  }
  void map(std::byte* at, Bytes size, Page page) override {
    refuse_when_due();
    EXPECT_EQ(pages.at(page), size);
    EXPECT_TRUE(mappings.emplace(at, page).second) << "mapped twice";
  }
  void unmap(std::byte* at, Bytes size) override {
    EXPECT_TRUE(waited) << "unmapped under work that may still use it";
    ASSERT_TRUE(mappings.contains(at)) << "unmapped what is not mapped";
    EXPECT_EQ(pages.at(mappings.at(at)), size) << "unmapped a part";
    mappings.erase(at);
    for (Bytes offset = 0; offset < size; offset += kPage) accessible.erase(at + offset);
  }
  void allow_access(std::byte* at, Bytes bytes) override {
    refuse_when_due();
    for (Bytes offset = 0; offset < bytes; offset += pages.at(mappings.at(at + offset)))
      EXPECT_TRUE(mappings.contains(at + offset));
    for (Bytes offset = 0; offset < bytes; offset += kPage) accessible.insert(at + offset);
    waited = false;  // from now on queued work may use them
  }
  void wait() override { waited = true; }

  int refuse_after = -1;  // calls; -1: never
  bool waited = true;
  std::map<Page, Bytes> pages;  // and their sizes
  std::map<std::byte*, Page> mappings;
  std::set<std::byte*> accessible;

 private:
  void refuse_when_due() {
    if (refuse_after >= 0 && refuse_after-- == 0) throw DeviceError("refused");
  }
  Page last_ = 0;
};

TEST(MappedPages, put_one_accessible_page_behind_each_address) {
  StrictDriver driver;
  MappedPages pages(driver);
  pages.map(address(2), 3 * kPage, kPage);
  EXPECT_EQ(driver.pages.size(), 3u);
  EXPECT_EQ(driver.accessible, (std::set{address(2), address(3), address(4)}));
}

TEST(MappedPages, give_back_part_of_what_one_call_mapped) {
  StrictDriver driver;
  MappedPages pages(driver);
  pages.map(address(0), 4 * kPage, kPage);
  pages.unmap(address(1), 2 * kPage);
  EXPECT_EQ(driver.accessible, (std::set{address(0), address(3)}));
  EXPECT_EQ(driver.pages.size(), 2u);
}

TEST(MappedPages, take_one_call_of_the_driver_for_each_unit) {
  constexpr Bytes kUnit = 10 * kPage;
  StrictDriver driver;
  MappedPages pages(driver);
  pages.map(address(0), 3 * kUnit, kUnit);
  EXPECT_EQ(driver.pages.size(), 3u);
  pages.unmap(address(10), kUnit);
  EXPECT_EQ(driver.pages.size(), 2u);
  pages.move(address(20), address(40), kUnit);
  EXPECT_TRUE(driver.accessible.contains(address(49)));
  EXPECT_FALSE(driver.accessible.contains(address(20)));
  EXPECT_EQ(driver.accessible.size(), 20u);
}

TEST(MappedPages, move_the_same_physical_page) {
  StrictDriver driver;
  MappedPages pages(driver);
  pages.map(address(0), 2 * kPage, kPage);
  const auto before = driver.mappings;
  pages.move(address(0), address(10), 2 * kPage);
  EXPECT_EQ(driver.mappings.at(address(10)), before.at(address(0)));
  EXPECT_EQ(driver.mappings.at(address(11)), before.at(address(1)));
  EXPECT_EQ(driver.accessible, (std::set{address(10), address(11)}));
}

TEST(MappedPages, map_nothing_when_the_driver_refuses_on_the_way) {
  for (int calls = 0; calls < 7; ++calls) {  // three pages take six calls and one to set access
    StrictDriver driver;
    MappedPages pages(driver);
    driver.refuse_after = calls;
    EXPECT_THROW(pages.map(address(0), 3 * kPage, kPage), DeviceError) << calls;
    EXPECT_TRUE(driver.pages.empty()) << calls;
    EXPECT_TRUE(driver.mappings.empty()) << calls;
    pages.map(address(0), 3 * kPage, kPage);
    EXPECT_EQ(pages.count(), 3u);
  }
}

TEST(MappedPages, lose_no_page_when_a_move_is_refused) {
  StrictDriver driver;
  {
    MappedPages pages(driver);
    pages.map(address(0), 3 * kPage, kPage);
    driver.refuse_after = 1;
    EXPECT_THROW(pages.move(address(0), address(10), 3 * kPage), DeviceError);
  }
  EXPECT_TRUE(driver.pages.empty());
  EXPECT_TRUE(driver.mappings.empty());
}

TEST(MappedPages, leave_nothing_behind) {
  StrictDriver driver;
  {
    MappedPages pages(driver);
    pages.map(address(5), 2 * kPage, kPage);
  }
  EXPECT_TRUE(driver.pages.empty());
  EXPECT_TRUE(driver.mappings.empty());
}

TEST(MappedPages, agree_with_the_driver_after_any_sequence) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  StrictDriver driver;
  MappedPages pages(driver);
  constexpr Bytes kAddresses = 24;
  std::set<Bytes> mapped;
  for (int round = 0; round < 2000; ++round) {
    const Bytes first = random() % kAddresses;
    const Bytes other = random() % kAddresses;
    const bool is_mapped = mapped.contains(first);
    if (!is_mapped) {
      pages.map(address(first), kPage, kPage);
      mapped.insert(first);
    } else if (!mapped.contains(other)) {
      pages.move(address(first), address(other), kPage);
      mapped.erase(first);
      mapped.insert(other);
    } else {
      pages.unmap(address(first), kPage);
      mapped.erase(first);
    }
    std::set<std::byte*> expected;
    for (const Bytes page : mapped) expected.insert(address(page));
    ASSERT_EQ(driver.accessible, expected);
    ASSERT_EQ(driver.pages.size(), mapped.size());
  }
}

}  // namespace
}  // namespace headroom::mapped_pages_test
