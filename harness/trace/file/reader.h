// Reads a trace file one chunk at a time, in memory that does not grow with the file.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "harness/trace/file/blocks.h"
#include "harness/trace/file/header.h"

namespace headroom {

class TraceReader {
 public:
  // Reads the header. `name` appears in errors. Every function throws InputError naming it and the
  // block when the file is truncated, damaged or not a trace.
  TraceReader(std::istream& in, std::string name);

  const TraceHeader& header() const { return header_.trace; }
  // Absent for a trace that is not a planning problem.
  const std::optional<std::vector<Placement>>& placement() const { return header_.placement; }
  // Names of the ops that the chunks read so far can refer to; complete at the end.
  const std::vector<std::string>& op_names() const { return op_names_; }

  // Appends the next chunk, at most 2^16 events. Returns false at the end and appends nothing.
  bool read_chunk(std::vector<TraceEvent>& events);

  std::uint64_t bytes_read() const { return blocks_.bytes_read(); }

 private:
  template <typename Read>
  void in_block(const Read& read);
  void add_names(std::string_view text);
  void check_end(std::string_view text);

  std::string name_;
  std::size_t block_ = 0;  // number of the block being read
  trace_file::BlockReader blocks_;
  trace_file::FileHeader header_;
  trace_file::FileEnd seen_;
  std::vector<std::string> op_names_;
  std::size_t name_bytes_ = 0;
  bool ended_ = false;
};

}  // namespace headroom
