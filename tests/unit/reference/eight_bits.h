// Numbers in eight bits as Dettmers et al. 2022 draw them, made bit by bit, in double.
#pragma once

#include "tests/unit/reference/reference.h"

namespace headroom::testing {

// By code, ascending. Eight bits, or a sign and seven; two of the 256 patterns stand for 0 and 1.
Tensor eight_bit_numbers(bool is_signed);

}  // namespace headroom::testing
