// Writes the initial state of training, its batches and its losses to files, so that another
// framework can repeat the same steps. The side-by-side benchmarks start from these files.
#pragma once

#include <cstdint>
#include <filesystem>

#include "harness/plan/cell.h"

namespace headroom {

// Runs `steps` steps of `cell` on a device that computes. Writes into `directory` (created): one
// raw little-endian row-major file per persistent value and per batch input, and manifest.json
// {workload, seed, optimizer{name, parameters…}, values[{name, shape, dtype, role, file}],
// states_after_first_step[like values], steps[{inputs[{name, shape, dtype, file}], loss}]}. The
// states after the first step reveal the first gradients of an optimizer that keeps momentum.
// Throws InputError when the directory cannot be written or the device computes nothing.
void export_state(const Cell& cell, std::uint64_t seed, int steps,
                  const std::filesystem::path& directory);

}  // namespace headroom
