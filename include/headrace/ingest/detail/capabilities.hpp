#pragma once

namespace headrace::ingest {

/// Drops CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF in every thread of this process, for good: from the effective,
/// permitted, inheritable and ambient sets, and from the bounding set if CAP_SETPCAP allows it. Call it once all
/// sources are open: an open source needs none of them, not even to close. Sources that are opened later lack them.
///
/// Capabilities belong to threads, and the kernel lets a thread change only its own. The calling thread therefore sends
/// each other thread a real-time signal, the highest without a handler. The handler stays installed.
/// Does nothing if no thread has any of these capabilities.
///
/// Throws SystemError that names a thread which still holds them after 5 s, because it blocks signals; the other
/// threads have dropped them by then.
void drop_capabilities();

}  // namespace headrace::ingest
