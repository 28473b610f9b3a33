#include "ingest/resident_kernel.hpp"

#include "ingest/resident_acknowledge.hpp"
#include "ingest/resident_build.hpp"
#include "ingest/resident_poll.hpp"

namespace headrace::ingest::resident {

namespace {

struct ResidentBody {
  static constexpr const char* kName = "ingest::resident";
  static constexpr int kThreadsMax = kThreads;
  /// What build blocks need to keep a link busy decides, not what the sequencer would like to have in registers.
  static constexpr int kBlocksMin = 2;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, View view) {
    if (group.rank() == 0 &&
        group.fetch_add_on_device(*view.entered, std::uint64_t{1}) + 1 == group.block_count()) {
      group.store(*view.running, std::uint64_t{1});  // pairs with ResidentControl::State::wait_running()
    }
    if (group.block() == 0) {
      Poll<Group>(group, view).run();
    } else if (group.block() == 1) {
      Acknowledge<Group>(group, view).run();
    } else {
      Build<Group>(group, view).run();
    }
  }
};

}  // namespace

Kernel resident_kernel() { return make_kernel<ResidentBody, View>(); }

}  // namespace headrace::ingest::resident
