// SPDX-License-Identifier: MIT
#include "tools/recorder.h"

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "tools/digest.h"
#include "tools/vector_kernel.h"

namespace ptxvm_vectors {
namespace {

struct Work {
  const InputSet* inputs;
  std::vector<const Family*> families;
  std::vector<size_t> slots;  // where the records go
};

std::vector<uint64_t> flatten(const InputSet& set) {
  std::vector<uint64_t> words;
  for (const Row& r : set.rows) words.insert(words.end(), r.values.begin(), r.values.end());
  return words;
}

std::vector<uint64_t> run(Device& device, const Job& job, const std::vector<uint64_t>& inputs) {
  return device.run(make_module(job, "vectors"), "vectors", static_cast<uint32_t>(job.rows()),
                    inputs, job.output_words());
}

void take(const Job& job, const std::vector<uint64_t>& words, size_t family, Record& r) {
  const Family& f = *job.families[family];
  r.out.assign(static_cast<size_t>(f.outputs), {});
  for (size_t w = 0; w < r.out.size(); ++w) {
    for (size_t i = 0; i < job.rows(); ++i)
      r.out[w].push_back(words[(family * job.rows() + i) * kResultWords + w]);
  }
}

}  // namespace

std::map<std::string, InputSet> generate_sets(const std::vector<Family>& families) {
  std::map<std::string, InputSet> sets;
  for (const Family& f : families) {
    if (!sets.count(f.set)) sets[f.set] = make_inputs(f.set);
  }
  return sets;
}

Recording record(Device& device, const std::vector<Family>& families,
                 const std::map<std::string, InputSet>& sets, int threads) {
  std::vector<Work> work;
  std::map<std::pair<std::string, bool>, size_t> open;  // by set and target
  std::vector<Record> records(families.size());
  for (size_t i = 0; i < families.size(); ++i) {
    const Family& f = families[i];
    const std::pair key{f.set, needs_blackwell(f)};
    const auto found = open.find(key);
    if (found == open.end() || work[found->second].families.size() == kFamiliesPerEntry) {
      open[key] = work.size();
      work.push_back({&sets.at(f.set), {}, {}});
    }
    Work& w = work[open[key]];
    w.families.push_back(&f);
    w.slots.push_back(i);
  }

  Recording result;
  std::mutex mutex;
  std::atomic<size_t> next{0};
  const auto worker = [&] {
    for (size_t at = next++; at < work.size(); at = next++) {
      const Work& w = work[at];
      const Job job{w.inputs, w.families};
      const std::vector<uint64_t> inputs = flatten(*w.inputs);
      try {
        const auto words = run(device, job, inputs);
        for (size_t i = 0; i < w.families.size(); ++i) take(job, words, i, records[w.slots[i]]);
        continue;
      } catch (const std::runtime_error&) {
        // One by one below, to name the culprit and keep the others.
      }
      for (size_t i = 0; i < w.families.size(); ++i) {
        const Job one{w.inputs, std::span(w.families).subspan(i, 1)};
        try {
          take(one, run(device, one, inputs), 0, records[w.slots[i]]);
        } catch (const std::runtime_error& error) {
          const std::scoped_lock lock(mutex);
          result.errors.push_back(w.families[i]->op() + " " + w.families[i]->form + ": " +
                                  error.what());
        }
      }
    }
  };
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) pool.emplace_back(worker);
  for (std::thread& t : pool) t.join();

  Digest digest;
  for (const Work& w : work) {
    const std::string text = make_module({w.inputs, w.families}, "vectors");
    const std::vector<uint64_t> inputs = flatten(*w.inputs);
    digest.add(text.data(), text.size());
    digest.add(inputs.data(), inputs.size() * 8);
  }
  result.generator = digest.text();

  std::map<std::string, VectorFile> files;
  for (size_t i = 0; i < families.size(); ++i) {
    if (records[i].out.empty()) continue;
    const Family& f = families[i];
    VectorFile& file = files[group(f)];
    file.group = group(f);
    file.sets[f.set] = sets.at(f.set);
    records[i].op = f.op();
    records[i].form = f.form;
    records[i].set = f.set;
    file.records.push_back(std::move(records[i]));
  }
  for (auto& [name, file] : files) result.files.push_back(std::move(file));
  return result;
}

}  // namespace ptxvm_vectors
