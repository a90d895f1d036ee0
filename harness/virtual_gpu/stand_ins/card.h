// The card that the stand-ins imitate, described by the environment that the launcher sets.
#pragma once

#include <cstddef>
#include <string>

namespace headroom::virtual_gpu {

struct Card {
  std::string name = "virtual GPU";
  std::size_t memory_bytes = 0;  // what CUDA reports as the total
  int devices = 1;
  std::size_t context_bytes = 0;  // what each further process takes for itself
  int compute_major = 8, compute_minor = 0;
  int multiprocessors = 108;
  int shared_bytes_per_multiprocessor = 167'936;
  int shared_bytes_per_block_optin = 166'912;
  int threads_per_multiprocessor = 2048;
  int blocks_per_multiprocessor = 32;
  int l2_cache_bytes = 41'943'040;
  int clock_khz = 1'410'000;
  int memory_clock_khz = 1'215'000;
  int memory_bus_bits = 5120;
  int driver_version = 13'020;  // as cudaDriverGetVersion counts: 13.2
};

// Reads HEADROOM_GPU_CARD, "key=value" pairs joined by ';'. Ends the process with a message if it
// is not set or malformed, because the libraries are useless without a launcher.
const Card& card();

// The devices that CUDA_VISIBLE_DEVICES leaves to this process when it first asks: none if the list
// is empty or begins with -1. An entry that names no virtual card stands for the card at its
// position in the list, so that a program pinned to a GPU of another machine finds one.
int visible_devices();
bool is_device(int device);  // one of the visible ones

// Returns the number, among all cards of the run, of a visible device.
int card_number(int device);

// Returns the value of a device attribute (CUdevice_attribute and cudaDeviceAttr share numbers); 0
// for attributes that the card does not have.
int device_attribute(int attribute);

// Returns the architecture (86 for 8.6) whose code the card runs. Wheels contain code for some
// architectures; a card runs the code of the highest one that does not exceed its own: a card
// of 8.9 runs the code for 8.6. Libraries choose their parameters by it.
int architecture_of_kernels();

}  // namespace headroom::virtual_gpu
