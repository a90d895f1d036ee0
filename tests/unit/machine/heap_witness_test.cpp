#include "harness/machine/heap_witness.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace headroom::heap_witness_test {
namespace {

class HeapWitness : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!heap_witness_available()) GTEST_SKIP() << "a sanitizer brings its own malloc";
  }
  // Stops the compiler from seeing that a block is never used.
  static void* keep(void* data) {
    asm volatile("" : "+r"(data) : : "memory");
    return data;
  }
};

TEST_F(HeapWitness, sees_a_block_come_and_go) {
  const HeapCounters before = heap_counters();
  void* data = keep(std::malloc(100'000));
  const HeapCounters during = heap_counters();
  std::free(data);
  EXPECT_GE(during.live_bytes - before.live_bytes, 100'000u);
  EXPECT_LT(during.live_bytes - before.live_bytes, 101'000u);
  EXPECT_EQ(during.allocations - before.allocations, 1u);
  EXPECT_EQ(heap_counters().live_bytes, before.live_bytes);
}

TEST_F(HeapWitness, sees_every_way_to_allocate) {
  const HeapCounters before = heap_counters();
  std::vector<void*> blocks;
  blocks.reserve(16);
  const HeapCounters reserved = heap_counters();
  EXPECT_EQ(reserved.allocations - before.allocations, 1u);  // the allocation of the vector itself
  blocks.push_back(keep(std::malloc(10'000)));
  blocks.push_back(keep(std::calloc(10, 1'000)));
  blocks.push_back(keep(std::realloc(nullptr, 10'000)));
  blocks.push_back(keep(std::aligned_alloc(64, 10'048)));
  blocks.push_back(keep(memalign(128, 10'000)));
  blocks.push_back(keep(valloc(10'000)));
  void* aligned = nullptr;
  ASSERT_EQ(posix_memalign(&aligned, 4096, 10'000), 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 4096, 0u);
  blocks.push_back(keep(aligned));
  EXPECT_EQ(heap_counters().allocations - reserved.allocations, 7u);
  EXPECT_GE(heap_counters().live_bytes - reserved.live_bytes, 70'000u);
  for (void* data : blocks) std::free(data);
  EXPECT_EQ(heap_counters().live_bytes, reserved.live_bytes);
}

TEST_F(HeapWitness, follows_a_block_that_is_resized) {
  const Bytes before = heap_counters().live_bytes;
  void* data = keep(std::malloc(1'000));
  data = keep(std::realloc(data, 200'000));
  EXPECT_GE(heap_counters().live_bytes - before, 200'000u);
  EXPECT_LT(heap_counters().live_bytes - before, 201'000u + 4096);
  std::free(data);
  EXPECT_EQ(heap_counters().live_bytes, before);
}

TEST_F(HeapWitness, keeps_the_peak_until_it_is_restarted) {
  restart_heap_peak();
  const Bytes start = heap_counters().peak_bytes;
  std::free(keep(std::malloc(5'000'000)));
  EXPECT_GE(heap_counters().peak_bytes - start, 5'000'000u);
  restart_heap_peak();
  EXPECT_LT(heap_counters().peak_bytes, start + 1'000'000);
}

TEST_F(HeapWitness, sees_allocations_of_libraries) {
  const HeapCounters before = heap_counters();
  char* copy = strdup("a string that libc itself allocates room for");
  keep(copy);
  EXPECT_EQ(heap_counters().allocations - before.allocations, 1u);
  std::free(copy);
}

TEST_F(HeapWitness, loses_nothing_between_threads) {
  const Bytes before = heap_counters().live_bytes;
  {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 10'000; ++i) std::free(keep(std::malloc(1 + i % 5'000)));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  // Threads leave a little memory in libc (bookkeeping of stacks), far less than their blocks.
  EXPECT_NEAR(static_cast<double>(heap_counters().live_bytes), static_cast<double>(before), 16'384);
}

TEST_F(HeapWitness, works_in_a_forked_child) {
  const pid_t child = fork();
  if (child == 0) {
    const Bytes before = heap_counters().live_bytes;
    void* data = keep(std::malloc(50'000));
    const bool seen = heap_counters().live_bytes - before >= 50'000;
    std::free(data);
    _exit(seen && heap_counters().live_bytes == before ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(HeapWitness, refuses_bad_alignments_as_posix_wants) {
  void* data = nullptr;
  EXPECT_EQ(posix_memalign(&data, 24, 100), EINVAL);
  EXPECT_EQ(posix_memalign(&data, 0, 100), EINVAL);
  EXPECT_EQ(data, nullptr);
}

}  // namespace
}  // namespace headroom::heap_witness_test
