// The addresses of blocks that a GPU's driver allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

namespace headroom {

// A block lies in the lowest gap that is large enough, else at the beginning of a new region, whose
// size is a multiple of 32 MiB. An H200's driver (580.159) placed PyTorch's segments in
// this way: new regions lay below the earlier ones, and gaps were filled from the lowest one on.
class BlockAddresses {
 public:
  // take_region(bytes) returns where a new region begins, or 0.
  explicit BlockAddresses(std::function<std::uintptr_t(std::size_t)> take_region);

  // Returns the address of a block, or 0 if there is no room for a region.
  std::uintptr_t take(std::size_t bytes);
  void give_back(std::uintptr_t begin, std::size_t bytes);

 private:
  std::function<std::uintptr_t(std::size_t)> take_region_;
  std::map<std::uintptr_t, std::size_t> gaps_;
};

}  // namespace headroom
