// The standard distributions that the verdicts need, computed by Boost.
#pragma once

namespace headroom {

// The quantile of Student's distribution: t with P(T ≤ t) = probability, for probability in (0, 1).
double student_t_quantile(double probability, double degrees_of_freedom);

// P(|T| ≥ t), for t ≥ 0.
double student_t_two_sided(double t, double degrees_of_freedom);

// P(X ≥ successes) for X ~ Bin(trials, probability).
double binomial_upper_tail(int trials, double probability, int successes);

}  // namespace headroom
