// The device check, run on correct devices and on a faulty one.
#include "harness/runner/device_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/registry.h"
#include "harness/device/device.h"

namespace headroom::device_check_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Outcome = DeviceFinding::Outcome;

// A host device that flips one bit of what is read back.
class Forgetful final : public Device {
 public:
  explicit Forgetful(std::unique_ptr<Device> host) : host_(std::move(host)) {}
  DeviceMemory& memory() override { return host_->memory(); }
  std::unique_ptr<CompiledProgram> compile(const Program& lowered) override {
    return host_->compile(lowered);
  }
  bool computes() const override { return true; }
  void write(const Value& value, std::byte* device, std::span<const std::byte> host) override {
    host_->write(value, device, host);
  }
  void read(const Value& value, const std::byte* device, std::span<std::byte> host) override {
    host_->read(value, device, host);
    if (host.size() > 77) host[77] ^= std::byte{1};
  }
  void synchronize() override {}

 private:
  std::unique_ptr<Device> host_;
};

const bool registered = Registry<DeviceKind>::instance().add(
    {.name = "forgetful_host",
     .summary = "of this test",
     .default_rules = "onednn",
     .unavailable = [] { return std::string(); },
     .create = [](const Spec&) -> std::unique_ptr<Device> {
       return std::make_unique<Forgetful>(Registry<DeviceKind>::instance().find("host").create(
           Spec::parse("host(capacity=64MiB)")));
     }});

TEST(DeviceCheck, passes_the_host_in_everything_it_asks) {
  const auto findings = check_device(Spec::parse("host(capacity=512MiB)"));
  EXPECT_GE(findings.size(), 6u);
  for (const DeviceFinding& finding : findings)
    EXPECT_EQ(finding.outcome, Outcome::passed) << finding.what << ": " << finding.why;
}

TEST(DeviceCheck, stops_at_a_byte_that_came_back_changed_and_names_the_line) {
  ASSERT_TRUE(registered);
  const auto findings = check_device(Spec("forgetful_host"));
  ASSERT_EQ(findings.back().outcome, Outcome::failed);
  EXPECT_THAT(findings.back().what, HasSubstr("keeps"));
  EXPECT_THAT(findings.back().why,
              AllOf(HasSubstr("byte 77 of"), HasSubstr("harness/runner/device_check.cpp:")));
}

TEST(DeviceCheck, asks_nothing_of_a_device_that_does_not_start) {
  const auto findings = check_device(Spec::parse("host(capacity=1000000TiB)"));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings.back().outcome, Outcome::passed);
  EXPECT_FALSE(findings.back().why.empty());
}

}  // namespace
}  // namespace headroom::device_check_test
