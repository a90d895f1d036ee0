// Inputs that fuzzing found, read again with every compiler.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/read_trace.h"

namespace headroom::fuzz_corpus_test {
namespace {

TEST(FuzzCorpus, is_refused_or_read) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PROJECT_ROOT "/tests/fuzz/corpus")) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(wrong_with_reading(bytes), "") << entry.path();
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace headroom::fuzz_corpus_test
