// Fingerprints: of data files in the provenance, of plans a run is resumed against, and the
// source of every random order (a hash of the seed and a name needs no generator state).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace headroom {

// 64 hexadecimal digits.
std::string sha256(std::string_view bytes);
// Throws InputError naming the file when it cannot be read.
std::string sha256_of_file(const std::filesystem::path& file);

// The first 53 bits: a number that every JSON reader keeps exactly.
std::uint64_t hashed_number(std::string_view bytes);

}  // namespace headroom
