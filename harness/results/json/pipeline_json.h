// The input pipeline's part of a sample as JSON; included by sample_json.cpp only.
#pragma once

#include "harness/results/json/cell_json.h"
#include "harness/results/sample.h"

namespace headroom {

Json pipeline_to_json(const PipelineRecord& pipeline);  // null if nothing is known
PipelineRecord pipeline_from_json(const Json& json);

}  // namespace headroom
