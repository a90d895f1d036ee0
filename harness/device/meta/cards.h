// The cards `meta(card=…)` can stand for, from cards.toml (compiled in).
#pragma once

#include <string>
#include <vector>

#include "harness/base/units.h"

namespace headroom {

struct Card {
  std::string id;          // "v100-16gb"
  std::string name;        // as the maker calls it
  Bytes capacity = 0;      // what CUDA reports as the total
  Bytes driver_total = 0;  // what the driver reports
  Bytes granule = 0;
  std::string source;
};

const std::vector<Card>& cards();
// Throws InputError with the nearest ids.
const Card& find_card(const std::string& id);

}  // namespace headroom
