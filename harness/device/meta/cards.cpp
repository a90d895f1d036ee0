#include "harness/device/meta/cards.h"

#include <fmt/format.h>

#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string_view>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/base/text.h"

namespace headroom {

extern const std::string_view kCardsToml;     // generated from cards.toml
extern const std::string_view kMachinesToml;  // generated from machines.toml

namespace {

constexpr std::string_view kTable = "cards.toml";

// A card as a file describes it.
struct Description {
  const toml::table& table;
  std::string_view file;
  const std::string& id;

  [[noreturn]] void refuse(std::string_view key) const {
    throw InputError(fmt::format("{}: [{}] has no usable '{}'", file, id, key));
  }
  std::string text(std::string_view key) const {
    auto value = table[key].value<std::string>();
    if (!value || value->empty()) refuse(key);
    return *value;
  }
  template <typename Number>
  Number number(std::string_view key) const {
    const auto value = table[key].value<std::int64_t>();
    if (!value || *value <= 0 || !std::in_range<Number>(*value)) refuse(key);
    return static_cast<Number>(*value);
  }
};

// Parses a compute capability such as "8.9".
void parse_capability(const Description& given, Card& card) {
  const std::string text = given.text("compute_capability");
  if (std::sscanf(text.c_str(), "%d.%d", &card.compute_major, &card.compute_minor) != 2)
    given.refuse("compute_capability");
}

std::vector<std::string> aliases(const toml::table& table) {
  std::vector<std::string> result;
  if (const toml::array* list = table["aliases"].as_array())
    for (const toml::node& alias : *list) result.push_back(alias.value_or(std::string()));
  return result;
}

Card parse_card(const Description& given) {
  const auto bytes = [&](std::string_view key) { return given.number<Bytes>(key); };
  const auto number = [&](std::string_view key) { return given.number<int>(key); };
  Card card{.id = given.id,
            .name = given.text("name"),
            .capacity = bytes("capacity_bytes"),
            .driver_total = bytes("driver_total_bytes"),
            .granule = bytes("granule_bytes"),
            .source = given.text("source"),
            .aliases = aliases(given.table),
            .multiprocessors = number("multiprocessors"),
            .shared_per_multiprocessor = bytes("shared_bytes_per_multiprocessor"),
            .shared_per_block_optin = bytes("shared_bytes_per_block_optin"),
            .threads_per_multiprocessor = number("threads_per_multiprocessor"),
            .blocks_per_multiprocessor = number("blocks_per_multiprocessor"),
            .l2_cache = bytes("l2_cache_bytes"),
            .clock_khz = number("clock_khz"),
            .memory_clock_khz = number("memory_clock_khz"),
            .memory_bus_bits = number("memory_bus_bits")};
  parse_capability(given, card);
  if (card.name.find(';') != std::string::npos)
    given.refuse("name");  // it divides what CUDA is told
  return card;
}

// `card` with the properties of `other` that it does not name itself.
toml::table with_those_of(const toml::table& other, const toml::table& card) {
  toml::table result = other;
  result.erase("aliases");
  for (const auto& [key, node] : card) result.insert_or_assign(key, node);
  if (!card.contains("driver_total_bytes"))
    result.insert_or_assign("driver_total_bytes", *result.get("capacity_bytes"));
  return result;
}

toml::table parse_table() {
  toml::table result = toml::parse(kCardsToml, kTable);
  for (auto&& [key, node] : result)
    if (toml::table& card = *node.as_table(); card.contains("instance_of"))
      card = with_those_of(*result.at(*card["instance_of"].value<std::string>()).as_table(), card);
  return result;
}

// The table of all cards, in which a GPU instance has the properties of the whole card that it does
// not name itself.
const toml::table& all_cards() {
  static const toml::table result = parse_table();
  return result;
}

std::vector<Card> parse_cards() {
  std::vector<Card> result;
  for (const auto& [key, node] : all_cards()) {
    const toml::table& table = *node.as_table();
    const std::string id(key.str());
    result.push_back(parse_card({.table = table, .file = kTable, .id = id}));
    result.back().is_instance = table.contains("instance_of");
  }
  return result;
}

// Refuses keys that no card of the table has.
void check_keys(const toml::table& card, const std::string& file) {
  std::vector<std::string> known = {"like"};
  for (const auto& [key, node] : *all_cards().begin()->second.as_table())
    known.emplace_back(key.str());
  for (const auto& [key, node] : card)
    if (std::find(known.begin(), known.end(), key.str()) == known.end())
      throw_unknown_name("key of " + file, key.str(), known);
}

const Card* card_named(const std::string& name) {
  for (const Card& card : cards())
    if (card.id == name ||
        std::find(card.aliases.begin(), card.aliases.end(), name) != card.aliases.end())
      return &card;
  return nullptr;
}

using Family = std::vector<Machine>;

std::vector<Family> parse_machines() {
  std::vector<Family> result;
  const toml::table table = toml::parse(kMachinesToml, std::string_view("machines.toml"));
  for (const toml::node& family : *table["family"].as_array()) {
    const std::string card = family.as_table()->at("card").value_or(std::string());
    if (card_named(card) == nullptr) throw Error("machines.toml: no card is called " + card);
    for (Family& machines = result.emplace_back();
         const toml::node& machine : *family.as_table()->at("machines").as_array())
      machines.push_back({.name = machine.as_array()->at(0).value_or(std::string()),
                          .card = card_named(card),
                          .cards = machine.as_array()->at(1).value_or(0)});
  }
  return result;
}

const std::vector<Family>& families() {
  static const std::vector<Family> result = parse_machines();
  return result;
}

std::string plain_name(std::string machine) {
  constexpr std::string_view kOfAzure = "standard_";
  for (char& letter : machine)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return machine.starts_with(kOfAzure) ? machine.substr(kOfAzure.size()) : machine;
}

}  // namespace

const std::vector<Card>& cards() {
  static const std::vector<Card> result = parse_cards();
  return result;
}

Card read_card(const std::string& text, const std::string& file) try {
  const toml::table table = toml::parse(text, file);
  const toml::table* card = table.size() == 1 ? table.begin()->second.as_table() : nullptr;
  if (card == nullptr)
    throw InputError(file + ": describe one card, as in [my-card] and below it its keys");
  check_keys(*card, file);
  const std::string id(table.begin()->first.str());
  if (!is_file_name(id)) throw InputError(fmt::format("{}: '{}' is no name of a card", file, id));
  const Description given{.table = *card, .file = file, .id = id};
  if (!card->contains("like")) return parse_card(given);
  const std::string other = given.text("like");
  const Card& like = find_card(other);
  const toml::table whole = with_those_of(*all_cards().at(like.id).as_table(), *card);
  return parse_card({.table = whole, .file = file, .id = id});
} catch (const toml::parse_error& error) {
  throw InputError(fmt::format("{}:{}: {}", file, error.source().begin.line, error.description()));
}

const Card* card_called(const std::string& name) {
  if (const Card* card = card_named(name)) return card;
  const Machine* machine = machine_called(name);
  return machine != nullptr ? machine->card : nullptr;
}

const Machine* machine_called(const std::string& name) {
  for (const Family& family : families())
    for (const Machine& machine : family)
      if (plain_name(machine.name) == plain_name(name)) return &machine;
  return nullptr;
}

std::vector<std::string> machines_with(const Card& card, int cards) {
  std::vector<std::string> result;
  for (const Family& family : families())
    for (const Machine& machine : family)
      if (machine.card == &card && machine.cards >= cards) {
        result.push_back(machine.name);
        break;
      }
  return result;
}

Bytes estimated_context(const Card& card) {
  constexpr Bytes kPerThread = 2 * kKiB;
  return static_cast<Bytes>(card.multiprocessors) *
         static_cast<Bytes>(card.threads_per_multiprocessor) * kPerThread;
}

const Card& find_card(const std::string& name) {
  if (const Card* card = card_called(name)) return *card;
  std::vector<std::string> known;
  for (const Card& card : cards()) known.push_back(card.id);
  std::vector<std::string> all = known;
  for (const Family& family : families())
    for (const Machine& machine : family) all.push_back(machine.name);
  const std::string nearest = nearest_names(name, all).front();
  const bool is_card = std::find(known.begin(), known.end(), nearest) != known.end();
  throw_unknown_name("card", name, is_card ? known : all);
}

}  // namespace headroom
