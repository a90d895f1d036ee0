// Adaptors in front of a strategy: what each refuses, detects or writes, and the orders in which
// they may be composed.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/base/error.h"
#include "harness/device/poison.h"
#include "tests/unit/strategies/allocator/decision_log.h"

namespace headroom::adaptors_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::ThrowsMessage;

class Adaptors : public DecisionLog {
 protected:
  Block take_as(Bytes bytes, Role role, Phase phase) {
    return allocator().allocate(bytes, {.role = role, .phase = phase});
  }
  void refuses(const std::string& spec, const std::string& because) {
    EXPECT_THAT([&] { make(spec); }, ThrowsMessage<InputError>(HasSubstr(because))) << spec;
  }
};

TEST_F(Adaptors, stand_in_front_of_one_strategy) {
  refuses("bfc|limit(1MiB)", "bfc|limit(1MiB): 'bfc' is a strategy and must come last");
  refuses("limit(1MiB)", "limit(1MiB): 'limit' needs a strategy behind it");
  refuses("limit(1MiB)|poison", "limit(1MiB)|poison: 'poison' needs a strategy behind it");
  refuses("limt(1MiB)|bfc", "did you mean 'limit'?");
  refuses("limit(1MiB)|bcf", "did you mean 'bfc'?");
  refuses("limit(byte=1MiB)|bfc", "did you mean 'value'?");
  make("limit(1MiB)|poison|fault(nth=9)|caching");
}

TEST_F(Adaptors, limit_counts_requests_in_steps_of_256_bytes_and_frees_again) {
  make("limit(1KiB)|caching");
  const Block block = take(513);  // counts as 768
  EXPECT_THROW(take(257), OutOfMemory);
  take(256);
  give(block);
  EXPECT_EQ(take(700).requested, 700u);
  EXPECT_THAT([&] { take(1); }, ThrowsMessage<OutOfMemory>(HasSubstr("limit(1KiB)")));
}

TEST_F(Adaptors, align_starts_blocks_at_multiples_of_what_it_was_told) {
  for (const char* bytes : {"32", "64", "128", "256", "512", "1024", "2048", "4096"}) {
    make(std::string("align(to=") + bytes + ")|bfc");
    take(256);  // moves the next block off an address that happens to be aligned
    std::vector<Block> blocks;
    for (int i = 0; i < 8; ++i) {
      blocks.push_back(take(256));
      EXPECT_EQ(blocks.back().address % std::stoul(bytes), 0u) << bytes;
      EXPECT_EQ(blocks.back().requested, 256u);
      EXPECT_GE(blocks.back().size, 256u);
    }
    for (const Block& block : blocks) give(block);
    EXPECT_EQ(allocator().statistics().live_blocks, 1u);
    EXPECT_EQ(allocator().statistics().requested, 256u);
  }
}

TEST_F(Adaptors, align_asks_for_as_much_more_as_it_may_have_to_skip) {
  make("limit(8KiB)|align(to=4KiB)|malloc");
  EXPECT_EQ(take(4 * kKiB).size, 8 * kKiB - 256);  // 4096 and up to 3840 in front
  make("align(to=256)|bfc(growth=on)");  // alignment that every strategy guarantees anyway
  EXPECT_EQ(take(1000).size, 1024u);
}

TEST_F(Adaptors, align_refuses_what_is_no_power_of_two_or_beyond_a_page) {
  refuses("align|bfc", "give the bytes, as in align(to=4KiB)|bfc");
  refuses("align(to=0)|bfc", "give the bytes");
  refuses("align(to=48)|bfc", "to=48 must be a power of two");
  refuses("align(to=4097)|bfc", "to=4097 must be a power of two");
  refuses("align(to=8KiB)|bfc", "of at most 4.00 KiB");
  refuses("align(to=-1)|bfc", "to");
}

TEST_F(Adaptors, round_takes_whole_multiples_and_says_what_was_asked_for) {
  make("round(to=1MiB)|bfc(growth=on)");
  const Block one = take(1);
  const Block more = take(kMiB + 1);
  EXPECT_EQ(one.requested, 1u);
  EXPECT_EQ(one.size, kMiB);
  EXPECT_EQ(more.size, 2 * kMiB);
  EXPECT_EQ(allocator().statistics().allocated, 3 * kMiB);
  give(one);
  give(more);
  EXPECT_EQ(allocator().statistics().allocated, 0u);
  refuses("round|bfc", "give the bytes");
}

TEST_F(Adaptors, fault_refuses_the_nth_request_and_no_other) {
  make("fault(nth=3)|caching");
  take(1);
  take(1);
  EXPECT_THAT([&] { take(1); }, ThrowsMessage<OutOfMemory>(HasSubstr("on purpose at request 3")));
  take(1);
}

TEST_F(Adaptors, fault_refuses_the_same_requests_for_the_same_seed) {
  const auto refused = [&](const std::string& seed) {
    make("fault(probability=0.5,seed=" + seed + ")|caching");
    std::string pattern;
    for (int i = 0; i < 64; ++i) {
      try {
        take(1);
        pattern += '.';
      } catch (const OutOfMemory&) {
        pattern += 'x';
      }
    }
    return pattern;
  };
  EXPECT_EQ(refused("7"), refused("7"));
  EXPECT_NE(refused("7"), refused("8"));
  EXPECT_THAT(refused("7"), AllOf(HasSubstr("x"), HasSubstr(".")));
}

TEST_F(Adaptors, fault_wants_to_know_what_to_refuse) {
  refuses("fault|bfc", "either nth or probability");
  refuses("fault(nth=0)|bfc", "counts from 1");
  refuses("fault(probability=1.5)|bfc", "between 0 and 1");
}

TEST_F(Adaptors, guard_holds_a_phase_to_its_budget_whoever_took_the_bytes) {
  make("guard(backward=1MiB)|caching");
  take_as(900 * kKiB, Role::activation, Phase::forward);
  take_as(kMiB, Role::weight, Phase::forward);  // forward has no budget
  EXPECT_THAT([&] { take_as(1, Role::gradient, Phase::backward); },
              ThrowsMessage<OutOfMemory>(HasSubstr("backward may hold 1.00 MiB")));
}

TEST_F(Adaptors, guard_holds_a_role_to_its_budget_to_the_byte) {
  make("guard(activation=1000)|caching");
  const Block block = take_as(600, Role::activation, Phase::forward);
  take_as(5000, Role::weight, Phase::forward);
  EXPECT_THROW(take_as(401, Role::activation, Phase::backward), OutOfMemory);
  take_as(400, Role::activation, Phase::backward);
  give(block);
  take_as(600, Role::activation, Phase::forward);
}

TEST_F(Adaptors, guard_wants_a_scope_that_exists) {
  refuses("guard|bfc", "name a budget");
  refuses("guard(backwards=1MiB)|bfc", "did you mean 'backward'?");
}

TEST_F(Adaptors, log_writes_what_rmm_would) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("headroom-log-" + std::to_string(::getpid()) + ".csv");
  make("log(file=" + path.string() + ")|caching", "meta(capacity=4MiB)");
  const Block block = take(1000);
  EXPECT_THROW(take(10 * kMiB), OutOfMemory);
  give(block);
  make("caching");  // closes the file
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  std::filesystem::remove(path);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "Thread,Time,Action,Pointer,Size,Stream");
  const std::string head = "[0-9]+,[0-9:]+:[0-9]{6},";
  EXPECT_THAT(lines[1], MatchesRegex(head + "allocate,0x10000000000,1000,0"));
  EXPECT_THAT(lines[2], MatchesRegex(head + "allocate failure,\\(nil\\),10485760,0"));
  EXPECT_THAT(lines[3], MatchesRegex(head + "free,0x10000000000,1000,0"));
}

TEST_F(Adaptors, log_wants_a_file_it_can_write) {
  refuses("log|bfc", "name the file");
  refuses("log(file=/nowhere/at/all.csv)|bfc", "cannot write /nowhere/at/all.csv: No such file");
}

// These writes are what poison detects; AddressSanitizer would end the process at them.
class PoisonAdaptor : public Adaptors {
 protected:
  void SetUp() override { make("poison(quarantine=8KiB)|caching", "host(capacity=64MiB)"); }
  static void scribble(std::byte* data, std::byte value = std::byte{1}) {
    unpoison(data, 1);
    *data = value;
  }
};

TEST_F(PoisonAdaptor, fills_what_is_new) {
  const Block block = take(1000);
  EXPECT_EQ(block.data[0], std::byte{0xA5});
  EXPECT_EQ(block.data[999], std::byte{0xA5});
  std::memset(block.data, 0, 1000);
  give(block);
}

TEST_F(PoisonAdaptor, finds_a_write_behind_the_end) {
  const Block block = take(1000);
  scribble(block.data + 1000);
  EXPECT_THAT([&] { give(block); },
              ThrowsMessage<Error>(HasSubstr("written behind its end, at byte 1000")));
}

TEST_F(PoisonAdaptor, finds_a_write_before_the_start) {
  const Block block = take(1000);
  scribble(block.data - 1);
  EXPECT_THAT([&] { give(block); },
              ThrowsMessage<Error>(HasSubstr("written before its start, at byte -1")));
}

TEST_F(PoisonAdaptor, finds_a_write_after_the_block_was_freed) {
  const Block block = take(1000);
  give(block);
  scribble(block.data + 7);
  EXPECT_THAT([&] { allocator().trim(); },
              ThrowsMessage<Error>(HasSubstr("written after it was freed, at byte 7")));
}

TEST_F(PoisonAdaptor, lets_go_of_quarantine_before_it_refuses_a_request) {
  make("poison(quarantine=1GiB)|caching", "host(capacity=64MiB)");
  for (int i = 0; i < 10; ++i) give(take(20 * kMiB));
  EXPECT_EQ(allocator().statistics().live_blocks, 0u);
}

}  // namespace
}  // namespace headroom::adaptors_test
