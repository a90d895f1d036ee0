// What is held for the backward pass at the same time. For the files of this folder and tests.
#pragma once

#include "harness/program/program.h"

namespace headroom::checkpointing {

// Row-major bytes.
Bytes plain_bytes(const Value& value);

// At their highest: what the forward pass makes, until the backward pass (what it makes again
// included) has read it for the last time; and what the backward pass makes again, where it is not
// only for making something else again. Neither gradients nor anything persistent is in it, nor
// what waits on the host, until it is back.
Bytes held_bytes(const Program& differentiated);

}  // namespace headroom::checkpointing
