// The common part of all checkpointing strategies: they choose regions of the forward pass, and
// this builds the Program that drops the values of a region and recomputes them for the backward
// pass. For the files of this folder.
#pragma once

#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/spec.h"
#include "harness/base/units.h"
#include "harness/program/program.h"

namespace headroom::checkpointing {

// Nested sets of forward ops. A value is kept by the smallest region around all its readers in the
// forward pass, from that region's execution until its last use: the outputs of a region are kept
// by the region around it. The first region is the whole forward pass, which runs once.
struct Regions {
  explicit Regions(std::size_t forward_ops) : of_op(forward_ops, 0) {}
  int add(int around);

  std::vector<int> around = {0};
  std::vector<int> of_op;  // the smallest region around each forward op
};

std::size_t forward_ops(const Program& differentiated);

// Each region but the first is executed again right before the first backward op that reads a value
// that it dropped. Ops that change a value in place, or read a value that is changed in place, are
// never repeated, and their outputs are kept.
Program recompute(Program differentiated, const Regions& regions);

// A run of consecutive forward ops of one module; checkpoints lie between units.
struct Unit {
  std::size_t first, end;  // ops
};
// Returns the units that make values which the backward pass reads, in order. The module of an op
// is its name up to the first number, as in "layer1.0" and "decoder.3", or the first part of a name
// without a number.
std::vector<Unit> units_of(const Program& differentiated);

// The row-major bytes of values that the forward pass makes and the backward pass reads.
Bytes saved_bytes(const Program& differentiated);

// Returns nothing when an op is recomputed and fewer bytes are saved than before.
Reason why_not_engaged(const Spec& spec, const Program& before, const Program& after);

}  // namespace headroom::checkpointing
