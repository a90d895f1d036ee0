// The two element types of 8 bits, from the table of Micikevicius et al. 2022: all 256 numbers of
// each, and rounding by looking through them.
#pragma once

#include "harness/program/value.h"

namespace headroom::testing {

// What a code stands for.
double f8_number(DType type, unsigned code);
// The code of the nearest number; of two equally near ones the even code, of what lies beyond the
// largest the largest. Codes of NaN are 0x7F and 0xFF.
unsigned nearest_f8(DType type, double x);

}  // namespace headroom::testing
