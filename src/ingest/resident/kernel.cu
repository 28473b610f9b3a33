#include "ingest/resident/kernel.hpp"
#include "ingest/resident/roles.hpp"

namespace headrace::ingest::resident {

namespace {

struct ResidentBody {
  static constexpr const char* kName = "ingest::resident";
  static constexpr int kThreadsMax = kThreads;
  /// Chosen for the build blocks, which must keep a link busy, not for the registers that the sequencer could use.
  static constexpr int kBlocksMin = 2;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, View view) {
    take_role(group, view);
  }
};

}  // namespace

TypedKernel<View> resident_kernel() { return make_kernel<ResidentBody, View>(); }

}  // namespace headrace::ingest::resident
