// The 8-bit element types and the op that quantises to them, tested over all of their values.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "harness/base/error.h"
#include "harness/device/host/kernels/eight_bits.h"
#include "harness/program/lowering/lowering.h"
#include "tests/unit/reference/f8.h"
#include "tests/unit/support/host_execution.h"

namespace headroom::quantise_test {
namespace {

using testing::Tensor;

template <typename F8>
constexpr DType kType = std::is_same_v<F8, host::F8E4M3> ? DType::f8e4m3 : DType::f8e5m2;

template <typename F8>
class EightBits : public ::testing::Test {};
using Formats = ::testing::Types<host::F8E4M3, host::F8E5M2>;
TYPED_TEST_SUITE(EightBits, Formats);

TYPED_TEST(EightBits, stand_for_the_numbers_of_their_format) {
  for (unsigned code = 0; code < 256; ++code) {
    const double wanted = testing::f8_number(kType<TypeParam>, code);
    const float found = host::load(TypeParam{static_cast<std::uint8_t>(code)});
    EXPECT_EQ(std::isnan(found), std::isnan(wanted)) << code;
    EXPECT_EQ(std::signbit(found), std::signbit(wanted)) << code;
    if (!std::isnan(wanted)) {
      EXPECT_EQ(found, wanted) << code;
    }
  }
}

template <typename F8>
unsigned code_of(float x) {
  F8 element{};
  host::store(element, x);
  return element.bits;
}

TYPED_TEST(EightBits, are_the_nearest_to_any_float_even_at_ties_and_saturated) {
  const auto expect_nearest = [](float x) {
    ASSERT_EQ(code_of<TypeParam>(x), testing::nearest_f8(kType<TypeParam>, x))
        << x << ", bits " << std::bit_cast<std::uint32_t>(x);
  };
  // Each value, its midpoint to the next, and the floats on either side of both.
  for (unsigned code = 0; code < 255; ++code) {
    const double number = testing::f8_number(kType<TypeParam>, code);
    const double next = testing::f8_number(kType<TypeParam>, code + 1);
    for (const double at : {number, (number + next) / 2}) {
      if (std::isnan(at)) continue;
      const auto x = static_cast<float>(at);
      for (const float toward : {x, -HUGE_VALF, HUGE_VALF})
        expect_nearest(std::nextafter(x, toward));
    }
  }
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const float x : {kNan, -kNan, HUGE_VALF, -HUGE_VALF, std::numeric_limits<float>::max(),
                        std::numeric_limits<float>::denorm_min(), 0.0F, -0.0F})
    expect_nearest(x);
  // Random bits, and floats within the range of the format.
  std::mt19937_64 random(testing::test_seed());
  for (int i = 0; i < 20'000; ++i) {
    expect_nearest(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    const auto exponent = static_cast<int>(random() % 40) - 20;
    expect_nearest(std::ldexp(std::normal_distribution<float>()(random), exponent));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// One tensor in 8 bits as the op produces it.
struct Quantised {
  Tensor codes, scale;
};

Quantised quantised(const Tensor& tensor, DType from, DType to) {
  Program program{.name = "test"};
  ProgramBuilder build(program);
  const ValueId x = build.input("x", {static_cast<std::int64_t>(tensor.size())}, from);
  const auto made = build.emit("quantise", "x8", {x}, {{"to", static_cast<std::int64_t>(to)}});
  PersistentLayouts layouts;
  testing::HostExecution host(lower(program, "onednn", layouts));
  host.write(x, tensor);
  host.run();
  return {host.read(made[0]), host.read(made[1])};
}

constexpr std::array kCodeTypes = {DType::f8e4m3, DType::f8e5m2};

TEST(Quantise, takes_the_largest_magnitude_to_the_largest_number_and_the_rest_to_half_a_step) {
  std::mt19937_64 random(testing::test_seed());
  for (const DType type : kCodeTypes)
    for (int round = 0; round < 6; ++round) {
      const double size = std::ldexp(1.0, static_cast<int>(random() % 60) - 40);
      Tensor x(1 + random() % 40'000);
      for (double& element : x)
        element = static_cast<float>(size * std::normal_distribution<double>()(random));
      const auto [codes, scale] = quantised(x, DType::f32, type);
      double largest = 0;
      for (const double element : x) largest = std::max(largest, std::abs(element));
      const double range = type == DType::f8e4m3 ? 448 : 57344;
      const int fraction = type == DType::f8e4m3 ? 3 : 2,
                smallest = type == DType::f8e4m3 ? -6 : -14;
      ASSERT_NEAR(scale[0], largest / range, 1e-6 * largest / range);
      double found = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double exact = x[i] / scale[0];
        const double step = std::ldexp(
            1.0, std::max(exact == 0 ? smallest : std::ilogb(exact), smallest) - fraction);
        ASSERT_LE(std::abs(codes[i] - exact), step * (0.5 + 1e-5)) << exact;
        found = std::max(found, std::abs(codes[i]));
      }
      EXPECT_EQ(found, range);
    }
}

TEST(Quantise, stays_finite_for_zeros_and_for_the_smallest_floats) {
  for (const DType type : kCodeTypes) {
    EXPECT_EQ(quantised({0, -0.0, 0}, DType::f32, type).codes, (Tensor{0, 0, 0}));
    EXPECT_EQ(quantised({0, 0}, DType::f32, type).scale, Tensor{1});
    const auto [codes, scale] = quantised({0x1p-149, -0x1p-130}, DType::f32, type);
    EXPECT_GT(scale[0], 0);
    EXPECT_NEAR(codes[1] * scale[0], -0x1p-130, 0x1p-134);
  }
}

TEST(Quantise, takes_sixteen_bits_as_it_takes_floats) {
  try {
    quantised({1}, DType::bf16, DType::f8e4m3);
  } catch (const NotSupported& error) {
    GTEST_SKIP() << error.what();
  }
  const Tensor x = {0, 1, -1.5, 0.0078125, 96};  // the same in bf16
  for (const DType type : kCodeTypes) {
    const auto [codes, scale] = quantised(x, DType::bf16, type);
    EXPECT_EQ(codes, quantised(x, DType::f32, type).codes);
    EXPECT_EQ(scale, quantised(x, DType::f32, type).scale);
    EXPECT_EQ(quantised({0, 0}, DType::bf16, type).scale, Tensor{1});
  }
}

TEST(Quantise, hides_no_number_that_is_not_finite) {
  for (const DType type : kCodeTypes)
    for (const double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
      Tensor x(1000, 1.0);
      x[testing::test_seed() % x.size()] = bad;
      const auto [codes, scale] = quantised(x, DType::f32, type);
      for (const double code : codes)
        EXPECT_FALSE(std::isfinite(code * scale[0])) << bad << " left a number";
    }
}

}  // namespace
}  // namespace headroom::quantise_test
