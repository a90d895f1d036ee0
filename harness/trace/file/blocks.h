// The outer shell of a trace file: a magic and a sequence of blocks, each a zstd frame of its own
// with a checksum. README.md beside this file describes all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::trace_file {

inline constexpr std::string_view kMagic = "\x89HRTRACE";

// What a damaged file can make a reader hold at once.
inline constexpr std::size_t kMaximumContent = std::size_t{16} << 20;

enum class BlockKind : char { header = 'H', names = 'N', chunk = 'C', end = 'E' };

class BlockWriter {
 public:
  // Writes the magic. Throws DeviceError when the stream refuses.
  explicit BlockWriter(std::ostream& out);
  ~BlockWriter();
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  // Throws InputError beyond kMaximumContent, DeviceError when the stream refuses.
  void write(BlockKind kind, std::string_view content);
  void flush();

 private:
  void put(const char* data, std::size_t size);

  struct Compressor;
  std::ostream& out_;
  std::unique_ptr<Compressor> compressor_;
  std::string frame_;
};

struct Block {
  BlockKind kind;
  std::string_view content;  // valid until the next block is read
};

class BlockReader {
 public:
  explicit BlockReader(std::istream& in);
  ~BlockReader();
  BlockReader(const BlockReader&) = delete;
  BlockReader& operator=(const BlockReader&) = delete;

  // Nothing at the end of the stream. Throws InputError for what is cut off, damaged or no trace.
  std::optional<Block> next();
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  struct Decompressor;
  void read_magic();

  std::istream& in_;
  std::unique_ptr<Decompressor> decompressor_;
  std::string frame_;
  std::string content_;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace headroom::trace_file
