// What is true of every device of a kind, known without making one.
#pragma once

#include "harness/base/spec.h"

namespace headroom {

struct DeviceTraits {
  bool computes = true;     // values have contents
  bool timed = true;        // a step's time is that of training, not of bookkeeping
  bool exact = false;       // two processes agree on every figure bit for bit
  bool simulated = false;   // stands for hardware that need not be here
  bool has_driver = false;  // which says how much of the GPU's memory is used
};

// Of the kind that `device` names. A result file may name one that this build does not have; it is
// taken for one that computes, is timed and has no driver.
DeviceTraits traits_of(const Spec& device);

}  // namespace headroom
