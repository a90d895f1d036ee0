#include "harness/virtual_gpu/stand_ins/card.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "harness/virtual_gpu/stand_ins/interface.h"

namespace headroom::virtual_gpu {
namespace {

[[noreturn]] void refuse(const char* why) {
  std::fprintf(stderr, "headroom gpu: %s; start the program with: headroom gpu CARD -- COMMAND\n",
               why);
  std::_Exit(2);
}

std::map<std::string, std::string> parse(const std::string& text) {
  std::map<std::string, std::string> result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    const std::string entry = text.substr(begin, end - begin);
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) refuse("HEADROOM_GPU_CARD is malformed");
    result[entry.substr(0, equals)] = entry.substr(equals + 1);
    begin = end + 1;
  }
  return result;
}

Card read_card() {
  const char* text = std::getenv("HEADROOM_GPU_CARD");
  if (text == nullptr) refuse("HEADROOM_GPU_CARD is not set");
  const auto values = parse(text);
  Card card;
  const auto number = [&](const char* key, auto& value) {
    const auto found = values.find(key);
    if (found == values.end()) return;
    char* end = nullptr;
    const long long parsed = std::strtoll(found->second.c_str(), &end, 10);
    if (*end != '\0' || parsed < 0) refuse("HEADROOM_GPU_CARD holds a value that is not a number");
    value = static_cast<std::remove_reference_t<decltype(value)>>(parsed);
  };
  if (const auto name = values.find("name"); name != values.end()) card.name = name->second;
  number("memory", card.memory_bytes);
  number("devices", card.devices);
  number("shared", card.shared);
  number("major", card.compute_major);
  number("minor", card.compute_minor);
  number("multiprocessors", card.multiprocessors);
  number("shared_per_multiprocessor", card.shared_bytes_per_multiprocessor);
  number("shared_per_block_optin", card.shared_bytes_per_block_optin);
  number("threads_per_multiprocessor", card.threads_per_multiprocessor);
  number("blocks_per_multiprocessor", card.blocks_per_multiprocessor);
  number("l2", card.l2_cache_bytes);
  number("clock_khz", card.clock_khz);
  number("memory_clock_khz", card.memory_clock_khz);
  number("memory_bus_bits", card.memory_bus_bits);
  if (card.memory_bytes == 0) refuse("HEADROOM_GPU_CARD names no memory");
  return card;
}

std::vector<int> read_visible_cards() {
  const int cards = card().devices;
  std::vector<int> visible;
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) {
    for (int number = 0; number < cards; ++number) visible.push_back(number);
    return visible;
  }
  std::istringstream entries(list);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const int position = static_cast<int>(visible.size());
    if (entry.starts_with('-') || position >= cards) break;
    char* end = nullptr;
    const long number = std::strtol(entry.c_str(), &end, 10);
    const bool is_card = end != entry.c_str() && *end == '\0' && number < cards;
    visible.push_back(is_card ? static_cast<int>(number) : position);
  }
  return visible;
}

const std::vector<int>& visible_cards() {
  static const std::vector<int> result = read_visible_cards();
  return result;
}

std::atomic<int> oldest_code = 50;

}  // namespace

const Card& card() {
  static const Card result = read_card();
  return result;
}

int visible_devices() { return static_cast<int>(visible_cards().size()); }

bool is_device(int device) { return device >= 0 && device < visible_devices(); }

int card_number(int device) {
  return is_device(device) ? visible_cards()[static_cast<std::size_t>(device)] : device;
}

// Attribute numbers follow the documentation of CUdevice_attribute.
int device_attribute(int attribute) {
  const Card& c = card();
  switch (attribute) {
    case 1:  // threads per block
    case 2:  // block dimensions x, y
    case 3:
      return 1024;
    case 4:
      return 64;  // block dimension z
    case 5:
      return 2'147'483'647;  // grid dimensions x, y, z
    case 6:
    case 7:
      return 65'535;
    case 8:
      return 49'152;  // shared memory per block
    case 9:
      return 65'536;  // constant memory
    case 10:
      return 32;  // warp size
    case 11:
      return 2'147'483'647;  // largest pitch
    case 12:
      return 65'536;  // registers per block
    case 13:
      return c.clock_khz;
    case 14:
      return 512;  // texture alignment
    case 16:
      return c.multiprocessors;
    case 19:  // can map host memory
    case 31:  // concurrent kernels
    case 40:  // asynchronous engines
    case 41:
      return 1;  // unified addressing
    case 36:
      return c.memory_clock_khz;
    case 37:
      return c.memory_bus_bits;
    case 38:
      return c.l2_cache_bytes;
    case 39:
      return c.threads_per_multiprocessor;
    case 75:
      return c.compute_major;
    case 76:
      return c.compute_minor;
    case 78:
      return 1;  // stream priorities
    case 81:
      return c.shared_bytes_per_multiprocessor;
    case 82:
      return 65'536;  // registers per multiprocessor
    case 83:
      return 1;  // managed memory
    case 95:
      return 1;  // cooperative launch
    case 97:
      return c.shared_bytes_per_block_optin;
    case 102:
      return 1;  // virtual memory management
    case 103:
      return 1;  // POSIX file descriptors as handles
    case 106:
      return c.blocks_per_multiprocessor;
    case 111:
      return 1024;  // reserved shared memory per block
    case 115:
      return 1;  // memory pools
    case 120:
      return c.compute_major >= 9 ? 1 : 0;  // cluster launch
    default:
      return 0;
  }
}

HEADROOM_EXPORT void headroom_gpu_set_oldest_code(int architecture) { oldest_code = architecture; }

// The architectures that PyTorch's wheels contain code for. A card that is older than all code of
// the program's CUDA version runs none on real hardware; here it counts as running the oldest.
int architecture_of_kernels() {
  constexpr int kBuilt[] = {50, 60, 70, 75, 80, 86, 90, 100, 120};
  const int own = card().compute_major * 10 + card().compute_minor;
  int result = oldest_code;
  for (const int architecture : kBuilt)
    if (architecture <= own) result = std::max(result, architecture);
  return result;
}

}  // namespace headroom::virtual_gpu
