// Corrections for multiple comparisons: adjusted p-values, and the level of each interval. Sources:
// Holm 1979, Scand. J. Statist. 6:65; Benjamini and Hochberg 1995, J. R. Stat. Soc. B 57:289.
#pragma once

#include <vector>

namespace headroom {

// Adjusted p-values, in the order of `p`. Reject a hypothesis when its value is ≤ α.
std::vector<double> holm_adjusted(const std::vector<double>& p);
std::vector<double> benjamini_hochberg_adjusted(const std::vector<double>& p);

// The error rate Holm's procedure allots to each hypothesis: α/m for the smallest p, α/(m−1) for
// the next, and so on. From the first hypothesis that is not rejected, all share the same level.
std::vector<double> holm_levels(const std::vector<double>& p, double alpha);

}  // namespace headroom
