// Many verdicts at once: what a p-value is worth among others, and the level each interval gets.
// Sources: Holm 1979, Scand. J. Statist. 6:65; Benjamini and Hochberg 1995, J. R. Stat. Soc. B
// 57:289.
#pragma once

#include <vector>

namespace headroom {

// Adjusted p-values, in the order given; reject where they are ≤ α.
std::vector<double> holm_adjusted(const std::vector<double>& p);
std::vector<double> benjamini_hochberg_adjusted(const std::vector<double>& p);

// The error rate Holm leaves to each of the hypotheses: α/m for the smallest p, α/(m−1) for the
// next, …; from the first that is not rejected on, all share its level.
std::vector<double> holm_levels(const std::vector<double>& p, double alpha);

}  // namespace headroom
