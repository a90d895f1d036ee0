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
  std::size_t behind;  // the first op behind the stretch that it is made in
};

// Of every value that is made in the forward pass or made again for the backward pass, read behind
// that stretch of ops and never changed, in the order they are made in: away from its last use in
// the stretch to `prefetch` ops ahead of the first op behind it that reads it. The forward pass is
// a stretch, and so are ops in a row that make something again.
std::vector<Journey> journeys(const Program& differentiated, std::size_t prefetch);

// Is it still away when something else begins: the backward pass, or a part of it? Else it is not
// worth leaving.
bool is_worth_it(const Journey& journey);

Program take(Program differentiated, const std::vector<Journey>& journeys);

// The parameter prefetch=. Throws InputError.
std::size_t prefetch_of(const Spec& spec);

// Does the parameter keep= say so? Throws InputError, also where prefetch= has no sense.
bool keeps_on_host(const Spec& spec);

// The parameters keep= and prefetch= of strategies that compute again: with keep=host, what is
// kept to compute the rest again from waits on the host. Throws InputError.
Program keep_where_asked(Program recomputing, const Spec& spec);
std::string why_not_kept_there(const Spec& spec, const Program& after);

}  // namespace headroom::checkpointing
