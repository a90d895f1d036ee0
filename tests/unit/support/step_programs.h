// Networks of workloads, and steps with one strategy applied, for tests of strategies.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "harness/program/lowering/lowering.h"
#include "harness/program/pass.h"
#include "harness/workload/workload.h"

namespace headroom::testing {

inline Program forward_of(const std::string& workload) {
  return make_workload(Spec::parse(workload))->training_forward();
}

// Number of elements of all weights that a step trains.
inline std::int64_t parameters_of(const std::string& workload) {
  std::int64_t count = 0;
  for (const Value& value : forward_of(workload).values)
    if (value.role == Role::weight) count += element_count(value.shape);
  return count;
}

inline Program with_optimizer(Program forward, const std::string& optimizer) {
  return apply_pass<OptimizerStrategy>(differentiate(std::move(forward)), Spec::parse(optimizer));
}

// Forward and backward pass without an update.
inline Program in_precision(Program forward, const std::string& precision) {
  const Spec spec = Spec::parse(precision);
  Program program = differentiate(apply_pass<PrecisionStrategy>(std::move(forward), spec));
  return apply_to_gradients<PrecisionStrategy>(std::move(program), spec);
}

inline Program lowered(Program program, const std::string& rules) {
  PersistentLayouts layouts;
  return lower(std::move(program), rules, layouts);
}

}  // namespace headroom::testing
