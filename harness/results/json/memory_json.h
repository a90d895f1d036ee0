// The memory part of a sample as JSON; included by sample_json.cpp only.
#pragma once

#include "harness/results/json/cell_json.h"
#include "harness/results/sample.h"

namespace headroom {

// The figures of its ledger, process and driver, and its lower bound; null without a ledger.
Json memory_to_json(const Sample& sample);
// Fills in what the above wrote.
void read_memory(const Json& json, Sample& sample);

}  // namespace headroom
