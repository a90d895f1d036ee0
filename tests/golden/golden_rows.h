// Reads files of numbers that another program computed: comma-separated cells, the first of which
// names the kind of row.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace headroom {

// The rows of `file` in this folder whose first cell is `kind`.
inline std::vector<std::vector<std::string>> golden_rows(const std::string& file,
                                                         const std::string& kind) {
  std::ifstream stream(std::string(GOLDEN_DIRECTORY) + "/" + file);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(stream, line);) {
    std::istringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
    if (row.at(0) == kind) rows.push_back(row);
  }
  return rows;
}

}  // namespace headroom
