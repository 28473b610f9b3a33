#pragma once

namespace headrace::ingest {

/// Gives up CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF in every thread of this process, for good: from the effective,
/// permitted, inheritable and ambient sets, and from the bounding set where CAP_SETPCAP allows it. To be called once
/// all sources are open: none needs these rights any more, not even to close. Sources that are opened later lack them.
///
/// Capabilities belong to threads, and the kernel lets a thread change only its own: the calling thread sends each of
/// the others a real-time signal, the highest that has no handler, whose handler stays installed.
/// Does nothing where no thread has any of them.
///
/// Throws SystemError that names a thread which has kept them for 5 s, because it blocks signals; the other threads
/// have given them up by then.
void drop_capabilities();

}  // namespace headrace::ingest
