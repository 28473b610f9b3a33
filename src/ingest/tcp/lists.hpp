#pragma once

#include <cstdint>

#include "headrace/ingest/detail/siphash.hpp"
#include "ingest/tcp/state.hpp"

/// Doubly linked lists and hash chains of array entries, by index.
namespace headrace::ingest::detail {

/// The hash of both ends, keyed so that a peer cannot make many connections collide.
[[nodiscard]] HEADRACE_HD inline std::uint64_t hash_of(const TcpShared& shared, const Flow& flow) {
  std::uint64_t words[Flow::kWords];
  flow.words(words);
  return siphash(shared.config.key, words, Flow::kWords);
}

template <class Entry>
HEADRACE_HD void append(Entry* entries, TcpList& list, std::uint32_t i) {
  entries[i].list_next = kNoConnection;
  entries[i].list_previous = list.last;
  (list.last == kNoConnection ? list.first : entries[list.last].list_next) = i;
  list.last = i;
  ++list.count;
}

template <class Entry>
HEADRACE_HD void prepend(Entry* entries, TcpList& list, std::uint32_t i) {
  entries[i].list_previous = kNoConnection;
  entries[i].list_next = list.first;
  (list.first == kNoConnection ? list.last : entries[list.first].list_previous) = i;
  list.first = i;
  ++list.count;
}

template <class Entry>
HEADRACE_HD void unlink(Entry* entries, TcpList& list, std::uint32_t i) {
  const std::uint32_t previous = entries[i].list_previous;
  const std::uint32_t next = entries[i].list_next;
  (previous == kNoConnection ? list.first : entries[previous].list_next) = next;
  (next == kNoConnection ? list.last : entries[next].list_previous) = previous;
  --list.count;
}

/// The entry of `flow` in the chain that begins with `i`; kNoConnection if there is none.
template <class Entry>
[[nodiscard]] HEADRACE_HD std::uint32_t find_in_chain(const Entry* entries, std::uint32_t i, const Flow& flow) {
  while (i != kNoConnection && !same_flow(entries[i].flow, flow)) i = entries[i].bucket_next;
  return i;
}

template <class Entry>
HEADRACE_HD void add_to_chain(Entry* entries, std::uint32_t& first, std::uint32_t i) {
  entries[i].bucket_next = first;
  first = i;
}

template <class Entry>
HEADRACE_HD void remove_from_chain(Entry* entries, std::uint32_t& first, std::uint32_t i) {
  std::uint32_t* link = &first;
  while (*link != i) link = &entries[*link].bucket_next;
  *link = entries[i].bucket_next;
}

}  // namespace headrace::ingest::detail
