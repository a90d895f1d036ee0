// Compares the memory of a program on a virtual GPU with an earlier run and names what grew.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/base/units.h"

namespace headroom {

struct GpuGrowth {
  struct Held {
    Bytes before = 0, now = 0;
    bool grew() const { return now > before; }
  };
  struct Part {
    std::string kind;  // role, module or line
    std::string name;
    Held held;
  };
  Held reserved;            // at the peak, of the GPU that reserved most
  Held allocated;           // at the peak, of all GPUs together
  std::vector<Part> parts;  // those that grew, the most grown first
  bool grew() const { return reserved.grew() || allocated.grew(); }
};

// Reads the gpu.json of an earlier run, or that of its directory. Throws InputError.
nlohmann::json read_earlier_gpu_run(const std::filesystem::path& place);

// Both are what gpu.json holds.
GpuGrowth growth_between(const nlohmann::json& before, const nlohmann::json& now);

std::string to_words(const GpuGrowth& growth, const std::filesystem::path& before);
nlohmann::ordered_json to_json(const GpuGrowth& growth);

}  // namespace headroom
