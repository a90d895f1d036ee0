#include "harness/trace/file/reader.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "harness/base/error.h"

namespace headroom {

using trace_file::BlockKind;

namespace {

// Limit on the total size of all names: a larger total is not a plausible list of ops.
constexpr std::size_t kMaximumNameBytes = std::size_t{16} << 20;

}  // namespace

TraceReader::TraceReader(std::istream& in, std::string name) : name_(std::move(name)), blocks_(in) {
  in_block([&](const std::optional<trace_file::Block>& block) {
    if (!block) throw InputError("is cut off");
    if (block->kind != BlockKind::header) throw InputError("does not begin with a header");
    header_ = trace_file::parse_header(block->content);
  });
}

// Calls `read` on the next block and adds the block's position to any error thrown.
template <typename Read>
void TraceReader::in_block(const Read& read) {
  ++block_;
  try {
    read(blocks_.next());
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {} (block {}, after {} events)", name_, error.what(), block_,
                                 seen_.events));
  }
}

bool TraceReader::read_chunk(std::vector<TraceEvent>& events) {
  const std::size_t before = events.size();
  while (!ended_ && events.size() == before)
    in_block([&](const std::optional<trace_file::Block>& block) {
      if (!block) throw InputError("is cut off");
      switch (block->kind) {
        case BlockKind::header:
          throw InputError("is damaged: a second header");
        case BlockKind::names:
          return add_names(block->content);
        case BlockKind::chunk:
          trace_file::decode_chunk(block->content, header_.layout, events);
          seen_.events += events.size() - before;
          return;
        case BlockKind::end:
          check_end(block->content);
          ended_ = true;
          if (blocks_.next()) throw InputError("goes on after its end");
          return;
      }
    });
  return events.size() > before;
}

void TraceReader::add_names(std::string_view text) {
  name_bytes_ += text.size();
  if (name_bytes_ > kMaximumNameBytes)
    throw InputError(
        fmt::format("has more than {} of names of ops", format_bytes(kMaximumNameBytes)));
  std::vector<std::string> names = trace_file::parse_names(text);
  op_names_.insert(op_names_.end(), std::make_move_iterator(names.begin()),
                   std::make_move_iterator(names.end()));
  seen_.op_names = op_names_.size();
}

void TraceReader::check_end(std::string_view text) {
  const trace_file::FileEnd written = trace_file::parse_end(text);
  if (written.events != seen_.events || written.op_names != seen_.op_names)
    throw InputError(fmt::format("is damaged: {} events and {} names of ops were written",
                                 written.events, written.op_names));
}

}  // namespace headroom
