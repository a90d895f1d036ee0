// Damaged trace files: each is either refused with InputError or read.
#include <gtest/gtest.h>

#include <optional>
#include <sstream>

#include "harness/base/error.h"
#include "harness/trace/file/chunk.h"
#include "harness/trace/file/reader.h"
#include "harness/trace/file/writer.h"
#include "tests/unit/trace/made_up_trace.h"

namespace headroom::trace_damage_test {
namespace {

using trace_file::BlockKind;
using trace_file::BlockWriter;

// Three chunks and two lists of names, in a few kilobytes.
Trace small_trace() { return random_trace(11, 90); }

std::string small_file() {
  const Trace trace = small_trace();
  std::ostringstream file;
  BlockWriter writer(file);
  writer.write(BlockKind::header, trace_file::header_text(trace.header));
  for (std::size_t i = 0; i < 3; ++i) {
    writer.write(BlockKind::names, trace_file::names_text(std::span(trace.op_names).subspan(i, 1)));
    std::string chunk;
    trace_file::encode_chunk(std::span(trace.events).subspan(30 * i, 30), chunk);
    writer.write(BlockKind::chunk, chunk);
  }
  writer.write(BlockKind::end, trace_file::end_text({90, 3}));
  return file.str();
}

// Returns nothing when the file is refused; any other exception fails the test.
std::optional<Trace> read(const std::string& bytes) {
  std::istringstream file(bytes);
  try {
    TraceReader reader(file, "damaged");
    Trace trace;
    while (reader.read_chunk(trace.events)) {
    }
    trace.op_names = reader.op_names();
    return trace;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

class DamagedTraces : public ::testing::Test {
 protected:
  std::size_t below(std::size_t end) { return random_() % end; }

  // Cuts out, duplicates, moves or overwrites a part.
  std::string damaged(std::string bytes) {
    const std::size_t at = below(bytes.size());
    const std::size_t length = 1 + below(std::min<std::size_t>(64, bytes.size() - at));
    const std::string part = bytes.substr(below(bytes.size()), length);
    switch (below(5)) {
      case 0:
        return bytes.erase(at, length);
      case 1:
        return bytes.insert(at, part);
      case 2:
        return bytes.replace(at, length, part);
      case 3:
        bytes[at] = static_cast<char>(below(2) == 0 ? 0xff : random_());
        return bytes;
      default:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        return bytes;
    }
  }

  std::mt19937_64 random_{20261121};
};

TEST_F(DamagedTraces, are_read_when_they_are_not) {
  const auto trace = read(small_file());
  ASSERT_TRUE(trace);
  EXPECT_EQ(first_difference(*trace, small_trace()), "");
}

TEST_F(DamagedTraces, are_refused_wherever_they_are_cut_off) {
  const std::string whole = small_file();
  for (std::size_t length = 0; length < whole.size(); ++length)
    ASSERT_FALSE(read(whole.substr(0, length))) << "at " << length;
}

TEST_F(DamagedTraces, never_pass_for_another_trace_for_one_wrong_bit) {
  const std::string whole = small_file();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
    if (const auto trace = read(bytes)) {
      ASSERT_EQ(first_difference(*trace, small_trace()), "") << "byte " << at;
    }
  }
}

TEST_F(DamagedTraces, are_refused_or_read_after_any_splice) {
  const std::string whole = small_file();
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = whole;
    for (std::size_t count = 1 + below(3); count > 0 && !bytes.empty(); --count)
      bytes = damaged(std::move(bytes));
    read(bytes);
  }
}

// Damage as an attacker would make it: every checksum is correct.
TEST_F(DamagedTraces, are_refused_or_read_when_damage_came_before_compression) {
  const Trace trace = small_trace();
  std::string chunk;
  trace_file::encode_chunk(trace.events, chunk);
  const std::string contents[] = {trace_file::header_text(trace.header),
                                  trace_file::names_text(trace.op_names), chunk,
                                  trace_file::end_text({90, 3})};
  constexpr BlockKind kKinds[] = {BlockKind::header, BlockKind::names, BlockKind::chunk,
                                  BlockKind::end};
  int chunks_read = 0;
  for (int i = 0; i < 4000; ++i) {
    std::ostringstream file;
    BlockWriter writer(file);
    const std::size_t victim = below(2) == 0 ? 2 : below(4);  // mostly the chunk
    for (std::size_t block = 0; block < 4; ++block)
      writer.write(kKinds[block], block == victim ? damaged(contents[block]) : contents[block]);
    chunks_read += read(file.str()) ? 1 : 0;
  }
  EXPECT_GT(chunks_read, 0);  // only values may be wrong
}

}  // namespace
}  // namespace headroom::trace_damage_test
