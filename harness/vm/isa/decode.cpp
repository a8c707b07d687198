// SPDX-License-Identifier: MIT
#include "isa/decode.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

namespace ptxvm::isa {
namespace {

using Words = std::vector<std::string_view>;

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

Words split(std::string_view text) {
  Words out;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i != text.size() && text[i] != '.') continue;
    out.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  return out;
}

bool is_space(std::string_view word) {
  return is_one_of(
      word, {"global", "shared", "shared::cta", "shared::cluster", "local", "const", "param"});
}

// Whether a modifier must keep its place among others of its kind: a destination comes before a
// source.
bool keeps_place(std::string_view word) {
  return parse_type(word) || is_space(word) || word.starts_with("L2::") ||
         is_one_of(word, {"row", "col", "e4m3", "e5m2", "e4m3x2", "e5m2x2", "lo", "hi", "wide", "l",
                          "r"});
}

// How many words ptxas takes for the name where the modifiers after it may change places: tensor
// copies, mbarriers and tcgen05. 0 for other instructions.
size_t long_name(const Words& words) {
  if (is_one_of(words[0], {"tcgen05", "mbarrier"})) {
    if (words.size() < 3) return 0;
    return is_one_of(words[2], {"ws", "expect_tx", "parity"}) ? 3 : 2;
  }
  if (words[0] != "cp") return 0;
  size_t count = 1;
  while (count < words.size() && is_one_of(words[count], {"reduce", "async", "bulk", "tensor"}))
    ++count;
  return words[count - 1] == "tensor" ? count : 0;
}

// Of these ptxas takes the first words for the name of the instruction.
bool has_long_name(const Words& words) {
  const auto contains = [&](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  return is_one_of(words[0],
                   {"bar", "barrier", "clusterlaunchcontrol", "cp", "createpolicy", "cvta",
                    "mbarrier", "mma", "setmaxnreg", "tcgen05", "tensormap", "wgmma", "wmma"}) ||
         contains("pack") || (words[0] == "fence" && contains("proxy")) ||
         (is_one_of(words[0], {"st", "red"}) && contains("async"));
}

std::string join(const Words& words) {
  std::string text;
  for (std::string_view w : words) text.append(text.empty() ? "" : ".").append(w);
  return text;
}

// The same for all orders of the modifiers that may change places.
std::string key_of(const Words& words) {
  Words free, kept;
  const size_t name = std::max<size_t>(long_name(words), 1);
  for (size_t i = name; i < words.size(); ++i)
    (keeps_place(words[i]) ? kept : free).push_back(words[i]);
  std::sort(free.begin(), free.end());
  std::string key = join({words.begin(), words.begin() + static_cast<std::ptrdiff_t>(name)});
  key += " ";
  for (std::string_view w : free) key.append(".").append(w);
  key += " ";
  for (std::string_view w : kept) key.append(".").append(w);
  return key;
}

// Spellings by key; null where several share one.
const Spelling* find_in_any_order(const Words& words) {
  if (has_long_name(words) && long_name(words) == 0) return find(join(words));
  // Which half is kept and which way is shifted is said right behind the name.
  for (size_t i = 2; i < words.size(); ++i) {
    if (is_one_of(words[i], {"lo", "hi", "wide", "l", "r"})) return nullptr;
  }
  static const std::unordered_map<std::string, const Spelling*> table = [] {
    std::unordered_map<std::string, const Spelling*> t;
    for (const Spelling& s : spellings()) {
      Words w;
      for (const Token& token : s.tokens) w.push_back(token.text);
      const auto [it, fresh] = t.emplace(key_of(w), &s);
      // Some of the long ones stand in the table in more than one order.
      if (!fresh && it->second && it->second->text != s.text && long_name(w) == 0)
        it->second = nullptr;
    }
    return t;
  }();
  const auto found = table.find(key_of(words));
  return found == table.end() ? nullptr : found->second;
}

bool has(const Words& words, std::initializer_list<std::string_view> list) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view w) { return is_one_of(w, list); });
}

bool reads_32_bytes(const Words& words) {
  return has(words, {"v8"}) || (has(words, {"v4"}) && has(words, {"b64", "u64", "s64", "f64"}));
}

// Which hints an access may have, and what they need.
struct Hints {
  bool eviction = false, second = false, prefetch = false, policy = false;
  int sm = 0;

  bool any() const { return eviction || second || prefetch || policy; }

  // Takes the word away when it is a hint and none of its kind was there.
  bool take(std::string_view word) {
    bool* kind = nullptr;
    if (is_one_of(word, {"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first",
                         "L1::evict_last", "L1::no_allocate"})) {
      kind = &eviction;
    } else if (is_one_of(word, {"L2::evict_normal", "L2::evict_first", "L2::evict_last"})) {
      kind = &second;
    } else if (is_one_of(word, {"L2::64B", "L2::128B", "L2::256B"})) {
      kind = &prefetch;
    } else if (word == "L2::cache_hint") {
      kind = &policy;
    }
    if (!kind || *kind) return false;
    *kind = true;
    const int least = kind == &second                                  ? 100
                      : word == "L2::cache_hint" || word == "L2::256B" ? 80
                      : word.starts_with("L1::")                       ? 70
                                                                       : 75;
    sm = std::max(sm, least);
    return true;
  }

  bool fit(const Words& words) const {
    const std::string_view base = words[0];
    const bool loads = base == "ld", copies = base == "cp";
    if (copies) return !eviction && words.size() > 2 && words[1] == "async" && words[2] != "bulk";
    if (!loads && base != "st" && base != "atom" && base != "red") return false;
    if (has(words, {"async"})) return false;
    if (has(words, {"shared", "shared::cta", "shared::cluster", "local", "const", "param"}))
      return false;
    if (prefetch && !loads) return false;
    // The second level is told what to keep by accesses of 32 bytes.
    if (second && ((!loads && base != "st") || !reads_32_bytes(words))) return false;
    if (policy && has(words, {"cas"})) return false;
    if (eviction && !loads && base != "st") return false;
    if (has(words, {"volatile"}) && (eviction || policy)) return false;
    // An operator says it all for the first level.
    return !eviction || !has(words, {"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  }
};

}  // namespace

Decoded decode(std::string_view mnemonic) {
  const auto result = [](const Spelling* s, bool policy, int sm) {
    return Decoded{s, policy, s ? std::max(sm, s->row->sm) : 0};
  };
  if (const Spelling* exact = find(mnemonic)) return result(exact, false, 0);
  Words words = split(mnemonic);
  if (const Spelling* same = find_in_any_order(words)) return result(same, false, 0);
  Hints hints;
  std::erase_if(words, [&](std::string_view w) { return hints.take(w); });
  if (!hints.any()) return {};
  if (!hints.fit(words)) return {};
  return result(find_in_any_order(words), hints.policy, hints.sm);
}

}  // namespace ptxvm::isa
