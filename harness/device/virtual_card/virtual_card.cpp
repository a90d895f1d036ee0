// virtual: a simulated card on which frameworks run their own code (harness/virtual_gpu).
// Headroom's own training steps cannot run on it; meta counts their bytes.
#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/device/meta/cards.h"

namespace headroom {
namespace {

const bool virtual_registered = Registry<DeviceKind>::instance().add(
    {.name = "virtual",
     .summary = "A named card (card=) that is not there, for programs of frameworks: the scenario "
                "virtual_gpu. Bytes are the framework's own; nothing is computed",
     .default_rules = "dense",
     .traits = {.computes = false, .timed = false, .exact_within = 0.001, .virtual_card = true},
     .unavailable = [] { return std::string(); },
     .create = [](const Spec& spec) -> std::unique_ptr<Device> {
       spec.require_known({"card"});
       find_card(spec.text("card", ""));
       throw NotSupported(
           "virtual: runs programs of frameworks, not Headroom's own training steps; count those "
           "with meta(card=…), or name the scenario virtual_gpu");
     }});

}  // namespace
}  // namespace headroom
