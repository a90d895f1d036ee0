// Plug-ins register themselves by name at start-up. Errors about unknown names suggest the nearest
// known ones.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom {

// Throws InputError, for example "unknown allocator 'bcf'; did you mean 'bfc'? Known: bfc, malloc".
[[noreturn]] void throw_unknown_name(std::string_view kind, std::string_view name,
                                     const std::vector<std::string>& known);
// The known names, sorted by edit distance to `name`, nearest first.
std::vector<std::string> nearest_names(std::string_view name, std::vector<std::string> known);

// Plugin must have the members `std::string name` and `std::string summary`.
template <typename Plugin>
class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }

  bool add(Plugin plugin) {
    auto name = plugin.name;
    return plugins_.emplace(std::move(name), std::move(plugin)).second;
  }

  // Throws InputError that suggests the nearest names.
  const Plugin& find(std::string_view name) const {
    const auto found = plugins_.find(std::string(name));
    if (found == plugins_.end()) throw_unknown_name(Plugin::kKind, name, names());
    return found->second;
  }
  bool contains(std::string_view name) const { return plugins_.contains(std::string(name)); }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, plugin] : plugins_) result.push_back(name);
    return result;
  }
  const std::map<std::string, Plugin>& all() const { return plugins_; }

 private:
  std::map<std::string, Plugin> plugins_;
};

}  // namespace headroom
