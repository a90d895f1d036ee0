#include "harness/cli/text/pytorch_text.h"

#include "harness/cli/text/print.h"

namespace headroom {
namespace {

// Returns the name that the hook in PyTorch uses for a role of Headroom's. To the hook, gradients
// of activations and scratch memory are temporaries.
std::string role_beside_pytorch(Role role) {
  switch (role) {
    case Role::weight:
    case Role::gradient:
    case Role::optimizer_state:
    case Role::activation:
      return std::string(to_string(role));
    case Role::activation_gradient:
    case Role::workspace:
      return "temporary";
    default:
      return "other";
  }
}

void print_row(const char* name, Bytes own, Bytes theirs) {
  out::print("  {:<16} {:>11} {:>11}\n", name, format_bytes(own), format_bytes(theirs));
}

}  // namespace

void print_pytorch(const Fit& fit, const PytorchNeeds& pytorch) {
  out::print("\nThe same network by {} on a virtual {}, {} steps (virtual: its own bytes): ",
             pytorch.engine, fit.cell.device.text("card", ""), fit.steps);
  if (!pytorch.trained) {
    out::print("it does not fit. {}\n", pytorch.note);
    return;
  }
  out::print("it reserves at most {}.\n  {:<16} {:>11} {:>11}\n",
             format_bytes(pytorch.reserved.value_or(0)), "at the peak", "Headroom", "PyTorch");
  std::map<std::string, Bytes> own, theirs = pytorch.roles;
  for (std::size_t role = 0; role < fit.live_at_peak.size(); ++role)
    own[role_beside_pytorch(static_cast<Role>(role))] += fit.live_at_peak[role];
  for (const char* role :
       {"weight", "gradient", "optimizer_state", "activation", "temporary", "other"})
    print_row(role, own[role], theirs[role]);
  print_row("all", fit.peak_live_bytes, pytorch.allocated.value_or(0));
}

Json to_json(const PytorchNeeds& pytorch) {
  return {{"engine", pytorch.engine},
          {"trained", pytorch.trained},
          {"note", pytorch.note},
          {"allocated_bytes_peak", value_or_null(pytorch.allocated)},
          {"reserved_bytes_peak", value_or_null(pytorch.reserved)},
          {"allocated_bytes_at_peak", pytorch.roles}};
}

}  // namespace headroom
