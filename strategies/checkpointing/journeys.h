// Values that are offloaded to host memory until the backward pass. For the files of this folder.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/spec.h"
#include "harness/program/program.h"

namespace headroom::checkpointing {

// The ops at which a value kept for the backward pass is offloaded and copied back.
struct Journey {
  ValueId value;
  std::size_t after;   // op
  std::size_t before;  // op
  std::size_t behind;  // the first op after the stretch that makes the value
};

// Returns the journeys of all values that are made in a stretch of ops, read after it and never
// changed, in the order in which they are made. A stretch is the forward pass, or
// consecutive ops that recompute. A value is away from its last use in its stretch until `prefetch`
// ops before the first later op that reads it.
std::vector<Journey> journeys(const Program& differentiated, std::size_t prefetch);

// Whether the value is still away when the backward pass, or a part of it, begins. Otherwise
// offloading it is not worthwhile.
bool is_worth_it(const Journey& journey);

Program take(Program differentiated, const std::vector<Journey>& journeys);

// The value of the parameter prefetch=. Throws InputError.
std::size_t prefetch_of(const Spec& spec);

// Whether the parameter is keep=host. Throws InputError, also when prefetch= is given without
// effect.
bool keeps_on_host(const Spec& spec);

// Applies the parameters keep= and prefetch= of recomputation strategies: with keep=host, the
// values from which others are recomputed are kept on the host. Throws InputError.
Program keep_where_asked(Program recomputing, const Spec& spec);
Reason why_not_kept_there(const Spec& spec, const Program& after);

}  // namespace headroom::checkpointing
