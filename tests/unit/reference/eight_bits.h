// The 8-bit numbers of Dettmers et al. 2022, built bit by bit, in double.
#pragma once

#include "tests/unit/reference/reference.h"

namespace headroom::testing {

// The numbers by code, ascending: 8 bits unsigned, or a sign and 7 bits. Two of the 256 patterns
// stand for 0 and 1.
Tensor eight_bit_numbers(bool is_signed);

}  // namespace headroom::testing
