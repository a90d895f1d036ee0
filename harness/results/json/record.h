// Lists a record's fields once: FieldWriter makes a JSON object of them in that order, and
// FieldReader reads them back. The list is a function template beside the record:
//
//   template <typename Visitor, RecordOf<Shard> Record>
//   void fields(Visitor& visit, Record& shard) {
//     visit.required("number", shard.number);
//     visit.required("count", shard.count);
//   }
//
// An enumeration is written with to_string. kNames lists its values; an unknown name is read as the
// last of them.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/results/json/cell_json.h"
#include "harness/results/schema_check.h"

namespace headroom {

template <typename Type, typename Record>
concept RecordOf = std::same_as<std::remove_const_t<Type>, Record>;

template <typename Enum>
inline constexpr std::array<Enum, 0> kNames{};

template <typename Value>
Json value_to_json(const Value& value);
template <typename Value>
void value_from_json(const Json& json, Value& value);

// Whether a value is unset; files hold null for it.
template <typename Value>
bool is_unset(const Value& value) {
  return value == Value{};
}

class FieldWriter {
 public:
  static constexpr bool kReads = false;

  template <typename Value>
  void required(const char* name, const Value& value) {
    json_[name] = value_to_json(value);
  }
  // A field that is null if unset.
  template <typename Value>
  void or_null(const char* name, const Value& value) {
    json_[name] = is_unset(value) ? Json() : value_to_json(value);
  }
  // A field that older files lack.
  template <typename Value>
  void later(const char* name, const Value& value) {
    required(name, value);
  }
  template <typename Value>
  void later_or_null(const char* name, const Value& value) {
    or_null(name, value);
  }
  // A field derived from others for readers of the file; it is not read back.
  template <typename Value>
  void derived(const char* name, Value&& value) {
    json_[name] = std::forward<Value>(value);
  }
  // The first fields of a record that stands by itself.
  void kind(const char* kind) {
    derived("schema_version", kSchemaVersion);
    derived("kind", kind);
  }
  Json take() { return std::move(json_); }

 private:
  Json json_ = Json::object();
};

// Reads fields; throws Json::exception if a field is missing or has the wrong type.
class FieldReader {
 public:
  static constexpr bool kReads = true;

  explicit FieldReader(const Json& json) : json_(json) {}

  template <typename Value>
  void required(const char* name, Value& value) {
    value_from_json(json_.at(name), value);
  }
  template <typename Value>
  void or_null(const char* name, Value& value) {
    if (const Json& found = json_.at(name); !found.is_null()) value_from_json(found, value);
  }
  template <typename Value>
  void later(const char* name, Value& value) {
    if (json_.contains(name)) required(name, value);
  }
  template <typename Value>
  void later_or_null(const char* name, Value& value) {
    if (json_.contains(name)) or_null(name, value);
  }
  template <typename Value>
  void derived(const char*, const Value&) {}
  void kind(const char*) {}
  const Json& json() const { return json_; }

 private:
  const Json& json_;
};

template <typename Value>
concept HasFields = requires(FieldWriter& writer, const Value& value) {
  fields(writer, value);
};

template <typename Value>
inline constexpr bool kIsOptional = false;
template <typename Value>
inline constexpr bool kIsOptional<std::optional<Value>> = true;
template <typename Value>
inline constexpr bool kIsList = false;
template <typename Value>
inline constexpr bool kIsList<std::vector<Value>> = true;

template <typename Value>
Json value_to_json(const Value& value) {
  if constexpr (std::is_floating_point_v<Value>) {
    return number_or_null(value);
  } else if constexpr (std::is_enum_v<Value>) {
    return to_string(value);
  } else if constexpr (kIsOptional<Value>) {
    return value ? value_to_json(*value) : Json();
  } else if constexpr (kIsList<Value>) {
    Json list = Json::array();
    for (const auto& one : value) list.push_back(value_to_json(one));
    return list;
  } else if constexpr (HasFields<Value>) {
    FieldWriter writer;
    fields(writer, value);
    return writer.take();
  } else {
    return value;
  }
}

template <typename Value>
void value_from_json(const Json& json, Value& value) {
  if constexpr (std::is_floating_point_v<Value>) {
    value = json.is_null() ? std::nan("") : json.get<Value>();
  } else if constexpr (std::is_enum_v<Value>) {
    const auto text = json.get<std::string>();
    value = kNames<Value>.back();
    for (const Value known : kNames<Value>)
      if (to_string(known) == text) value = known;
  } else if constexpr (kIsOptional<Value>) {
    value.reset();
    if (!json.is_null()) value_from_json(json, value.emplace());
  } else if constexpr (kIsList<Value>) {
    value.clear();
    for (const Json& one : json) value_from_json(one, value.emplace_back());
  } else if constexpr (HasFields<Value>) {
    FieldReader reader(json);
    fields(reader, value);
  } else {
    json.get_to(value);
  }
}

template <typename Value>
Value value_of(const Json& json) {
  Value value{};
  value_from_json(json, value);
  return value;
}

}  // namespace headroom
