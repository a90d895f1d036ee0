// The GPU models that a device can simulate (`meta(card=…)`, `headroom gpu CARD`), read from
// cards.toml, which is compiled in, and the machines of clouds that have them (machines.toml).
#pragma once

#include <string>
#include <vector>

#include "harness/base/units.h"

namespace headroom {

struct Card {
  std::string id;          // "v100-16gb"
  std::string name;        // the vendor's name
  Bytes capacity = 0;      // what CUDA reports as the total
  Bytes driver_total = 0;  // what the driver reports
  Bytes granule = 0;
  std::string source;
  std::vector<std::string> aliases;  // names that people type
  bool is_instance = false;          // a part of a card (MIG), of which a process sees only one
  // The figures below come from the programming guide and deviceQuery.
  int compute_major = 0, compute_minor = 0;
  int multiprocessors = 0;
  Bytes shared_per_multiprocessor = 0, shared_per_block_optin = 0;
  int threads_per_multiprocessor = 0, blocks_per_multiprocessor = 0;
  Bytes l2_cache = 0;
  int clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0;
};

const std::vector<Card>& cards();
// Reads the description of one card. It has the keys of cards.toml, and may say `like = "rtx4090"`
// to have those that it leaves out from that card. Throws InputError that names file and key.
Card read_card(const std::string& text, const std::string& file);
// Finds a card by id or alias, or that of a machine. Throws InputError that suggests the nearest
// names.
const Card& find_card(const std::string& name);
// Estimates what a CUDA context takes before the first tensor: 2 KiB for each thread that can be
// resident. Five public measurements lie within 15 % of it (docs/reference/devices.md); kernels
// that are loaded later come on top.
Bytes estimated_context(const Card& card);
// Returns nullptr when no card has that id or alias, and no machine that name.
const Card* card_called(const std::string& name);

// A machine that a cloud rents, such as g5.12xlarge with four cards.
struct Machine {
  std::string name;
  const Card* card = nullptr;
  int cards = 0;
};

// Finds it in any case, and with or without Azure's "Standard_"; nullptr if there is none.
const Machine* machine_called(const std::string& name);
// The first machine of each family that has at least so many of that card.
std::vector<std::string> machines_with(const Card& card, int cards);

}  // namespace headroom
