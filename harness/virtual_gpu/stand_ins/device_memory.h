// Memory of the virtual devices: address space without pages, charged against the card's capacity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "harness/gpu_driver/driver_pool.h"
#include "harness/gpu_driver/small_blocks.h"

namespace headroom::virtual_gpu {

// The current device of this thread, as set by cudaSetDevice.
int current_device();
void set_current_device(int device);

struct Range {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  int device = 0;
};

// Returns nullptr when the card is full, and for zero bytes, which does not count as a refusal.
void* allocate(std::size_t bytes, int device);
// The same from the driver's pool, for cudaMallocAsync.
void* allocate_from_pool(std::size_t bytes, int device);
// Returns false if `address` was not returned by one of the functions above.
bool release(void* address);
// Pools give memory back when the program waits for the GPU; each such call reports it here.
void synchronise_pools();
// Calls use(pool) with the driver's pool of a device, which no other thread uses meanwhile.
void with_pool(int device, const std::function<void(DriverPool&)>& use);
// Memory that is not charged against the card: for the variables of a program's code, which is not
// charged either, and memory that another process holds and has been charged for. Returns nullptr
// when there are no addresses left.
void* allocate_uncharged(std::size_t bytes, int device);
void release_uncharged(void* address);
// Finds the block, mapping or uncharged memory that contains `address`.
std::optional<Range> find(const void* address);

std::size_t used_bytes(int device);
std::size_t free_bytes(int device);

// Virtual memory management: cuMemAddressReserve, cuMemCreate, cuMemMap and their opposites.
void* reserve_addresses(std::size_t bytes);
bool free_addresses(void* address);
// Returns a handle of physical memory, or 0 when the card is full.
std::uint64_t create_physical(std::size_t bytes, int device);
bool release_physical(std::uint64_t handle);
// Returns a handle of physical memory that another process has created.
std::uint64_t import_physical(int device);
bool map_physical(void* address, std::size_t bytes, std::uint64_t handle);
bool unmap(void* address, std::size_t bytes);
std::uint64_t retain_physical(void* address);

}  // namespace headroom::virtual_gpu
