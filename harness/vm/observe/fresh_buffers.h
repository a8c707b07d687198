// SPDX-License-Identifier: MIT
// Global memory that nobody has written: whole buffers, whatever the order of blocks.
#pragma once

#include <map>

#include "observe/conflicts.h"
#include "ptxvm/launch.h"

namespace ptxvm::observe {

/// The buffers that were never written before a launch, and who reads them. Atomics count as reads.
class FreshBuffers {
 public:
  /// None where an observer looks at each piece of them.
  explicit FreshBuffers(const LaunchInfo& info);

  /// `sets`: an atomic that writes whatever is there.
  void access(const AccessEvent& e, bool sets, const CtaEvent& cta);
  void bulk(const BulkEvent& e, const CtaEvent& cta);

  void merge(const FreshBuffers& o);
  /// Adds the reads of buffers that the launch has not written either.
  void report(FindingLog& log) const;

 private:
  struct Use {
    bool written = false;
    FindingLog reads;
  };
  void use(const Buffer& buffer, bool writes, const FindingKey& key, const Example& example);

  const Memory& memory_;
  std::map<const Buffer*, Use> uses_;
};

}  // namespace ptxvm::observe
