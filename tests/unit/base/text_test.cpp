#include "harness/base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headroom::text_test {
namespace {

using ::testing::ElementsAre;

TEST(Printable, leaves_what_a_terminal_shows) {
  for (const char* name : {"", "bfc(growth=on)", "a\\b", "Größe 4µs → 10⁹", "模型", "🙂"})
    EXPECT_EQ(printable(name), name);
}

TEST(Printable, shows_what_a_terminal_would_obey) {
  EXPECT_EQ(printable("\x1b[2Jred"), "\\x1b[2Jred");
  EXPECT_EQ(printable("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(printable("two\nlines\r\t"), "two\\x0alines\\x0d\\x09");
  EXPECT_EQ(printable("del\x7f"), "del\\x7f");
  EXPECT_EQ(printable(std::string_view("nul\0", 4)), "nul\\x00");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");  // one character that begins a sequence
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "gpj"),
            "\\xe2\\x80\\xaegpj");  // right to left
}

TEST(Printable, shows_bytes_that_are_no_characters) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");           // cut off
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");           // ESC in an overlong form
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half a pair
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");
}

TEST(Printable, keeps_the_lines_of_a_text) {
  EXPECT_EQ(printable_lines("a\n\tb\x1b"), "a\n\tb\\x1b");
}

TEST(Shortened, keeps_the_begin_and_the_end_of_a_long_text) {
  EXPECT_EQ(shortened("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(shortened("abcdefghij", 4), "ab [6 bytes left out] ij");
  EXPECT_EQ(shortened("éééééé", 6), "éé [6 bytes left out] é");
}

TEST(FileName, is_one_part_of_a_path) {
  for (const char* name : {"20261123T184234Z-quick", "a b", "Größe", "..."})
    EXPECT_TRUE(is_file_name(name)) << name;
  for (const std::string& none :
       {std::string(), std::string("."), std::string(".."), std::string("../x"), std::string("/x"),
        std::string("x\n"), std::string("x\0", 2), std::string(201, 'x')})
    EXPECT_FALSE(is_file_name(none)) << none;
}

TEST(Split, keeps_empty_parts) {
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
}

}  // namespace
}  // namespace headroom::text_test
