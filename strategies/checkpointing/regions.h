// What all checkpointing strategies share: they choose regions of the forward pass, and this makes
// the Program that drops what a region's ops make and makes it again for the backward pass.
// For the files of this folder.
#pragma once

#include <string>
#include <vector>

#include "harness/base/spec.h"
#include "harness/base/units.h"
#include "harness/program/program.h"

namespace headroom::checkpointing {

// Sets of forward ops, nested. What an op makes is kept from the execution of the smallest region
// around all who read it in the forward pass on, until its last use: what leaves a region is kept
// by the region around it. The first region is the whole forward pass, which runs once.
struct Regions {
  explicit Regions(std::size_t forward_ops) : of_op(forward_ops, 0) {}
  int add(int around);

  std::vector<int> around = {0};
  std::vector<int> of_op;  // the smallest region each forward op is in
};

std::size_t forward_ops(const Program& differentiated);

// Each region but the first is executed again right before the first backward op that reads what
// it had dropped. Never repeated, and what they make is kept: ops that change a value in place,
// and those that read a value which is changed in place.
Program recompute(Program differentiated, const Regions& regions);

// A run of consecutive forward ops of one module: what a checkpoint stands between.
struct Unit {
  std::size_t first, end;  // ops
};
// Those that make something which the backward pass reads, in order. The module of an op is its
// name up to the first number, as in "layer1.0" and "decoder.3"; without one, the name's first
// part.
std::vector<Unit> units_of(const Program& differentiated);

// Of what the forward pass makes and the backward pass still reads, in row-major bytes.
Bytes saved_bytes(const Program& differentiated);

// "" where an op is recomputed and less is saved than before.
std::string why_not_engaged(const Spec& spec, const Program& before, const Program& after);

}  // namespace headroom::checkpointing
