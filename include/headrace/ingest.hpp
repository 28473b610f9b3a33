#pragma once

// This header includes all of the ingest module, which turns packets into frames: the receiver, its sources and
// builders, and the sender that tests them.

#include "headrace/ingest/builder.hpp"
#include "headrace/ingest/capture_source.hpp"
#include "headrace/ingest/follow.hpp"
#include "headrace/ingest/messages.hpp"
#include "headrace/ingest/packet_socket_source.hpp"
#include "headrace/ingest/receiver.hpp"
#include "headrace/ingest/sender.hpp"
#include "headrace/ingest/source.hpp"
#include "headrace/ingest/synthetic_source.hpp"
#include "headrace/ingest/tun_source.hpp"
#include "headrace/ingest/udp_source.hpp"
#include "headrace/ingest/xdp_source.hpp"
