#include "ingest/resident/kernel.hpp"
#include "ingest/resident/roles.hpp"

namespace headrace::ingest::resident {

namespace {

struct ResidentBody {
  static constexpr const char* kName = "ingest::resident";
  static constexpr int kThreadsMax = kThreads;
  /// What build blocks need to keep a link busy decides, not what the sequencer would like to have in registers.
  static constexpr int kBlocksMin = 2;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, View view) {
    take_role(group, view);
  }
};

}  // namespace

TypedKernel<View> resident_kernel() { return make_kernel<ResidentBody, View>(); }

}  // namespace headrace::ingest::resident
