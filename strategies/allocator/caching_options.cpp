#include "strategies/allocator/caching_options.h"

#include <algorithm>
#include <bit>

#include "harness/base/error.h"

namespace headroom {

CachingOptions read_caching_options(const Spec& spec, Bytes total) {
  const auto refuse = [&](const char* what) { throw InputError(spec.to_string() + ": " + what); };
  CachingOptions options;
  options.max_split_size = spec.bytes("max_split_size", options.max_split_size);
  if (options.max_split_size <= kLargeSegment)
    refuse("max_split_size must be above 20MiB, the segment that smaller blocks are cut from");
  options.max_non_split_rounding =
      spec.bytes("max_non_split_rounding", options.max_non_split_rounding);
  if (options.max_non_split_rounding < kLargeSegment)
    refuse("max_non_split_rounding must be at least 20MiB");
  const std::int64_t divisions = spec.integer("roundup_power2_divisions", 0);
  if (divisions < 0 || divisions > 64 ||
      (divisions > 0 && !std::has_single_bit(static_cast<Bytes>(divisions))))
    refuse("roundup_power2_divisions must be a power of two up to 64, or 0 for none");
  options.roundup_power2_divisions = static_cast<Bytes>(divisions);
  options.garbage_collection_threshold = spec.number("garbage_collection_threshold", 0);
  if (spec.has("garbage_collection_threshold")) {
    if (!(options.garbage_collection_threshold > 0 && options.garbage_collection_threshold < 1))
      refuse("garbage_collection_threshold must lie between 0 and 1");
    if (!spec.has("fraction"))
      refuse(
          "garbage_collection_threshold is a share of fraction, and PyTorch collects nothing "
          "where none is set; add fraction=1.0 for the whole device");
  }
  const double fraction = spec.number("fraction", 1);
  if (!(fraction > 0 && fraction <= 1)) refuse("fraction must be above 0 and at most 1");
  options.allowed = static_cast<Bytes>(static_cast<double>(total) * fraction);
  return options;
}

Bytes caching_segment_size(Bytes size) {
  if (size <= kSmallRequest) return kSmallSegment;
  if (size < kOwnSegmentRequest) return kLargeSegment;
  return align_up(size, kSmallSegment);
}

}  // namespace headroom
