// The device check, run on correct devices and on a faulty one.
#include "harness/runner/device_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

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
       return std::make_unique<Forgetful>(make_device(Spec::parse("host(capacity=64MiB)")));
     }});

std::vector<DeviceFinding> run_all(const char* device) {
  std::vector<DeviceFinding> findings;
  for (const DeviceCheck& check : device_checks(Spec::parse(device)))
    findings.push_back(run_check(check));
  return findings;
}

TEST(DeviceCheck, passes_the_host_in_everything_it_asks) {
  const auto findings = run_all("host(capacity=512MiB)");
  EXPECT_GE(findings.size(), 6u);
  for (const DeviceFinding& finding : findings)
    EXPECT_EQ(finding.outcome, Outcome::passed) << finding.what << ": " << finding.why;
}

TEST(DeviceCheck, fails_at_a_byte_that_came_back_changed_and_names_the_line) {
  ASSERT_TRUE(registered);
  const auto findings = run_all("forgetful_host");
  const auto kept = std::find_if(findings.begin(), findings.end(), [](const auto& finding) {
    return finding.what.find("keeps") != std::string::npos;
  });
  ASSERT_NE(kept, findings.end());
  EXPECT_EQ(kept->outcome, Outcome::failed);
  EXPECT_THAT(kept->why,
              AllOf(HasSubstr("byte 77 of"), HasSubstr("harness/runner/device_check.cpp:")));
}

TEST(DeviceCheck, passes_nothing_of_a_device_that_does_not_start) {
  for (const DeviceFinding& finding : run_all("host(capacity=1000000TiB)")) {
    EXPECT_NE(finding.outcome, Outcome::passed) << finding.what;
    EXPECT_FALSE(finding.why.empty()) << finding.what;
  }
}

}  // namespace
}  // namespace headroom::device_check_test
