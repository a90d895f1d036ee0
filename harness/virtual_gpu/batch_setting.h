// Sets the batch of a user's program, and reads it, through an option, an argument or a variable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom::virtual_gpu {

struct BatchSetting {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // "NAME=value"
};

// Sets the batch of `command`. `name` is an option (it starts with '-'), the name of an argument
// NAME=value that `command` has, or else an environment variable.
BatchSetting with_batch(std::vector<std::string> command, const std::string& name,
                        std::int64_t batch);

// Returns the batch that `command` sets by `name`; absent if it sets none or no positive number.
std::optional<std::int64_t> batch_of(const std::vector<std::string>& command,
                                     const std::string& name);

}  // namespace headroom::virtual_gpu
