// The memory part of a sample as JSON; included by sample_json.cpp only.
#pragma once

#include "harness/results/json/cell_json.h"
#include "harness/results/sample.h"

namespace headroom {

// Writes the sample's ledger, process and driver figures and its lower bound; null without a
// ledger.
Json memory_to_json(const Sample& sample);
// Reads back what memory_to_json() wrote.
void read_memory(const Json& json, Sample& sample);

}  // namespace headroom
