#include "harness/device/meta/cards.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <string_view>

#include "harness/base/error.h"
#include "harness/base/registry.h"

namespace headroom {

extern const std::string_view kCardsToml;  // generated from cards.toml

namespace {

template <typename Value>
Value field(const toml::table& table, std::string_view card, std::string_view key) {
  const auto value = table[key].value<Value>();
  if (!value) throw Error(fmt::format("cards.toml: [{}] has no usable '{}'", card, key));
  return *value;
}

std::vector<Card> parse_cards() {
  std::vector<Card> result;
  for (const auto& [key, node] : toml::parse(kCardsToml, std::string_view("cards.toml"))) {
    const std::string_view id = key.str();
    const toml::table& table = *node.as_table();
    const auto bytes = [&](std::string_view name) {
      return static_cast<Bytes>(field<std::int64_t>(table, id, name));
    };
    result.push_back({.id = std::string(id),
                      .name = field<std::string>(table, id, "name"),
                      .capacity = bytes("capacity_bytes"),
                      .driver_total = bytes("driver_total_bytes"),
                      .granule = bytes("granule_bytes"),
                      .source = field<std::string>(table, id, "source")});
  }
  return result;
}

}  // namespace

const std::vector<Card>& cards() {
  static const std::vector<Card> result = parse_cards();
  return result;
}

const Card& find_card(const std::string& id) {
  std::vector<std::string> known;
  for (const Card& card : cards()) {
    if (card.id == id) return card;
    known.push_back(card.id);
  }
  throw_unknown_name("card", id, known);
}

}  // namespace headroom
