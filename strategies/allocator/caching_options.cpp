#include "strategies/allocator/caching_options.h"

#include <algorithm>
#include <bit>

#include "harness/base/error.h"

namespace headroom {

CachingOptions read_caching_options(const Spec& spec, Bytes total) {
  const auto refuse = [&](const char* what) { throw InputError(spec.to_string() + ": " + what); };
  CachingOptions options;
  options.large_segment_size = spec.bytes("large_segment_size", options.large_segment_size);
  if (options.large_segment_size <= kOwnSegmentRequest ||
      options.large_segment_size % kSmallSegment != 0)
    refuse("large_segment_size must be a multiple of 2MiB above 10MiB");
  options.max_split_size = spec.bytes("max_split_size", options.max_split_size);
  if (options.max_split_size < options.large_segment_size)
    refuse("max_split_size must be at least large_segment_size, which is 20MiB unless set");
  options.max_non_split_rounding = spec.bytes("max_non_split_rounding", options.large_segment_size);
  if (options.max_non_split_rounding < options.large_segment_size)
    refuse("max_non_split_rounding must be at least large_segment_size, which is 20MiB unless set");
  const std::int64_t divisions = spec.integer("roundup_power2_divisions", 0);
  if (divisions < 0 || divisions > 64 ||
      (divisions > 0 && !std::has_single_bit(static_cast<Bytes>(divisions))))
    refuse("roundup_power2_divisions must be a power of two up to 64, or 0 for none");
  options.roundup_power2_divisions = static_cast<Bytes>(divisions);
  options.garbage_collection_threshold = spec.number("garbage_collection_threshold", 0);
  if (spec.has("garbage_collection_threshold")) {
    if (!(options.garbage_collection_threshold > 0 && options.garbage_collection_threshold < 1))
      refuse("garbage_collection_threshold must lie between 0 and 1");
    if (spec.number("fraction", 1) == 1)
      refuse(
          "garbage_collection_threshold is a share of fraction, and PyTorch collects nothing "
          "where that is not set or 1; add fraction=0.99 for nearly the whole device");
  }
  const double fraction = spec.number("fraction", 1);
  if (!(fraction > 0 && fraction <= 1)) refuse("fraction must be above 0 and at most 1");
  if (fraction < 1) options.allowed = static_cast<Bytes>(static_cast<double>(total) * fraction);
  return options;
}

Bytes caching_segment_size(Bytes size, Bytes large_segment_size) {
  if (size <= kSmallRequest) return kSmallSegment;
  if (size < kOwnSegmentRequest) return large_segment_size;
  return align_up(size, kSmallSegment);
}

}  // namespace headroom
