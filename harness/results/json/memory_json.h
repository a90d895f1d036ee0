// The rungs of a sample's memory as JSON. For sample_json.cpp.
#pragma once

#include "harness/results/json/cell_json.h"
#include "harness/results/sample.h"

namespace headroom {

// Of its ledger, process, driver and lower bound; null where there is no ledger.
Json memory_to_json(const Sample& sample);
// Fills in what the above wrote.
void read_memory(const Json& json, Sample& sample);

}  // namespace headroom
