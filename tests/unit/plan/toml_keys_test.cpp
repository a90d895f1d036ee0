#include "harness/plan/toml_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/error.h"

namespace headroom::toml_keys_test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string dotted(int parts, const std::string& part = "a") {
  std::string key = part;
  for (int i = 1; i < parts; ++i) key += "." + part;
  return key;
}

TEST(DottedKeys, of_a_hundred_parts_are_taken) {
  EXPECT_NO_THROW(check_dotted_keys(dotted(100) + " = 1\n[" + dotted(100) + "]\n", "x.toml"));
}

TEST(DottedKeys, of_more_parts_are_refused_by_file_and_line) {
  for (const std::string& text :
       {"\n" + dotted(101) + " = 1", "\n[" + dotted(101) + "]", "\nx = { " + dotted(101) + " = 1 }",
        "\n" + dotted(101, "\"quoted \\\" \""), "\n" + dotted(101, "'quoted \\'"),
        "'''\n'''." + dotted(101)})
    EXPECT_THAT([&] { check_dotted_keys(text, "x.toml"); },
                ThrowsMessage<InputError>(HasSubstr("x.toml:2: a key of more than 100 parts")))
        << text;
}

TEST(DottedKeys, are_not_looked_for_in_texts_numbers_and_comments) {
  const std::string dots(1000, '.');
  std::string numbers = "x = [0.5";
  for (int i = 0; i < 1000; ++i) numbers += ", 0.5";
  for (const std::string& text :
       {"x = \"" + dots + "\"", "x = '" + dots + "'", "x = \"\"\"\n" + dots + "\n\"\"\"",
        "# " + dots, "x = 1 # " + dots, numbers + "]", "x = \"\\\"" + dots + "\""})
    EXPECT_NO_THROW(check_dotted_keys(text, "x.toml")) << text;
}

}  // namespace
}  // namespace headroom::toml_keys_test
