// Op kinds on random shapes, compared with the reference.
#pragma once

#include <gtest/gtest.h>

#include "tests/unit/support/host_execution.h"

namespace headroom::testing {

// `build` makes a Program from shapes drawn from Shapes; a dozen such Programs are checked.
template <typename Shapes, typename Build>
void judge_on_random_shapes(Build build) {
  Shapes shapes;
  for (int i = 0; i < 12; ++i) {
    Program program{.name = "one op"};
    ProgramBuilder builder(program);
    build(shapes, builder);
    SCOPED_TRACE(program.ops.back().kind + " of " + to_string(program.values[0].shape));
    judge_on_host(program);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace headroom::testing
