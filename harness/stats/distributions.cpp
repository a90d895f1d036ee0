#include "harness/stats/distributions.h"

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace headroom {

double student_t_quantile(double probability, double degrees_of_freedom) {
  return boost::math::quantile(boost::math::students_t(degrees_of_freedom), probability);
}

double student_t_two_sided(double t, double degrees_of_freedom) {
  return 2 *
         boost::math::cdf(boost::math::complement(boost::math::students_t(degrees_of_freedom), t));
}

double binomial_upper_tail(int trials, double probability, int successes) {
  if (successes <= 0) return 1;
  if (successes > trials) return 0;
  const boost::math::binomial distribution(trials, probability);
  return boost::math::cdf(boost::math::complement(distribution, successes - 1));
}

}  // namespace headroom
