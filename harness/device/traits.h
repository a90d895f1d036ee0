// Properties of a kind of device, known without creating one.
#pragma once

#include "harness/base/spec.h"

namespace headroom {

struct DeviceTraits {
  bool computes = true;     // values have contents
  bool timed = true;        // the time of a step is training time, not bookkeeping
  bool exact = false;       // any two processes agree on every figure bit for bit
  bool simulated = false;   // models hardware that need not be present
  bool has_driver = false;  // a driver reports how much of the GPU's memory is used
  // Share by which figures of two processes may differ and still count as the same: where the
  // threads of a framework decide the order of operations, bytes in use differ a little.
  double exact_within = 0;
  // A virtual card, on which a framework runs its own code, so that bytes are the framework's own.
  bool virtual_card = false;
};

// Traits of the kind that `device` names. A result file may name a kind that this build lacks; it
// is assumed to compute, to be timed and to have no driver.
DeviceTraits traits_of(const Spec& device);

}  // namespace headroom
