// SPDX-License-Identifier: MIT
// Loading: text, tree, programs, and the images of module variables.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <map>

#include "lower/lower.h"
#include "memory/spaces.h"
#include "text/parser.h"

namespace ptxvm {
namespace {

std::atomic<uint64_t> next_variable{0}, next_module{0};

class Loader {
 public:
  explicit Loader(std::unique_ptr<text::Source> source)
      : data_(std::make_shared<ModuleData>()), errors_(*source) {
    data_->source = std::move(source);
    data_->id = next_module++;
  }

  std::shared_ptr<ModuleData> run() {
    text_ = text::parse(*data_->source, errors_);
    stop_on_errors();
    target();
    join_variables();
    ModuleIndex index(text_);
    symbols_ = &index.symbols;
    variables();
    for (const text::Entry& entry : text_.entries) {
      auto program = std::make_unique<Program>();
      lower_entry(text_, entry, index, *data_, *program);
      data_->programs.push_back(std::move(program));
    }
    stop_without_kernels();
    for (const auto& program : data_->programs) data_->kernels.emplace_back(program.get());
    return data_;
  }

 private:
  void stop_on_errors() {
    if (!errors_.empty()) throw Error(errors_.take());
  }

  // One bad kernel refuses only itself; where all are bad there is nothing to run.
  void stop_without_kernels() {
    std::vector<Diagnostic> all;
    for (const auto& program : data_->programs) {
      if (program->errors.empty()) return;
      all.insert(all.end(), program->errors.begin(), program->errors.end());
    }
    constexpr size_t kShown = 20;
    if (all.size() > kShown + 1) all.resize(kShown);
    if (!all.empty()) throw Error(std::move(all));
  }

  void target() {
    data_->version = text_.version;
    data_->target = std::string(text_.target);
    std::string_view t = text_.target;
    if (!t.starts_with("sm_"))
      throw Error(data_->source->file_name() + ": the module has no .target sm_NN");
    t.remove_prefix(3);
    auto [end, problem] = std::from_chars(t.data(), t.data() + t.size(), data_->sm);
    const std::string_view rest(end, static_cast<size_t>(t.data() + t.size() - end));
    if (problem != std::errc() || (!rest.empty() && rest != "a" && rest != "f")) {
      throw Error(data_->source->file_name() + ": unknown target '" + data_->target + "'");
    }
    data_->arch_specific = !rest.empty();
  }

  // The text may be that of several modules, one behind the other: a variable is declared where it
  // is used, and defined once, or weakly in each.
  void join_variables() {
    std::map<std::string_view, const text::Declaration*> chosen;
    const auto rank = [](const text::Declaration& d) { return d.external ? 0 : d.weak ? 1 : 2; };
    for (const text::Declaration& d : text_.variables) {
      const auto [it, fresh] = chosen.emplace(d.name, &d);
      if (!fresh && rank(d) > rank(*it->second)) it->second = &d;
    }
    std::vector<text::Declaration> kept;
    for (const text::Declaration& d : text_.variables) {
      const text::Declaration* best = chosen.at(d.name);
      if (best == &d || rank(d) == 2) kept.push_back(d);
    }
    text_.variables = std::move(kept);
  }

  void variables() {
    for (uint32_t i = 0; i < text_.functions.size(); ++i) {
      const std::string_view name = text_.functions[i].name;
      symbols_->emplace(name, Symbol{name, "func", function_address(i)});
    }
    for (const text::Entry& e : text_.entries) {
      symbols_->emplace(e.name, Symbol{e.name, kEntrySpace, 0});
    }
    uint64_t constant_bytes = 0;
    for (const text::Declaration& d : text_.variables) {
      Symbol symbol{d.name, d.space, 0};
      const uint64_t bytes = uint64_t{element_bytes(d)} * d.count;
      const uint32_t align = std::max(d.align, element_bytes(d));
      if (d.space == "shared") {
        symbol.dynamic = d.external;
        if (!d.external) continue;  // placed by each kernel that uses it
      } else if (d.space == "const") {
        symbol.address = align_up(static_cast<uint32_t>(constant_bytes), align);
        constant_bytes = symbol.address + bytes;
        if (constant_bytes > 65536 * 10) fail(d, "constant memory is full");
        data_->constant_variables.push_back({std::string(d.name),
                                             static_cast<uint32_t>(symbol.address),
                                             static_cast<uint32_t>(bytes)});
      } else if (d.space == "global") {
        if (bytes > (uint64_t{1} << 30)) fail(d, "the variable is too large");
        symbol.address = module_variable_address(next_variable++);
        data_->globals.push_back(
            {std::string(d.name), symbol.address, static_cast<size_t>(bytes), {}});
      }
      if (!symbols_->emplace(d.name, symbol).second) {
        fail(d, "'" + std::string(d.name) + "' is declared twice");
      }
    }
    stop_on_errors();
    // Initialisers may name variables that come later.
    data_->constants.resize(static_cast<size_t>(constant_bytes));
    size_t global = 0;
    for (const text::Declaration& d : text_.variables) {
      if (d.space == "const") {
        initialise(d, data_->constants.data() + symbols_->at(d.name).address);
      } else if (d.space == "global") {
        auto& bytes = data_->globals[global++].initial;
        bytes.resize(d.initial.size() * static_cast<size_t>(bits(d.type) / 8));
        initialise(d, bytes.data());
      }
    }
    stop_on_errors();
  }

  void initialise(const text::Declaration& d, std::byte* out) {
    const auto width = static_cast<size_t>(bits(d.type) / 8);
    const size_t room = size_t{element_bytes(d)} * d.count / std::max<size_t>(width, 1);
    if (d.initial.size() > room) return fail(d, "there are more initial values than elements");
    for (const text::Operand& o : d.initial) {
      uint64_t value = o.integer;
      if (o.kind == text::Operand::Kind::kName) {
        auto it = symbols_->find(o.name);
        if (it == symbols_->end())
          return fail(d, "'" + std::string(o.name) + "' is not a variable");
        value = it->second.address + o.integer;
        if (it->second.space == "const" && d.generic_names) value += window_base(Space::kConst);
      } else if (o.kind == text::Operand::Kind::kFloat) {
        if (width == 4 && !o.single) {
          value = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(value)));
        } else if (width == 8 && o.single) {
          value = std::bit_cast<uint64_t>(
              static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(value))));
        }
      }
      std::memcpy(out, &value, std::min<size_t>(width, sizeof value));
      out += width;
    }
  }

  void fail(const text::Declaration& d, std::string message) {
    errors_.add(d.span, std::move(message));
  }

  std::shared_ptr<ModuleData> data_;
  text::ModuleText text_;
  ModuleSymbols* symbols_ = nullptr;
  text::Errors errors_;
};

}  // namespace

std::shared_ptr<ModuleData> load_text(std::string text, std::string file_name) {
  return Loader(std::make_unique<text::Source>(std::move(text), std::move(file_name))).run();
}

}  // namespace ptxvm
