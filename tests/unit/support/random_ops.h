// Kinds of ops on random shapes, against the reference.
#pragma once

#include <gtest/gtest.h>

#include "tests/unit/support/host_run.h"

namespace headroom::testing {

// `build` makes a Program of the shapes it draws from Shapes; a dozen of them are judged.
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
