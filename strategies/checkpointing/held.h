// Computes the bytes held at the same time for the backward pass. For the files of this folder and
// tests.
#pragma once

#include "harness/program/program.h"

namespace headroom::checkpointing {

// The row-major size of a value in bytes.
Bytes plain_bytes(const Value& value);

// The peak of the bytes of two kinds of values: those made by the forward pass, until the backward
// pass (recomputation included) has read them for the last time; and those recomputed in the
// backward pass, unless they only serve further recomputation. Gradients and persistent values are
// not counted, nor values on the host until they are copied back.
Bytes held_bytes(const Program& differentiated);

}  // namespace headroom::checkpointing
