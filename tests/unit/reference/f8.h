// The two 8-bit element types, from the table of Micikevicius et al. 2022: all 256 values of each,
// and rounding by searching them.
#pragma once

#include "harness/program/value.h"

namespace headroom::testing {

// The value of a code.
double f8_number(DType type, unsigned code);
// The code of the nearest value. Ties go to the even code, and values beyond the largest to the
// largest. NaN has the codes 0x7F and 0xFF.
unsigned nearest_f8(DType type, double x);

}  // namespace headroom::testing
