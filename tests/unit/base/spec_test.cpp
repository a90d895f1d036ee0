#include "harness/base/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/duration.h"
#include "harness/base/error.h"
#include "harness/base/registry.h"

namespace headroom::spec_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Spec, reads_a_name_and_its_parameters) {
  const Spec spec = Spec::parse("bfc( growth=on, fraction=0.5, limit=4GiB )");
  EXPECT_EQ(spec.name(), "bfc");
  EXPECT_TRUE(spec.flag("growth", false));
  EXPECT_DOUBLE_EQ(spec.number("fraction", 1), 0.5);
  EXPECT_EQ(spec.bytes("limit", 0), 4 * kGiB);
}

TEST(Spec, takes_a_lone_value_as_the_parameter_called_value) {
  EXPECT_EQ(Spec::parse("limit(4GiB)").bytes("value", 0), 4 * kGiB);
}

TEST(Spec, writes_the_canonical_form_it_reads_back) {
  const Spec spec = Spec::parse("bfc(limit=1GiB,growth=on)");
  EXPECT_EQ(spec.to_string(), "bfc(growth=on,limit=1GiB)");
  EXPECT_EQ(Spec::parse(spec.to_string()), spec);
}

TEST(Spec, reads_a_composition_outermost_first_and_writes_it_back) {
  const Spec spec = Spec::parse_composition("limit( 4GiB )|log |bfc(growth=on)");
  EXPECT_EQ(spec.name(), "limit");
  ASSERT_EQ(spec.inner().size(), 2u);
  EXPECT_EQ(spec.inner()[0].name(), "log");
  EXPECT_EQ(spec.innermost().name(), "bfc");
  EXPECT_EQ(spec.to_string(), "limit(4GiB)|log|bfc(growth=on)");
  EXPECT_EQ(Spec::parse_composition(spec.to_string()), spec);
  EXPECT_NE(Spec::parse_composition("limit(4GiB)|bfc(growth=on)"), spec);
}

TEST(Spec, takes_a_composition_only_where_one_may_stand) {
  EXPECT_THROW(Spec::parse("log|bfc"), InputError);
}

TEST(Spec, refuses_what_is_not_a_spec_and_quotes_it) {
  for (const char* bad : {"", "bfc(", "bfc)", "bfc(growth=)", "bfc(a=1,,b=2)", "bfc(a=1,)", "1bfc",
                          "bfc(a=1,a=2)", "a||b", "a|", "|a"}) {
    EXPECT_THROW(Spec::parse_composition(bad), InputError) << bad;
  }
}

// A recursive pattern matcher would overflow the stack here.
TEST(Spec, of_any_length_is_read_or_refused) {
  const std::string digits(9'000, '1');
  EXPECT_EQ(Spec::parse("gpt(vocabulary=" + digits + ")").text("vocabulary", ""), digits);
  EXPECT_THROW(Spec::parse("gpt(vocabulary=" + digits), InputError);
  EXPECT_THROW(Spec::parse(digits), InputError);
  EXPECT_THROW(Spec::parse("gpt(vocabulary=" + digits + ")").bytes("vocabulary", 0), InputError);
  EXPECT_THROW(parse_bytes(std::string(1'000'000, '1'), "here"), InputError);
  const std::string many(1'000'000, '1');
  for (const std::string& text : {many, "gpt(vocabulary=" + many + ")", "log|" + many})
    EXPECT_THAT([&] { Spec::parse_composition(text); },
                ThrowsMessage<InputError>(HasSubstr("is longer than 10000 characters")));
}

TEST(Spec, names_parameter_and_wanted_form_when_a_value_is_wrong) {
  const Spec spec = Spec::parse("bfc(growth=maybe,n=3x)");
  EXPECT_THAT([&] { spec.flag("growth", false); },
              ThrowsMessage<InputError>(HasSubstr("'growth' is 'maybe', but must be on or off")));
  EXPECT_THAT([&] { spec.integer("n", 0); }, ThrowsMessage<InputError>(HasSubstr("whole number")));
}

TEST(Spec, offers_the_nearest_known_parameter) {
  EXPECT_THAT(
      [] {
        Spec::parse("bfc(grwoth=on)").require_known({"fraction", "growth"});
      },
      ThrowsMessage<InputError>(HasSubstr("did you mean 'growth'?")));
}

TEST(UnknownName, is_answered_with_all_names_or_of_hundreds_with_the_nearest) {
  std::vector<std::string> names;
  for (int i = 100; i < 400; ++i) names.push_back("cell-" + std::to_string(i));
  const auto ask = [&](std::size_t known) {
    try {
      throw_unknown_name("cell", "cell-39x", {names.end() - static_cast<long>(known), names.end()});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(ask(3), HasSubstr("Known: cell-397, cell-398, cell-399"));
  EXPECT_THAT(ask(300), HasSubstr("did you mean 'cell-390'?"));
  EXPECT_THAT(ask(300), HasSubstr(" and 295 more"));
  EXPECT_LT(ask(300).size(), 200u);
}

TEST(Bytes, are_read_in_binary_and_decimal_units) {
  EXPECT_EQ(parse_bytes("512 MiB", "here"), 512 * kMiB);
  EXPECT_EQ(parse_bytes("1.5GB", "here"), 1'500'000'000u);
  EXPECT_EQ(parse_bytes("4096", "here"), 4096u);
  EXPECT_EQ(parse_bytes("24gb", "here"), 24'000'000'000u);
  EXPECT_EQ(parse_bytes("24gib", "here"), 24 * kGiB);
  EXPECT_EQ(parse_bytes(" 1.50\tKiB\n", "here"), 1536u);
  for (const char* none : {"", " ", ".5", "5.", "-1", "+1", "inf", "nan", "1e3", "0x10", "1 2",
                           "GiB", "1.5.2", "4 gx", "4K"})
    EXPECT_THROW(parse_bytes(none, "here"), InputError) << none;
  EXPECT_THAT([] { parse_bytes("lots", "--capacity"); },
              ThrowsMessage<InputError>(HasSubstr("--capacity: 'lots'")));
}

TEST(Duration, is_read_in_whole_and_broken_units) {
  using namespace std::chrono_literals;
  EXPECT_EQ(parse_duration("200ms", "here"), 200ms);
  EXPECT_EQ(parse_duration("0.2s", "here"), 200ms);
  EXPECT_EQ(parse_duration("90", "here"), 90s);
  EXPECT_EQ(parse_duration("1.5m", "here"), 90s);
  EXPECT_EQ(parse_duration("2h", "here"), 2h);
}

TEST(Duration, that_is_none_is_refused_with_place_and_mend) {
  for (const char* text :
       {"", "soon", "0.2ms", "0s", "-1s", "nan", "inf", "1e3s", "2 s", "5d", "10001h"})
    EXPECT_THAT(
        [&] { parse_duration(text, "--plan-time"); },
        ThrowsMessage<InputError>(
            AllOf(HasSubstr("--plan-time: '" + std::string(text) + "'"), HasSubstr("write 200ms"))))
        << text;
}

}  // namespace
}  // namespace headroom::spec_test
