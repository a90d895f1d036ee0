#include "harness/virtual_gpu/stand_ins/driver/ptx.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

namespace headroom::virtual_gpu {
namespace {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Returns the declarations of variables in PTX, each from .global or .const up to its value.
std::vector<std::string_view> declarations(std::string_view code) {
  std::vector<std::string_view> found;
  for (const std::string_view space : {".global", ".const"})
    for (std::size_t at = code.find(space); at != code.npos; at = code.find(space, at + 1)) {
      // ".global" within "ld.global.f32" is part of an instruction.
      const std::size_t behind = at + space.size();
      if ((at > 0 && !is_space(code[at - 1])) || behind >= code.size() || !is_space(code[behind]))
        continue;
      const std::size_t end = code.find_first_of(";={", at);
      if (end != code.npos) found.push_back(code.substr(at, end - at));
    }
  return found;
}

// Reads ".global .align 128 .v2 .f32 name[4][8]". A type ends with its number of bits.
Variable variable_of(std::string_view declaration) {
  Variable result;
  std::size_t bytes = 1;
  const std::size_t bracket = std::min(declaration.find('['), declaration.size());
  std::string word;
  bool is_alignment = false;
  const auto end_of_word = [&] {
    if (word.empty()) return;
    const std::size_t digits = word.find_last_not_of("0123456789") + 1;
    const auto number = digits < word.size() ? std::stoull(word.substr(digits).substr(0, 9)) : 0;
    if (is_alignment)
      is_alignment = false;
    else if (word == ".align")
      is_alignment = true;
    else if (word[0] != '.')
      result.name = word;
    else if (word.starts_with(".v"))
      bytes *= number;
    else if (number >= 8)
      bytes *= number / 8;
    word.clear();
  };
  for (const char c : declaration.substr(0, bracket))
    if (is_space(c))
      end_of_word();
    else
      word += c;
  end_of_word();
  for (std::size_t at = bracket; at < declaration.size(); at = declaration.find('[', at + 1)) {
    const std::size_t length = std::strtoull(declaration.data() + at + 1, nullptr, 10);
    if (__builtin_mul_overflow(bytes, length, &bytes)) bytes = 0;
  }
  result.bytes = bytes;
  return result;
}

std::string without_comments(std::string_view code) {
  std::string result;
  while (!code.empty()) {
    const std::size_t comment = std::min(code.find("//"), code.size());
    result += code.substr(0, comment);
    code.remove_prefix(std::min(code.find('\n', comment), code.size()));
  }
  return result;
}

// Calls seen(name) for each name of a register or parameter in `text`.
template <typename Seen>
void for_each_name(std::string_view text, const Seen& seen) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
  };
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_part(text[end])) ++end;
    if (end > at) seen(text.substr(at, end - at));
    at = end + 1;
  }
}

// Returns the length of `text` up to the bracket that closes the one at its beginning.
std::size_t closed_at(std::string_view text) {
  const char open = text[0], close = open == '(' ? ')' : '}';
  std::size_t depth = 0, at = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == open) ++depth;
    if (text[at] == close && --depth == 0) break;
  }
  return at;
}

// The addresses that registers hold, by the position of the parameter that they come from.
class Addresses {
 public:
  explicit Addresses(std::string_view parameters) {
    for (unsigned position = 0; !parameters.empty(); ++position) {
      const std::size_t comma = std::min(parameters.find(','), parameters.size());
      std::string_view name;
      const std::string_view parameter =
          parameters.substr(0, std::min(comma, parameters.find('[')));
      for_each_name(parameter, [&](std::string_view last) { name = last; });
      held_[name] = {position};
      parameters.remove_prefix(std::min(comma + 1, parameters.size()));
    }
  }

  void follow(std::string_view instruction) {
    const std::size_t space = std::min(instruction.find_first_of(" \t\n"), instruction.size());
    const std::string_view opcode = instruction.substr(0, space);
    const std::string_view operands = instruction.substr(space);
    if (opcode.starts_with("st.param")) {  // an argument of a function, which may write there
      add(written_, from(operands));
    } else if (writes(opcode)) {
      const std::size_t open = std::min(operands.find('['), operands.size());
      add(written_, from(operands.substr(open, operands.find(']', open) - open)));
    } else if (!opcode.starts_with("ld") || opcode.starts_with("ld.param")) {
      const std::size_t first = operands.find_first_not_of(" \t\n");
      if (first == operands.npos) return;
      const std::size_t group = operands[first] == '{' ? closed_at(operands.substr(first)) : 0;
      const std::size_t comma = std::min(operands.find(',', first + group), operands.size());
      const std::set<unsigned> sources = from(operands.substr(comma));
      if (sources.empty()) return;
      for_each_name(operands.substr(0, comma),
                    [&](std::string_view name) { add(held_[name], sources); });
    }
  }

  // How much has been found out so far.
  std::size_t found() const { return found_; }
  const std::set<unsigned>& written() const { return written_; }

 private:
  static bool writes(std::string_view opcode) {
    for (const std::string_view begin : {"st.", "red.", "atom.", "cp."})
      if (opcode.starts_with(begin)) return true;
    return false;
  }

  std::set<unsigned> from(std::string_view operands) const {
    std::set<unsigned> result;
    for_each_name(operands, [&](std::string_view name) {
      if (const auto known = held_.find(name); known != held_.end())
        result.insert(known->second.begin(), known->second.end());
    });
    return result;
  }

  void add(std::set<unsigned>& to, const std::set<unsigned>& positions) {
    const std::size_t before = to.size();
    to.insert(positions.begin(), positions.end());
    found_ += to.size() - before;
  }

  std::map<std::string_view, std::set<unsigned>> held_;
  std::set<unsigned> written_;
  std::size_t found_ = 0;
};

// Returns the instructions of a kernel that deal with addresses, without labels and conditions.
std::vector<std::string_view> instructions_of(std::string_view body) {
  std::vector<std::string_view> result;
  while (!body.empty()) {
    const std::size_t end = std::min(body.find(';'), body.size());
    std::string_view one = body.substr(0, end);
    body.remove_prefix(std::min(end + 1, body.size()));
    if (one.find("%rd") == one.npos) continue;  // registers of 64 bits
    for (;;) {
      one.remove_prefix(std::min(one.find_first_not_of(" \t\n{}"), one.size()));
      const std::size_t word = std::min(one.find_first_of(" \t\n"), one.size());
      const std::size_t line = std::min(one.find('\n'), one.size());
      if (one.starts_with('.') && line < one.size())  // a note about the line of the source
        one.remove_prefix(line);
      else if (one.starts_with('@') || one.substr(0, word).ends_with(':'))
        one.remove_prefix(word);
      else
        break;
    }
    result.push_back(one);
  }
  return result;
}

}  // namespace

std::vector<Variable> variables_of_ptx(std::string_view code) {
  std::vector<Variable> result;
  for (const std::string_view declaration : declarations(code))
    result.push_back(variable_of(declaration));
  return result;
}

std::map<std::string, std::vector<unsigned>> results_of_ptx(const std::string& commented) {
  const std::string text = without_comments(commented);
  std::map<std::string, std::vector<unsigned>> results;
  std::string_view code = text;
  constexpr std::string_view kEntry = ".entry";
  for (std::size_t at = code.find(kEntry); at != code.npos; at = code.find(kEntry)) {
    code.remove_prefix(at + kEntry.size());
    const std::size_t body = code.find('{'), open = std::min(code.find('('), body);
    if (body == code.npos) break;
    std::string_view name;
    for_each_name(code.substr(0, open), [&](std::string_view found) { name = found; });
    const std::string_view parameters = code.substr(open, body - open);
    Addresses addresses(parameters.empty() ? parameters
                                           : parameters.substr(1, closed_at(parameters) - 1));
    code.remove_prefix(body);
    const std::size_t end = closed_at(code);
    const auto instructions = instructions_of(code.substr(0, end));
    // Code that jumps back may set a register after the instruction that uses it.
    for (std::size_t before = 1; before != addresses.found();) {
      before = addresses.found();
      for (const std::string_view instruction : instructions) addresses.follow(instruction);
    }
    results[std::string(name)].assign(addresses.written().begin(), addresses.written().end());
    code.remove_prefix(end);
  }
  return results;
}

}  // namespace headroom::virtual_gpu
