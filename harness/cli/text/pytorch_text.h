// What PyTorch needs for a planned network, beside what Headroom's own network needs.
#pragma once

#include "harness/cli/pytorch_needs.h"
#include "harness/results/json/cell_json.h"
#include "harness/whatif/advice.h"

namespace headroom {

void print_pytorch(const Fit& fit, const PytorchNeeds& pytorch);
Json to_json(const PytorchNeeds& pytorch);

}  // namespace headroom
