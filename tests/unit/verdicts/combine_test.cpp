#include "harness/verdicts/combine.h"

#include <gtest/gtest.h>

namespace headroom::combine_test {
namespace {

using enum ClaimVerdict;
using enum PartKind;

TEST(Points, that_agree_give_their_word) {
  for (const ClaimVerdict word : {reproduced, weaker, stronger, direction_only, refuted})
    EXPECT_EQ(combine_points({word, word, word}), word) << to_string(word);
}

TEST(Points, that_could_not_be_tested_decide_nothing) {
  EXPECT_EQ(combine_points({reproduced, not_testable_here}), reproduced);
  EXPECT_EQ(combine_points({not_testable_here, not_testable_here}), not_testable_here);
  EXPECT_EQ(combine_points({}), not_testable_here);
}

TEST(Points, that_hold_in_part_make_a_condition) {
  EXPECT_EQ(combine_points({reproduced, stronger}), conditional);
  EXPECT_EQ(combine_points({refuted, reproduced, refuted}), conditional);
  EXPECT_EQ(combine_points({reproduced, weaker, inconclusive}), conditional);
}

TEST(Points, that_hold_nowhere_make_no_condition) {
  EXPECT_EQ(combine_points({weaker, stronger}), direction_only);
  EXPECT_EQ(combine_points({weaker, refuted}), refuted);
}

// In another run an undecided point may get either verdict; the combined verdict must survive both.
TEST(Points, that_are_undecided_leave_open_what_they_could_change) {
  EXPECT_EQ(combine_points({reproduced, inconclusive}), inconclusive);
  EXPECT_EQ(combine_points({weaker, inconclusive}), inconclusive);
  EXPECT_EQ(combine_points({refuted, inconclusive}), inconclusive);
  EXPECT_EQ(combine_points({direction_only, inconclusive}), inconclusive);
  EXPECT_EQ(combine_points({refuted, direction_only}), inconclusive);
}

TEST(Points, without_any_decision_name_the_worst_reason) {
  EXPECT_EQ(combine_points({inconclusive, not_testable_here}), inconclusive);
  EXPECT_EQ(combine_points({inconclusive, invalid}), invalid);
  EXPECT_EQ(combine_points({ill_posed, not_testable_here}), ill_posed);
}

TEST(Parts, take_the_word_of_the_number) {
  EXPECT_EQ(combine_parts({{direction, reproduced}, {number, conditional}}), conditional);
  EXPECT_EQ(combine_parts({{direction, reproduced}, {number, weaker}}), weaker);
  EXPECT_EQ(combine_parts({{direction, reproduced}}), reproduced);
}

TEST(Parts, fall_back_on_the_direction_where_the_number_stays_open) {
  EXPECT_EQ(combine_parts({{direction, reproduced}, {number, inconclusive}}), direction_only);
  EXPECT_EQ(combine_parts({{direction, refuted}, {number, inconclusive}}), refuted);
  EXPECT_EQ(combine_parts({{direction, inconclusive}, {number, inconclusive}}), inconclusive);
  EXPECT_EQ(combine_parts({{direction, not_testable_here}, {number, not_testable_here}}),
            not_testable_here);
}

TEST(Parts, lose_their_full_word_when_the_stated_cause_is_refuted) {
  EXPECT_EQ(combine_parts({{number, reproduced}, {cause, refuted}}), conditional);
  EXPECT_EQ(combine_parts({{number, reproduced}, {cause, reproduced}}), reproduced);
  EXPECT_EQ(combine_parts({{number, weaker}, {cause, refuted}}), weaker);
  EXPECT_EQ(combine_parts({{number, inconclusive}, {cause, refuted}}), inconclusive);
}

TEST(Parts, are_ill_posed_together_when_an_interface_is_not_there) {
  EXPECT_EQ(combine_parts({{number, reproduced}, {PartKind::interface, ill_posed}}), ill_posed);
  EXPECT_EQ(combine_parts({{number, refuted}, {PartKind::interface, reproduced}}), refuted);
  EXPECT_EQ(combine_parts({{number, reproduced}, {PartKind::interface, not_testable_here}}),
            reproduced);
}

TEST(Parts, never_count_a_control) {
  EXPECT_EQ(combine_parts({{number, reproduced}, {control, refuted}}), reproduced);
}

}  // namespace
}  // namespace headroom::combine_test
