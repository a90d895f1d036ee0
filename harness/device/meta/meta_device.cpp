// The meta device runs the same lowered Programs against a nominal capacity. It gives the memory
// figures of absent cards within milliseconds; nothing is computed or timed.
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/device/host/host_memory.h"
#include "harness/device/meta/cards.h"

namespace headroom {
namespace {

// The host memory of the machine around a card is unknown, so it is unlimited.
constexpr Bytes kNoLimit = Bytes{1} << 60;

class MetaMemory final : public DeviceMemory {
 public:
  using DeviceMemory::DeviceMemory;

  bool has_virtual_memory() const override { return true; }

 private:
  std::byte* reserve_addresses(Bytes) override { return nullptr; }
};

class MetaProgram final : public CompiledProgram {
 public:
  void run(std::size_t, const OpBuffers&) override {}
};

class MetaDevice final : public Device {
 public:
  MetaDevice(Bytes capacity, Bytes granule) : memory_(capacity, granule) {}

  DeviceMemory& memory() override { return memory_; }
  std::unique_ptr<DeviceMemory> make_host_memory() override {
    return std::make_unique<MetaMemory>(kNoLimit, kHostGranule);
  }
  std::unique_ptr<CompiledProgram> compile(const Program&) override {
    return std::make_unique<MetaProgram>();
  }
  bool computes() const override { return false; }
  void write(const Value&, std::byte*, std::span<const std::byte>) override {}
  void read(const Value&, const std::byte*, std::span<std::byte>) override {}
  void synchronize() override {}

 private:
  MetaMemory memory_;
};

// Without a card, capacity= mirrors the host including its granule, so that traces of the two can
// be compared event by event. With a card, it leaves room for what a real process keeps besides.
std::unique_ptr<Device> create_meta(const Spec& spec) {
  spec.require_known({"capacity", "card", "granule"});
  Bytes capacity = 0;
  Bytes granule = kHostGranule;
  if (spec.has("card")) {
    const std::string name = spec.text("card", "");
    const Card& card = find_card(name);
    capacity = card.capacity;
    granule = card.granule;
  } else if (!spec.has("capacity")) {
    throw InputError("meta: name a card, meta(card=v100-16gb), or a capacity, meta(capacity=4GiB)");
  }
  capacity = spec.bytes("capacity", capacity);
  granule = spec.bytes("granule", granule);
  if (granule == 0 || capacity < granule)
    throw InputError(spec.to_string() + ": the capacity must hold at least one granule of " +
                     format_bytes(granule));
  return std::make_unique<MetaDevice>(capacity, granule);
}

const bool meta_registered = Registry<DeviceKind>::instance().add(
    {.name = "meta",
     .summary = "Computes nothing. Counts the memory of a named card (card=) or of a capacity "
                "(capacity=, granule=) with the allocator code of real devices",
     .default_rules = "dense",
     .traits = {.computes = false, .timed = false, .exact = true, .simulated = true},
     .unavailable = [] { return std::string(); },
     .create = create_meta});

}  // namespace
}  // namespace headroom
