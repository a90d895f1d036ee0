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
  number("context", card.context_bytes);
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

int device_attribute(int attribute) {
  const Card& c = card();
  const struct {
    int attribute;  // the number of a CUdevice_attribute
    int value;
  } attributes[] = {
      {1, 1024},            // threads per block
      {2, 1024},            // largest block: x
      {3, 1024},            // y
      {4, 64},              // z
      {5, 2'147'483'647},   // largest grid: x
      {6, 65'535},          // y
      {7, 65'535},          // z
      {8, 49'152},          // shared memory per block
      {9, 65'536},          // constant memory
      {10, 32},             // threads per warp
      {11, 2'147'483'647},  // largest pitch
      {12, 65'536},         // registers per block
      {13, c.clock_khz},
      {14, 512},  // texture alignment
      {16, c.multiprocessors},
      {19, 1},  // can map host memory
      {31, 1},  // concurrent kernels
      {36, c.memory_clock_khz},
      {37, c.memory_bus_bits},
      {38, c.l2_cache_bytes},
      {39, c.threads_per_multiprocessor},
      {40, 1},  // asynchronous engines
      {41, 1},  // unified addressing
      {75, c.compute_major},
      {76, c.compute_minor},
      {78, 1},  // stream priorities
      {81, c.shared_bytes_per_multiprocessor},
      {82, 65'536},  // registers per multiprocessor
      {83, 1},       // managed memory
      {95, 1},       // cooperative launch
      {97, c.shared_bytes_per_block_optin},
      {102, 1},  // virtual memory management
      {103, 1},  // POSIX file descriptors as handles
      {106, c.blocks_per_multiprocessor},
      {111, 1024},                          // reserved shared memory per block
      {115, 1},                             // memory pools
      {120, c.compute_major >= 9 ? 1 : 0},  // cluster launch
      {122, c.compute_major >= 7 ? 1 : 0},  // streams write numbers of 64 bits
  };
  for (const auto& known : attributes)
    if (known.attribute == attribute) return known.value;
  return 0;
}

HEADROOM_EXPORT void headroom_gpu_set_oldest_code(int architecture) { oldest_code = architecture; }

// The architectures that PyTorch's wheels contain code for. A card that is older than all code of
// the program's CUDA version runs none on real hardware; here it is assumed to run the oldest.
int architecture_of_kernels() {
  constexpr int kBuilt[] = {50, 60, 70, 75, 80, 86, 90, 100, 120};
  const int own = card().compute_major * 10 + card().compute_minor;
  int result = oldest_code;
  for (const int architecture : kBuilt)
    if (architecture <= own) result = std::max(result, architecture);
  return result;
}

}  // namespace headroom::virtual_gpu
