// One point of the matrix: the workload, the device and the strategies.
#pragma once

#include <cstdint>
#include <string>

#include "harness/base/spec.h"

namespace headroom {

struct Cell {
  Spec workload;      // resnet(depth=18,batch=32,…): scale and batch are parameters
  Spec device;        // host(capacity=4GiB) | meta(card=v100-16gb) | cuda
  std::string rules;  // lowering rules: dense | onednn; "" = the device's default
  Spec allocator;     // bfc(growth=on)
  Spec execution =
      Spec("last_use");            // in the Program's order; values are freed after their last use
  Spec pipeline = Spec("direct");  // read when needed, on the training thread
  Spec accumulation = Spec("none");
  Spec checkpointing = Spec("none");
  Spec precision = Spec("fp32");
  Spec pruning = Spec("none");
  Spec optimizer = Spec("sgd");
  Spec inject = Spec("none");     // an injected effect, for controls; see harness/control
  Spec scenario = Spec("train");  // what the process does, see harness/plan/scenario.h
  int warmup_steps = 2;
  int measured_steps = 5;

  // Stable text of all axes. Resuming, comparing and history identify cells by it.
  std::string id() const;
};

}  // namespace headroom
