// Reads the variables and the results of generated kernels from their PTX, the assembly language of
// CUDA.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::virtual_gpu {

struct Variable {
  std::string name;
  std::size_t bytes = 0;  // 0 where the declaration does not say
};

std::vector<Variable> variables_of_ptx(std::string_view code);

// Returns for each kernel the positions of the parameters through which it may write. An address
// is followed from the parameter to the instruction that writes there.
std::map<std::string, std::vector<unsigned>> results_of_ptx(const std::string& code);

}  // namespace headroom::virtual_gpu
