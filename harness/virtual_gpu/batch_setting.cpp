#include "harness/virtual_gpu/batch_setting.h"

#include <charconv>

namespace headroom::virtual_gpu {
namespace {

// Finds the word that holds the batch and sets `at` to the position of the batch in it. Returns
// nullptr if there is none.
template <typename Words>
auto find_batch(Words& command, const std::string& name, std::size_t& at) -> decltype(&command[0]) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i].starts_with(name + "=")) {
      at = name.size() + 1;
      return &command[i];
    }
    if (name.starts_with('-') && command[i] == name && i + 1 < command.size()) {
      at = 0;
      return &command[i + 1];
    }
  }
  return nullptr;
}

}  // namespace

BatchSetting with_batch(std::vector<std::string> command, const std::string& name,
                        std::int64_t batch) {
  const std::string value = std::to_string(batch);
  std::size_t at = 0;
  if (std::string* word = find_batch(command, name, at)) {
    word->replace(at, std::string::npos, value);
    return {std::move(command), {}};
  }
  if (!name.starts_with('-')) return {std::move(command), {name + "=" + value}};
  command.push_back(name);
  command.push_back(value);
  return {std::move(command), {}};
}

std::optional<std::int64_t> batch_of(const std::vector<std::string>& command,
                                     const std::string& name) {
  std::size_t at = 0;
  const std::string* word = find_batch(command, name, at);
  if (word == nullptr) return std::nullopt;
  std::int64_t batch = 0;
  const char* const end = word->data() + word->size();
  const auto [stopped, error] = std::from_chars(word->data() + at, end, batch);
  if (error != std::errc() || stopped != end || batch <= 0) return std::nullopt;
  return batch;
}

}  // namespace headroom::virtual_gpu
