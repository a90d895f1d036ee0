#include "strategies/allocator/bfc_options.h"

#include <algorithm>

#include "harness/base/error.h"
#include "harness/memory/allocator.h"

namespace headroom {

BfcOptions read_bfc_options(const Spec& spec, Bytes capacity, Bytes total) {
  if (spec.has("fraction") && spec.has("reserve"))
    throw InputError(spec.to_string() +
                     ": give fraction or reserve, not both; TensorFlow keeps a reserve only when "
                     "no fraction is set");
  const double fraction = spec.number("fraction", 1.0);
  if (!(fraction > 0.0 && fraction <= 1.0))
    throw InputError(spec.to_string() +
                     ": fraction must be above 0 and at most 1; beyond 1 TensorFlow turns to "
                     "unified memory, which is not modelled");
  const double slack = spec.number("fragmentation_fraction", 0.0);
  if (!(slack >= 0.0 && slack < 1.0))
    throw InputError(spec.to_string() + ": fragmentation_fraction must be at least 0 and below 1");
  const Bytes reserve = spec.bytes("reserve", 0);
  const Bytes share =
      spec.has("reserve")
          ? capacity - std::min(capacity, reserve)
          : std::min(capacity, static_cast<Bytes>(static_cast<double>(total) * fraction));
  BfcOptions options;
  options.growth = spec.flag("growth", false);
  options.garbage_collection = spec.flag("garbage_collection", true);
  const std::string regions = spec.text("regions", "ascending");
  if (regions != "ascending" && regions != "descending")
    throw InputError(spec.to_string() + ": regions must be ascending or descending");
  options.regions_descend = regions == "descending";
  options.limit = align_down(std::min(share, spec.bytes("limit", share)), kBlockAlignment);
  if (options.limit == 0)
    throw NotSupported(spec.to_string() + ": leaves less than " + format_bytes(kBlockAlignment) +
                       " of the device's " + format_bytes(capacity));
  if (slack > 0.0)
    options.max_slack = static_cast<Bytes>(static_cast<double>(options.limit) * slack);
  return options;
}

}  // namespace headroom
