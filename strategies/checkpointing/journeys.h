// Values that wait for the backward pass in memory of the host. For the files of this folder.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/base/spec.h"
#include "harness/program/program.h"

namespace headroom::checkpointing {

// Where a value that is kept for the backward pass leaves, and where it comes back.
struct Journey {
  ValueId value;
  std::size_t after;   // op
  std::size_t before;  // op
};

// Of every value that is made in the forward pass, read after it and never changed, in the order
// they are made in: away from its last use in the forward pass to `prefetch` ops ahead of the first
// op behind it that reads it.
std::vector<Journey> journeys(const Program& differentiated, std::size_t prefetch);

// Is it still away when the backward pass begins? Else it is not worth leaving.
bool is_worth_it(const Program& differentiated, const Journey& journey);

Program take(Program differentiated, const std::vector<Journey>& journeys);

// The parameter prefetch=. Throws InputError.
std::size_t prefetch_of(const Spec& spec);

// The parameters keep= and prefetch= of strategies that compute again: with keep=host, what is
// kept to compute the rest again from waits on the host. Throws InputError.
Program keep_where_asked(Program recomputing, const Spec& spec);
std::string why_not_kept_there(const Spec& spec, const Program& after);

}  // namespace headroom::checkpointing
