// SPDX-License-Identifier: MIT
#include "text/errors.h"

namespace ptxvm::text {
namespace {

// Names in messages come from the text and may be of any length.
void shorten(std::string& message) {
  constexpr size_t kLongest = 500;
  if (message.size() > kLongest) message.replace(kLongest, std::string::npos, "...");
}

}  // namespace

Diagnostic* Errors::add(Span span, std::string message) {
  if (full()) {
    ++more_;
    return nullptr;
  }
  shorten(message);
  offsets_.push_back(span.begin);
  return &kept_.emplace_back(source_.point_at(span, std::move(message)));
}

void Errors::move_within(Span stretch, Errors& to) {
  for (size_t i = 0; i < kept_.size();) {
    if (offsets_[i] < stretch.begin || offsets_[i] - stretch.begin >= stretch.length) {
      ++i;
      continue;
    }
    if (to.full()) {
      ++to.more_;
    } else {
      to.kept_.push_back(std::move(kept_[i]));
      to.offsets_.push_back(offsets_[i]);
    }
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
    offsets_.erase(offsets_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::vector<Diagnostic> Errors::take() {
  for (Diagnostic& d : kept_) {
    for (std::string& note : d.notes) shorten(note);
  }
  if (more_ != 0) {
    Diagnostic last;
    last.where.file = source_.file_name();
    last.message =
        "and " + std::to_string(more_) + " more " + noun_ + (more_ == 1 ? "" : "s") + rest_;
    kept_.push_back(std::move(last));
    more_ = 0;
  }
  offsets_.clear();
  return std::move(kept_);
}

}  // namespace ptxvm::text
